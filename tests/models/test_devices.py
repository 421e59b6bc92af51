"""Device and precision selection, and inference in bf16 beside fp32."""

import pytest
import torch

from models.devices import auto_is_bf16, autocast, bf16_flags, compute_dtype, resolve_device
from trainers.run.trainer import RunTrainer

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("device", "gpus", "expected"),
    [
        ("auto", 8, "cuda:3"), ("cuda", 8, "cuda:3"), ("cuda:5", 8, "cuda:5"), ("cpu", 8, "cpu"), ("auto", 0, "cpu"),
        ("auto", 2, "cuda:1"),  # two processes share a GPU
        ("auto", 1, "cuda:0"),  # a launcher that shows each process its own
    ],
)  # fmt: skip
def test_a_process_of_torchrun_takes_the_gpu_of_its_rank(device, gpus, expected, monkeypatch) -> None:
    for name, value in {"WORLD_SIZE": "16", "RANK": "11", "LOCAL_RANK": "3"}.items():
        monkeypatch.setenv(name, value)
    assert resolve_device(device, gpus) == torch.device(expected)


def test_a_single_process_takes_torchs_current_gpu(monkeypatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setenv("LOCAL_RANK", "3")  # a job's shell may have it
    assert resolve_device("auto", 8) == resolve_device("cuda", 8) == torch.device("cuda")


@pytest.mark.parametrize(
    "choose", [lambda: resolve_device("auto", 1), lambda: RunTrainer(accelerator="cpu", logger=False)]
)
def test_cudnn_attends_neither_in_serving_nor_in_training(choose) -> None:
    """It compiles a kernel for every shape of a batch: benchmarks/results/gpu."""
    torch.backends.cuda.enable_cudnn_sdp(True)
    choose()
    assert not torch.backends.cuda.cudnn_sdp_enabled()


@pytest.mark.parametrize("flags", [[], ["amx_bf16"], ["amx_bf16", "avx512_bf16"]])
def test_auto_follows_the_instruction_sets_unless_a_variable_switches_bf16_off(flags, monkeypatch) -> None:
    found = {**dict.fromkeys(flags, True), "avx512_vnni": True}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found)
    assert bf16_flags() == flags
    for variable in (None, "fp32"):
        if variable is None:
            monkeypatch.delenv("LIGHTNING_RAG_PRECISION")
        else:
            monkeypatch.setenv("LIGHTNING_RAG_PRECISION", variable)
        half = bool(flags) and variable is None
        assert auto_is_bf16(CPU)[0] is half
        assert compute_dtype("auto", CPU) is (torch.bfloat16 if half else torch.float32)
        assert compute_dtype("fp32", CPU) is torch.float32
        assert compute_dtype("bf16", CPU) is torch.bfloat16  # slow where it is emulated, but as asked


def test_no_dtype_keeps_the_callers_autocast() -> None:
    product = torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with autocast(CPU, None):
            assert (product @ product).dtype is torch.bfloat16
        with autocast(CPU, torch.float32):
            assert (product @ product).dtype is torch.float32
    with autocast(CPU, torch.bfloat16):
        assert (product @ product).dtype is torch.bfloat16
