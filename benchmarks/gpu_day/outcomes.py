"""A plugin of pytest that writes each test's outcome at once, so that a killed run leaves those it had.

    python -m pytest -p benchmarks.gpu_day.outcomes --outcomes FILE

The file: {"outcomes": {test: passed, failed or skipped}, "why": {test: an error's message, or a skip's reason}}.
"""

import json
from pathlib import Path

import pytest

from common.files import write_text


class Outcomes:
    """Collects outcomes.

    Args:
        file: Where they go.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.outcomes: dict[str, str] = {}
        self.why: dict[str, str] = {}
        self.write()

    def write(self) -> None:
        """What there is so far."""
        write_text(self.file, json.dumps({"outcomes": self.outcomes, "why": self.why}, indent=1))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a test's outcome; an error before or after it counts as failed."""
        if report.when != "call" and report.passed:
            return
        if self.outcomes.get(report.nodeid) != "failed":
            self.outcomes[report.nodeid] = report.outcome
        if not report.passed:
            skipped = isinstance(report.longrepr, tuple)
            text = report.longrepr[2] if skipped else getattr(report.longrepr, "reprcrash", report.longrepr)
            self.why[report.nodeid] = str(getattr(text, "message", text))[:500]
        self.write()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option."""
    parser.addoption("--outcomes", type=Path)


def pytest_configure(config: pytest.Config) -> None:
    """Collect, in the process that hears of all tests."""
    file = config.getoption("--outcomes")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcomes(file))
