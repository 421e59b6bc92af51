"""The trainer's precision `auto` follows the hardware and says so."""

import pytest

from trainers.run.trainer import RunTrainer

QUIET = {"logger": False, "accelerator": "cpu", "enable_progress_bar": False}


@pytest.mark.parametrize(
    ("flags", "precision", "said"),
    [
        (["amx_bf16", "avx512_bf16"], "bf16-mixed", "this CPU has amx_bf16 and avx512_bf16; for fp32 type"),
        ([], "32-true", "precision 32-true: this CPU has no bf16 instructions"),
    ],
)
def test_auto_follows_the_cpu(flags, precision, said, monkeypatch, capsys) -> None:
    monkeypatch.setattr("models.devices.bf16_flags", lambda: flags)
    monkeypatch.delenv("LIGHTNING_RAG_PRECISION")
    assert RunTrainer(precision="auto", **QUIET).precision == precision
    assert said in capsys.readouterr().out
