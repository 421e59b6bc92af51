"""Planned weights and activations against networks that are loaded and used, and against torch's own profiler."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from common.records import Passage
from harness.indexing.sentence_encoder import SentenceEncoder, encoder_memory, pool_tokens
from models.drrag.classifier_memory import classifier_memory
from models.drrag.triple_classifier import TripleClassifier
from models.live_memory import Compute, LiveBytes, PartMemory, batch_size
from models.rerag.marginal_reader import MarginalReader
from models.rerag.model import ReRagModel
from models.rerag.model_memory import model_memory
from tests.conftest import NAMES
from tests.helpers.planned_world import save_classifier, save_model
from tests.helpers.retrieval_world import write_encoder

THREADS = 2


def weights_of(network: nn.Module) -> int:
    return sum(tensor.nbytes for tensor in (*network.parameters(), *network.buffers()))


def live(network: nn.Module, run: Callable[[], object], half: bool) -> int:
    """Largest sum of the tensors alive while a loaded network computes, autocast's copies of weights included."""
    counted = LiveBytes([*network.parameters(), *network.buffers()])
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=half), counted:
        run()
    return counted.peak


def profiled(run: Callable[[], object], trace: Path) -> int:
    """The same by torch's profiler, from every allocation on the CPU."""
    with torch.inference_mode():
        run()  # what is made once
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
            run()
    profiler.export_chrome_trace(str(trace))
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("name") == "[memory]"]
    alive = peak = 0
    for event in sorted(events, key=lambda event: event["ts"]):
        alive += event["args"]["Bytes"]
        peak = max(peak, alive)
    return peak


def batch(rows: int, tokens: int) -> tuple[Tensor, Tensor]:
    ids, attention = torch.full((rows, tokens), 5), torch.ones(rows, tokens, dtype=torch.long)
    attention[:, -3:] = 0
    return ids, attention


def agrees(planned: PartMemory, measured: int) -> None:
    """Autocast keeps its copies of weights to the end, so they are a part of the peak."""
    assert planned.batch + planned.copies == pytest.approx(measured, rel=0.15 if planned.copies else 0.05)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(
    ("family", "attention", "tokens"),
    [("bert", "auto", 64), ("bert", "full", 64), ("bert", "block_sparse", 64), ("longformer", "auto", 64)],
)
def test_a_classifier(
    checkpoints: dict[str, Path], tmp_path: Path, family: str, attention: str, tokens: int, half: bool
) -> None:
    built = TripleClassifier.build(str(checkpoints[family]), tokens, attention)  # type: ignore[arg-type]
    serving = save_classifier(tmp_path / "serving", built, attention)
    planned = classifier_memory(serving, 1000, Compute(on_gpu=False, half=half, threads=THREADS))
    loaded = TripleClassifier.load(serving, "cpu", precision="fp32")
    assert planned.weights == weights_of(loaded.network)
    assert planned.batches_at_once == THREADS
    padded = loaded.padded_length(tokens)
    ids, attention_mask = batch(2048 // padded, padded)
    agrees(planned, live(loaded.network, lambda: loaded(ids, attention_mask), half))
    assert bool(planned.copies) is half


@pytest.mark.parametrize(("family", "half"), [("bert", False), ("longformer", False), ("t5", False), ("t5", True)])
def test_an_estimator_and_a_generator(checkpoints: dict[str, Path], tmp_path: Path, family: str, half: bool) -> None:
    serving, questions, contexts = save_model(tmp_path / "serving", checkpoints, family), 3, 40
    loaded = ReRagModel.load(serving, "cpu", precision="bf16" if half else "fp32")
    assert loaded.estimator is not None
    assert loaded.generator is not None
    planned = model_memory(serving, Compute(False, half, THREADS), questions, 100, contexts, scored=True)
    assert planned["estimator"].weights == weights_of(loaded.estimator.network)
    assert planned["generator"].weights == weights_of(loaded.generator.network)
    agrees(planned["estimator"], live(loaded.estimator.network, lambda: loaded.estimator(*batch(32, 64)), half))  # type: ignore[misc]

    passages = [Passage.of(name, "the film . " * (14 + row % 4)) for row, name in enumerate(NAMES[:contexts])]
    reader = MarginalReader(loaded.generator, "thorough", loaded.max_answer_tokens)
    reader.read(["who"], [passages[:1]], [[0.0]])  # what is made once
    measured = live(
        loaded.generator.network, lambda: reader.matrices(["who"] * questions, [passages] * questions), half=False
    )
    counted = planned["generator"]
    assert counted.kept > 0
    assert 0.9 * measured < counted.activations < 1.3 * measured


@pytest.mark.parametrize("half", [False, True])
def test_an_encoder(tmp_path: Path, half: bool) -> None:
    name = write_encoder(tmp_path / "encoder")
    loaded = SentenceEncoder(name, "cpu", precision="fp32")
    planned = encoder_memory(name, loaded.max_tokens, 5000, 512, Compute(False, half, THREADS))
    assert planned.weights == weights_of(loaded.model)
    ids, attention = batch(512 // loaded.max_tokens, loaded.max_tokens)

    def encode() -> None:
        pool_tokens(loaded.model(input_ids=ids, attention_mask=attention).last_hidden_state, attention, "mean")

    agrees(planned, live(loaded.model, encode, half))


def test_torchs_profiler_counts_the_same(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    serving = save_classifier(tmp_path / "serving", TripleClassifier.build(str(checkpoints["bert"]), 64))
    planned = classifier_memory(serving, 1000, Compute(False, False, 1))
    loaded = TripleClassifier.load(serving, "cpu", precision="fp32")
    ids, attention = batch(32, 64)
    assert profiled(lambda: loaded(ids, attention), tmp_path / "trace.json") == pytest.approx(planned.batch, rel=0.1)


@pytest.mark.parametrize(
    ("rows", "tokens", "on_gpu", "expected"),
    [(1000, 64, False, (32, 4)), (10, 64, False, (10, 1)), (40, 64, False, (32, 2)), (1000, 64, True, (32, 1)),
        (5, 9999, False, (1, 4))],
)  # fmt: skip
def test_the_largest_batch(rows: int, tokens: int, on_gpu: bool, expected: tuple[int, int]) -> None:
    assert batch_size(rows, tokens, 2048, Compute(on_gpu, False, 4)) == expected
