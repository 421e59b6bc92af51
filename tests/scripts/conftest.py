"""Scripts that are modules, run in this process."""

import sys
from collections.abc import Callable
from types import ModuleType

import pytest


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a module's `main` with arguments; what it prints."""

    def main(module: ModuleType, *arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, arguments)])
        module.main()
        return capsys.readouterr().out

    return main
