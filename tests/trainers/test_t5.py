"""T5's pretraining: the stream of passages, the ranks' parts, and real (tiny) runs of the command line."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from common.errors import DataError
from datamodules.examples.data_files import DataFile
from datamodules.examples.step_loader import part
from datamodules.examples.token_stream import CorpusStream, held_out_share, read_corpora
from datamodules.formats.row_counts import RowCounts
from datamodules.t5 import SpanCorruptionData
from models.length_batching import IGNORE
from models.rerag.generator import Generator
from models.serving_manifest import read_manifest
from models.t5.span_corruption import TEXT_FORMAT
from tests.conftest import NAMES
from tests.helpers import tiny_runs
from tests.helpers.tiny_runs import fit, metrics, weights
from tests.helpers.tolerances import fp32_tolerance, model_close
from trainers.t5 import KIND, SpanCorruptionTrainer, token_nll

TRAINER = "t5"


def write_corpus(path: Path) -> None:
    rng = random.Random(5)
    with path.open("w") as file:
        for number in range(120):
            name, other = rng.sample(NAMES, 2)
            text = f"{name} was born in the city of {other} . the film is in the city of {name} ."
            file.write(json.dumps({"title": f"{name} {number}", "text": text}) + "\n")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A hundred and twenty learnable passages, as JSON Lines."""
    path = tmp_path / "corpus.jsonl"
    write_corpus(path)
    return path


def stream_of(corpus: Path, **options: Any) -> CorpusStream:
    """One whose tokens are the passages' ids, ten times each."""
    return CorpusStream(
        [DataFile(str(corpus), "jsonl")], 0.2, lambda passages: [[p.id] * 10 for p in passages], length=7, **options
    )


def test_a_pass_holds_every_training_passage_once_and_none_held_out(corpus: Path) -> None:
    passages = list(read_corpora([DataFile(str(corpus), "jsonl")]))
    training = [p.id for p in passages if held_out_share(p) >= 0.2]
    assert 0 < len(training) < len(passages)
    stream = stream_of(corpus, streams=1, block=len(training))
    tokens = [token for row in range(len(training) * 20 // 7 + 1) for token in stream[row]][: len(training) * 20]
    assert Counter(tokens[: len(training) * 10]) == Counter(dict.fromkeys(training, 10))
    first, second = (list(dict.fromkeys(half)) for half in (tokens[: len(training) * 10], tokens[len(training) * 10 :]))
    assert sorted(first) == sorted(second)
    assert first != second  # shuffled anew


def test_unusual_rows_are_said_after_a_pass_or_an_error(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = corpus.read_text().splitlines()
    corpus.write_text("\n".join([*lines[:99], lines[0], '{"title": "", "text": null}', *lines[99:]]))
    parts = [stream_of(corpus, streams=2, block=5, owned=frozenset({each})) for each in (0, 1)]
    for stream, own in zip(parts, (0, 1), strict=True):
        for row in range(own, 600, 2):
            stream[row]
    said = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    assert said == [
        f"a passage with the title and text of an earlier one: 1, left out; the first: {corpus}, line 100.",
        f"a passage without title and text: 1, left out; the first: {corpus}, line 101.",
    ]
    first = DataFile(str(corpus), "jsonl", limit=101)
    assert len(list(read_corpora([first]))) == 99
    with pytest.raises(DataError, match="line 100: a passage with the title and text"):
        list(read_corpora([first], RowCounts(strict=True)))


def test_a_row_is_the_same_whoever_asks_and_in_any_order(corpus: Path) -> None:
    whole = stream_of(corpus, streams=4, block=5)
    rows = {row: whole[row] for row in range(200)}
    assert len(set(map(tuple, rows.values()))) > 100
    half = stream_of(corpus, streams=4, block=5, owned=frozenset({1, 3}))
    assert [half[row] for row in range(1, 200, 2)] == [rows[row] for row in range(1, 200, 2)]
    with pytest.raises(KeyError, match="stream 2"):
        half[2]
    late = stream_of(corpus, streams=4, block=5)
    assert [late[row] for row in (150, 151, 199, 3)] == [rows[row] for row in (150, 151, 199, 3)]
    assert stream_of(corpus, streams=4, block=5, seed=1)[0] != rows[0]


def write_run(folder: Path, model: Path) -> None:
    """A corpus and the configuration of a tiny run on it."""
    write_corpus(folder / "corpus.jsonl")
    optimizer = {"learning_rate": 5e-3, "warmup_steps": 3, "schedule": "linear"}
    options = {"pretrained": str(model), "dropout": 0.1, "optimizer": optimizer}
    data = {
        "corpora": [{"layout": "jsonl", "path": str(folder / "corpus.jsonl")}], "max_tokens": 24, "mean_span": 2.0,
        "sequences_per_step": 8, "steps_per_epoch": 4, "validation_fraction": 0.2, "validation_sequences": 8,
        "sequences_per_validation_batch": 3, "block_passages": 16,
    }  # fmt: skip
    tiny_runs.write_config(
        folder, "t5.SpanCorruptionTrainer", options, "t5.SpanCorruptionData", data, "val/loss_nats", "min"
    )


def test_a_run_learns_and_exports_a_t5_that_trainers_start_from(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fit("tiny", "--trainer.max_epochs", "16")
    losses = [row["val/loss_nats"] for row in metrics(folder) if "val/loss_nats" in row]
    assert losses[0] > 2.5
    assert min(losses) < 0.75 * losses[0]
    manifest = read_manifest(folder / "serving", KIND, TEXT_FORMAT)
    assert manifest["validation"]["loss_nats"] == pytest.approx(
        min(losses), rel=fp32_tolerance(1)
    )  # one is rounded to fp32
    exported = AutoModelForSeq2SeqLM.from_pretrained(folder / "serving/t5")
    state = weights(folder, "best.ckpt")
    for name, value in exported.state_dict().items():
        torch.testing.assert_close(value, state[f"network.{name}"], rtol=0, atol=0)
    assert Generator.build(str(folder / "serving/t5")).labels(["name3"]).shape == (1, 2)
    assert AutoTokenizer.from_pretrained(folder / "serving/t5").eos_token_id == 1
    card, found = tiny_runs.run_card(folder / "serving", monkeypatch)
    assert card.data.to_dict()["pipeline_tag"] == "text2text-generation"
    assert found["filled"].startswith("<pad>")


def data_of(corpus: Path, module: SpanCorruptionTrainer, rank: int, ranks: int) -> SpanCorruptionData:
    data = SpanCorruptionData(
        [DataFile(str(corpus), "jsonl")], 24, mean_span=2.0, sequences_per_step=6, steps_per_epoch=3,
        validation_fraction=0.2, validation_sequences=5, sequences_per_validation_batch=2, block_passages=16,
    )  # fmt: skip
    return tiny_runs.set_up(data, module, rank, ranks)


@pytest.mark.numeric
@pytest.mark.parametrize("ranks", [2, 4, 8])  # 4 does not divide the 6 sequences of a step, 8 exceeds them
def test_the_ranks_parts_make_up_the_step_and_its_loss(ranks: int, corpus: Path, checkpoints: dict[str, Path]) -> None:
    module = SpanCorruptionTrainer(str(checkpoints["t5"])).load().eval()

    def share(batch: Any) -> float:
        nll_P = token_nll(module(batch), batch.labels_PA).sum(dim=1)
        return float((nll_P * batch.weights_P).sum() / batch.step_tokens)

    alone = list(data_of(corpus, module, 0, 1).train_dataloader())
    parts = [list(data_of(corpus, module, rank, ranks).train_dataloader()) for rank in range(ranks)]
    with torch.inference_mode():
        for number, whole in enumerate(alone):
            mean = token_nll(module(whole), whole.labels_PA)[whole.labels_PA != IGNORE].mean()
            assert share(whole) == model_close(float(mean))
            assert sum(share(mine[number]) for mine in parts) == model_close(float(mean))
    for rank, mine in enumerate(parts):
        rows = part(alone[1].rows_P.tolist(), rank, ranks)
        if rows:
            assert torch.equal(mine[1].ids_PT, alone[1].ids_PT[rank::ranks])
            assert mine[1].rows_P.tolist() == rows
    loader = data_of(corpus, module, 0, 1).train_dataloader()
    numbers = [row for _ in range(2) for batch in loader for row in batch.rows_P.tolist()]
    assert numbers == list(range(36))  # the second epoch goes on where the first one ended
    counts = {len(data_of(corpus, module, rank, ranks).val_dataloader()) for rank in range(ranks)}
    assert len(counts) == 1
