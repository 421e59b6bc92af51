"""The memory estimate against what autograd keeps and the largest batch that is loaded; limits of containers."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from datamodules.drrag import DrRagData
from datamodules.examples.splits import QuestionSource
from models.device_memory import _cgroup_rooms, available_bytes
from models.drrag.triple_classifier import TripleClassifier
from tests.helpers.tiny_runs import set_up
from trainers.run.memory_estimate import activation_bytes, saved_bytes


def kept(classifier: TripleClassifier, rows: int, tokens: int, half: bool = False) -> int:
    """What autograd keeps of a real forward pass on this CPU, without autocast's copies of the weights."""
    ids = torch.randint(5, 60, (rows, tokens))
    attention = torch.ones_like(ids)
    attention[:, -3:] = 0
    linear = [m for m in classifier.network.modules() if type(m) is torch.nn.Linear and m.weight.requires_grad]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
        saved = saved_bytes(classifier.network, lambda network: network(input_ids=ids, attention_mask=attention).logits)
    return saved - half * sum(2 * module.weight.numel() for module in linear)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(
    ("family", "attention", "dropout", "tokens"),
    [
        ("bert", "fused", 0.0, 80),
        ("bert", "fused", 0.1, 80),
        ("bert", "full", 0.0, 80),
        ("bert", "block_sparse", 0.0, 832),
        ("longformer", "auto", 0.0, 80),
        ("longformer", "auto", 0.1, 80),
    ],
)
def test_the_plan_counts_what_autograd_keeps(
    checkpoints: dict[str, Path], family: str, attention: Any, dropout: float, tokens: int, half: bool
) -> None:
    classifier = TripleClassifier.build(str(checkpoints[family]), 96, attention, dropout=dropout).train()
    planned = activation_bytes(classifier.network, 3, tokens, 0, half)
    assert planned == pytest.approx(kept(classifier, 3, tokens, half), rel=0.1)
    assert activation_bytes(classifier.network, 6, tokens, 0, half) == pytest.approx(2 * planned, rel=0.1)


@pytest.mark.parametrize("family", ["bert", "longformer"])
def test_recomputed_activations_are_the_layers_inputs_and_one_layer(checkpoints: dict[str, Path], family: str) -> None:
    classifier = TripleClassifier.build(str(checkpoints[family]), 96, dropout=0.0).train()
    whole = activation_bytes(classifier.network, 3, 80, 0, half=False)
    classifier.network.activation_checkpointing_enable({"use_reentrant": False})
    inputs = kept(classifier, 3, 80)
    planned = activation_bytes(classifier.network, 3, 80, 0, half=False)
    assert inputs < planned < whole
    assert planned == pytest.approx(inputs + (whole - inputs) / 2, rel=0.1)  # of two layers


@pytest.mark.parametrize("attention", ["fused", "block_sparse"])
def test_batches_are_as_long_as_their_longest_row_and_the_largest_is_known(
    checkpoints: dict[str, Path], hotpot_file: Path, attention: Any
) -> None:
    classifier = TripleClassifier.build(str(checkpoints["bert"]), 5000, attention)
    data = DrRagData([QuestionSource("hotpotqa", str(hotpot_file))], validation_fraction=0.3, tokens_per_step=500)
    set_up(data, SimpleNamespace(classifier=classifier, listwise=False), accumulate=2)  # type: ignore[arg-type]
    shapes = [tuple(batch.ids_PT.shape) for batch in (*data.train_dataloader(), *data.val_dataloader())]
    assert max(tokens for _, tokens in shapes) == (832 if attention == "block_sparse" else 40)
    rows, tokens = data.largest_batch()
    real = max(rows * tokens for rows, tokens in (tuple(b.ids_PT.shape) for b in data.train_dataloader()))
    assert rows * tokens == pytest.approx(real, rel=0.15)  # without the padding to a multiple of 8


def test_limits_of_containers_count(tmp_path: Path) -> None:
    def group(path: str, limit: str, used: int, files: int, version_1: bool = False) -> None:
        folder = tmp_path / "root" / path
        folder.mkdir(parents=True, exist_ok=True)
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if version_1 else ("memory.max", "memory.current")
        for name, value in zip(names, (limit, used), strict=True):
            (folder / name).write_text(f"{value}\n")
        (folder / "memory.stat").write_text(f"anon 5\ninactive_file {files}\n")

    membership = tmp_path / "cgroup"
    membership.write_text("0::/slurm/job_1/step_0\n")
    assert _cgroup_rooms(membership, tmp_path / "root") == []
    group("slurm/job_1", "9000", 2000, 500)
    group("slurm/job_1/step_0", "max", 1000, 0)
    group("slurm", "20000", 5000, 0)
    assert sorted(_cgroup_rooms(membership, tmp_path / "root")) == [7500, 15000]
    membership.write_text("3:cpu,cpuacct:/a\n7:memory:/docker/x\n")
    group("memory/docker/x", "4000", 1000, 250, version_1=True)
    assert _cgroup_rooms(membership, tmp_path / "root") == [3250]
    assert _cgroup_rooms(tmp_path / "none", tmp_path / "root") == []


def test_this_machine_says_what_is_free() -> None:
    if not Path("/proc/meminfo").is_file():
        pytest.skip("not Linux")
    free = available_bytes(torch.device("cpu"))
    assert free is not None
    assert 2**20 < free < 2**50
