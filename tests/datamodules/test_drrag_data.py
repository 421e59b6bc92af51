"""DR-RAG's data module: the draws of triples stay what they were, and chains are divided by groups."""

import hashlib
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from datamodules.drrag import DrRagData
from datamodules.examples.chains import ChainSampling
from datamodules.examples.splits import QuestionSource
from models.drrag.triple_tokenizer import END
from tests.helpers.tiny_runs import divided_steps, set_up
from trainers.drrag import DrRagTrainer


def test_triples_are_drawn_and_divided_as_in_earlier_releases(checkpoints: dict[str, Path], hotpot_file: Path) -> None:
    module = DrRagTrainer(str(checkpoints["bert"]), max_tokens=96)
    data = set_up(
        DrRagData([QuestionSource("hotpotqa", str(hotpot_file))], validation_fraction=0.3, tokens_per_step=500), module
    )
    digest = hashlib.sha256()
    for loader in (data.train_dataloader(), data.train_dataloader(), data.val_dataloader()):
        for batch in loader:
            for each in (batch.ids_PT, batch.labels_P, batch.weights_P, batch.rows_P):
                digest.update(each.numpy().tobytes())
            digest.update(str(batch.step_triples).encode())
    assert digest.hexdigest() == "9f251158d31dc9c7b7ee792c604c3c4727c515cf68fa9effaae0bf846c4e75df"


def test_a_teacher_reads_the_texts_of_each_batch_in_every_epoch(
    checkpoints: dict[str, Path], hotpot_file: Path
) -> None:
    data = load(checkpoints, hotpot_file, "listwise")
    epochs = []
    loader = data.train_dataloader()
    for _ in range(2):
        epochs.append([])
        for batch in loader:
            texts = data.training_texts(batch.rows_P.tolist())
            mine = [ids[kept.bool()].tolist() for ids, kept in zip(batch.ids_PT, batch.attention_PT, strict=True)]
            assert [data.encode(*each) for each in texts] == mine
            epochs[-1] += texts
    assert epochs[0] != epochs[1]


def load(
    checkpoints: dict[str, Path], file: Path, loss: str, rank: int = 0, ranks: int = 1, accumulate: int = 1
) -> DrRagData:
    """A data module of chains on a rank."""
    module = DrRagTrainer(str(checkpoints["bert"]), max_tokens=96, loss=loss)  # type: ignore[arg-type]
    chains = ChainSampling(candidates=2)
    data = DrRagData(
        [QuestionSource("hotpotqa", str(file))], validation_fraction=0.3, tokens_per_step=900, chains=chains
    )
    return set_up(data, module, rank, ranks, accumulate)


@pytest.mark.parametrize("loss", ["listwise", "binary"])
def test_a_step_of_chains_is_divided_and_groups_stay_whole(
    checkpoints: dict[str, Path], hotpot_file: Path, loss: str
) -> None:
    data = load(checkpoints, hotpot_file, loss)
    drawn = data._epoch(0)
    examples, starts = drawn.examples, data._starts(drawn).tolist()
    units = [range(*ends) for ends in pairwise(starts)]
    of_row = {row: unit for unit, rows in enumerate(units) for row in rows}
    seen: list[int] = []
    parts = partial(load, checkpoints, hotpot_file, loss)
    for whole, batches in divided_steps(parts, ranks=2, accumulate=3):
        for batch in batches:
            rows, groups = batch.rows_P.tolist(), batch.groups_P.tolist()
            assert (batch.step_triples, batch.step_groups) == (len(whole.rows_P), len(whole.groups_P.unique()))
            assert [row for row in of_row if of_row[row] in {of_row[r] for r in rows}] == sorted(rows)
            assert len({(of_row[row], group) for row, group in zip(rows, groups, strict=True)}) == len(set(groups))
            assert groups == sorted(groups)
            assert set(groups) == set(range(len(set(groups))))
            assert batch.labels_P.tolist() == [float(examples[row].positive) for row in rows]
        real = [row for batch in batches if batch.weights_P.any() for row in batch.rows_P.tolist()]
        assert sorted(real) == sorted(whole.rows_P.tolist())
        seen += real
    assert sorted(seen) == list(range(len(examples)))
    assert data.units_per_step * data.examples_per_unit == pytest.approx(len(examples) / data.steps_per_epoch)
    assert max(map(len, units)) == (1 if loss == "binary" else 4)


def test_validation_says_which_chains_are_pairs_and_which_belong_together(
    checkpoints: dict[str, Path], hotpot_file: Path
) -> None:
    data = load(checkpoints, hotpot_file, "binary")
    examples = data.validation_triples
    pairs = [e for e, pair in zip(examples, data.validation_pairs, strict=True) if pair]
    assert {len(e.texts) for e in pairs} == {3}
    assert not [e for e in pairs if e.texts[-1] is END]
    assert {e.positive for e in pairs} == {True, False}
    of_group = {
        (group, e.question.id, e.texts[1:-1]) for e, group in zip(examples, data.validation_groups, strict=True)
    }
    assert len(of_group) == len(set(data.validation_groups.tolist()))
    assert data.audit["kinds"].keys() == {"gold", "gold_noise", "noise", "complete", "incomplete"}
    assert data.audit["positives"] + data.audit["negatives"] == data.audit["triples"]
