"""Commands and options of earlier releases: one line that says what to type now; nothing is written."""

from pathlib import Path

import pytest

from tests.docs.documents import ROOT
from tests.helpers.commands import command, refused

CONFIG = str(ROOT / "configs/infer/bm25_world.yaml")
TYPED = ("--config", CONFIG, "--questions", "q.json", "--out", "report")
OPTIONS = (
    *("rows", "bm25", "scores"),
    *("temperature_questions", "temperature_limit", "encoder", "baseline_serving"),
)


def tried(folder: Path, *arguments: str) -> str:
    line = refused(command(folder, "infer.py", *arguments), 2)
    assert list(folder.iterdir()) == []
    return line


def test_answers_is_now_evaluate(tmp_path: Path) -> None:
    line = tried(tmp_path, "answers", *TYPED)
    assert line.endswith("(renamed since an earlier release; now: evaluate).")
    assert "command 'answers' is unknown" in line


def test_the_options_given_to_answers_are_renamed_with_it(tmp_path: Path) -> None:
    line = tried(tmp_path, "answers", *TYPED, "--encoder=e", "--temperature_limit", "20", "--ks", "[1]")
    assert line.endswith("now: evaluate --study.encoder --study.temperature_limit).")


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_of_a_study_is_named(tmp_path: Path, option: str) -> None:
    line = tried(tmp_path, "evaluate", *TYPED, f"--{option}", "20")
    assert f"--{option}: no such option" in line
    assert line.endswith(f"(renamed since an earlier release; now: --study.{option}).")


def test_in_a_config_too(tmp_path: Path) -> None:
    config = tmp_path.parent / "of_an_earlier_release.yaml"
    config.write_text(Path(CONFIG).read_text() + "rows: [QDC]\n")
    line = tried(tmp_path, "evaluate", f"--config={config}", *TYPED[2:])
    assert line.endswith("(renamed since an earlier release; now: --study.rows).")


@pytest.mark.parametrize("option", ["encoder", "scores"])
def test_another_command_is_not_advised(tmp_path: Path, option: str) -> None:
    line = tried(tmp_path, "ask", "--config", CONFIG, "--question", "x", f"--{option}", "e")
    assert "renamed" not in line
