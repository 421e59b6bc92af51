"""Device and precision selection, and inference in bf16 beside fp32."""

from pathlib import Path

import numpy as np
import pytest
import torch

from common.errors import UserError
from common.records import Passage
from harness.indexing.sentence_encoder import SentenceEncoder
from models.cross_encoder import RelevanceEstimator
from models.devices import auto_is_bf16, autocast, bf16_flags, compute_dtype, resolve_device
from models.drrag.triple_classifier import TripleClassifier
from models.rerag.generator import Generator
from tests.conftest import NAMES

CPU = torch.device("cpu")
PASSAGES = [Passage.of(name, f"{name} was born in the city of {NAMES[-1 - i]} .") for i, name in enumerate(NAMES[:24])]


@pytest.mark.parametrize(
    ("device", "gpus", "expected"),
    [
        ("auto", 8, "cuda:3"), ("cuda", 8, "cuda:3"), ("cuda:5", 8, "cuda:5"), ("cpu", 8, "cpu"), ("auto", 0, "cpu"),
        ("auto", 2, "cuda:1"),  # two processes share a GPU
        ("auto", 1, "cuda:0"),  # a launcher that shows each process its own
    ],
)  # fmt: skip
def test_a_process_of_torchrun_takes_the_gpu_of_its_rank(device: str, gpus: int, expected: str, monkeypatch) -> None:
    for name, value in {"WORLD_SIZE": "16", "RANK": "11", "LOCAL_RANK": "3"}.items():
        monkeypatch.setenv(name, value)
    assert resolve_device(device, gpus) == torch.device(expected)


def test_a_single_process_takes_torchs_current_gpu(monkeypatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setenv("LOCAL_RANK", "3")  # a job's shell may have it
    assert resolve_device("auto", 8) == resolve_device("cuda", 8) == torch.device("cuda")


@pytest.mark.parametrize(
    ("device", "gpus", "message"),
    [
        ("cuda", 0, "device is 'cuda', but torch sees 0 GPUs"),
        ("cuda:8", 8, "device is 'cuda:8', but torch sees 8 GPUs"),
        ("gpu", 8, "device 'gpu' is unknown; allowed: auto, cpu, cuda, cuda:N"),
        ("cuda:-1", 8, "device 'cuda:-1' is unknown"),
    ],
)
def test_an_impossible_device_is_refused(device: str, gpus: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        resolve_device(device, gpus)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [([], torch.float32), (["amx_bf16"], torch.bfloat16), (["amx_bf16", "avx512_bf16"], torch.bfloat16)],
)
def test_auto_follows_the_instruction_sets(flags: list[str], expected: torch.dtype, monkeypatch) -> None:
    monkeypatch.setattr("models.devices.bf16_flags", lambda: flags)
    monkeypatch.delenv("LIGHTNING_RAG_PRECISION")
    assert auto_is_bf16(CPU)[0] is bool(flags)
    assert compute_dtype("auto", CPU) is expected
    assert compute_dtype("fp32", CPU) is torch.float32
    assert compute_dtype("bf16", CPU) is torch.bfloat16  # slow where it is emulated, but as asked


def test_flags_are_those_of_the_cpu(monkeypatch) -> None:
    found = {"avx512_bf16": True, "amx_bf16": False, "avx512_vnni": True}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found)
    assert bf16_flags() == ["avx512_bf16"]


def test_a_variable_switches_bf16_off(monkeypatch) -> None:
    monkeypatch.setattr("models.devices.bf16_flags", lambda: ["amx_bf16"])
    monkeypatch.setenv("LIGHTNING_RAG_PRECISION", "fp32")
    assert auto_is_bf16(CPU) == (False, "LIGHTNING_RAG_PRECISION is fp32")
    assert compute_dtype("auto", CPU) is torch.float32
    assert compute_dtype("bf16", CPU) is torch.bfloat16
    monkeypatch.setenv("LIGHTNING_RAG_PRECISION", "bf8")
    with pytest.raises(UserError, match="LIGHTNING_RAG_PRECISION 'bf8' is unknown; allowed: auto, fp32"):
        compute_dtype("auto", CPU)


def test_no_dtype_keeps_the_callers_autocast() -> None:
    product = torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with autocast(CPU, None):
            assert (product @ product).dtype is torch.bfloat16
        with autocast(CPU, torch.float32):
            assert (product @ product).dtype is torch.float32
    with autocast(CPU, torch.bfloat16):
        assert (product @ product).dtype is torch.bfloat16


@pytest.mark.parametrize("family", ["bert", "big_bird", "longformer"])
def test_a_classifier_in_bf16_scores_nearly_as_in_fp32(family: str, checkpoints: dict[str, Path]) -> None:
    torch.manual_seed(0)
    classifier = TripleClassifier.build(str(checkpoints[family]), 64).eval()
    triples = [("where is name1", PASSAGES[i], PASSAGES[i + 1]) for i in range(len(PASSAGES) - 1)]
    check_close(lambda: classifier.probabilities(triples), classifier, 0.02)


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_an_estimator_in_bf16_scores_nearly_as_in_fp32(family: str, checkpoints: dict[str, Path]) -> None:
    torch.manual_seed(0)
    estimator = RelevanceEstimator.build(str(checkpoints[family]), 64, dropout=0.0).eval()
    check_close(lambda: estimator.scores([("where is name1", p) for p in PASSAGES]), estimator, 0.1)


def test_a_generator_in_bf16_scores_its_answers_nearly_as_in_fp32(checkpoints: dict[str, Path]) -> None:
    torch.manual_seed(0)
    generator = Generator.build(str(checkpoints["t5"]), 64, dropout=0.0).eval()
    rows = [("where is name1", (p,)) for p in PASSAGES]
    answers = generator.answers(rows, 4)
    generator.inference_dtype = torch.bfloat16
    halved = dict(zip(rows, generator.answers(rows, 4), strict=True))
    same = [(logp, halved[row][1]) for row, (text, logp) in zip(rows, answers, strict=True) if halved[row][0] == text]
    assert len(same) > len(rows) // 2
    assert all(one == pytest.approx(other, rel=0.05) for one, other in same)
    assert any(one != other for one, other in same)


def test_an_encoder_in_bf16_keeps_the_nearest_passages(encoder_folder: str) -> None:
    plain, halved = (SentenceEncoder(encoder_folder, "cpu", precision=each) for each in ("fp32", "bf16"))
    texts = [passage.text for passage in PASSAGES]
    one, other = plain.encode_passages(texts), halved.encode_passages(texts)
    assert other.dtype == np.float32
    assert not np.array_equal(one, other)
    cosine = (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    assert cosine.min() > 0.999
    assert (plain.dtype, halved.dtype) == ("float32", "bfloat16")


def check_close(score, model, tolerance: float) -> None:
    """bf16 gives other scores than fp32, but not by more than the tolerance; heads in fp32 keep them distinct."""
    plain = np.array(score())
    model.inference_dtype = torch.float32
    np.testing.assert_array_equal(score(), plain)
    model.inference_dtype = torch.bfloat16
    halved = np.array(score())
    assert not np.array_equal(plain, halved)
    np.testing.assert_allclose(halved, plain, atol=tolerance)
