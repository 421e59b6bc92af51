"""Devices and precision: chosen, announced, kept; inference on several threads."""

import threading
import time
from collections.abc import Iterator

import pytest
import torch

from models.devices import auto_is_bf16, autocast, bf16_flags, compute_dtype, resolve_device
from models.parallel_batches import each_batch
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
def test_auto_follows_the_instruction_sets_unless_a_variable_switches_bf16_off(flags, monkeypatch, capsys) -> None:
    found = {**dict.fromkeys(flags, True), "avx512_vnni": True}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found)
    assert bf16_flags() == flags
    for variable in ("fp32", None):
        if variable is None:
            monkeypatch.delenv("LIGHTNING_RAG_PRECISION")
        half = bool(flags) and variable is None
        assert auto_is_bf16(CPU)[0] is half
        assert compute_dtype("auto", CPU) is (torch.bfloat16 if half else torch.float32)
        assert compute_dtype("fp32", CPU) is torch.float32
        assert compute_dtype("bf16", CPU) is torch.bfloat16  # slow where it is emulated, but as asked
    training = RunTrainer(precision="auto", logger=False, accelerator="cpu", enable_progress_bar=False)
    assert training.precision == ("bf16-mixed" if flags else "32-true")
    said = f"{' and '.join(flags)}; for fp32 type" if flags else "no bf16 instructions"
    assert f"this CPU has {said}" in capsys.readouterr().out


def test_no_dtype_keeps_the_callers_autocast() -> None:
    product, half = torch.ones(2, 2), torch.bfloat16
    for outside, inside, expected in ((True, None, half), (True, torch.float32, torch.float32), (False, half, half)):
        with torch.autocast("cpu", dtype=half, enabled=outside), autocast(CPU, inside):
            assert (product @ product).dtype is expected


@pytest.fixture
def two_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("two_threads")
def test_results_come_in_order_from_threads_of_one_core_each() -> None:
    used: set[int] = set()

    def work(batch: int) -> tuple[int, int]:
        used.add(threading.get_ident())
        time.sleep(0.02 if batch % 2 else 0.001)  # the first to start is not the first to end
        return batch * batch, torch.get_num_threads()

    found = list(each_batch(work, range(9), CPU))
    assert found == [(batch, (batch * batch, 1)) for batch in range(9)]
    assert len(used) == 2
    assert threading.get_ident() not in used
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_an_error_is_raised_and_what_waits_is_not_computed() -> None:
    begun: list[int] = []

    def work(batch: int) -> None:
        begun.append(batch)
        time.sleep(0.01)
        if batch == 1:
            raise ValueError("batch 1")

    with pytest.raises(ValueError, match="batch 1"):
        list(each_batch(work, range(50), CPU))
    assert len(begun) < 50
    assert torch.get_num_threads() == 2
