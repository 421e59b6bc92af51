"""Mistakes in the options of the adaptive choice: one line, before anything is loaded, and nothing is written."""

import json
from pathlib import Path

import pytest
import yaml

from tests.conftest import hotpot_rows
from tests.helpers.choosers import save_chooser
from tests.helpers.commands import Ended, command
from tests.helpers.preference_files import greedy_preferences, write_preferences
from tests.helpers.river_corpus import write_index

REWRITER = {"class_path": "harness.rewriters.file.FileRewriter", "init_args": {"rewrites": "made.jsonl"}}
KEY = "--strategy.init_args.rewriter.init_args."


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    root = tmp_path_factory.mktemp("choice")
    write_index(root)
    (root / "bert").symlink_to(checkpoints["bert"])
    (root / "dev.json").write_text(json.dumps(hotpot_rows(2)))
    made = [{"question": "alba river", "strategy": name, "rewrite": f"{name} alba"} for name in ("gqr", "kwr")]
    (root / "made.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    save_chooser(checkpoints["bert"], root / "serving", ("kwr", "par"), threshold=0.0)
    write_preferences(
        root / "preferences", [row for n in range(20) for row in greedy_preferences(f"who is name{n}", {"kwr": 0.5})]
    )
    options = {
        "retriever": {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": "bm25"}},
        "rewriter": {
            "class_path": "harness.rewriters.adaptive.AdaptiveRewriter",
            "init_args": {"rewriter": REWRITER, "serving": "serving"},
        },
        "strategies": ["kwr"],
        "fusion": "rrf",
    }
    config = {"strategy": {"class_path": "harness.strategies.dmqr.Dmqr", "init_args": options}}
    (root / "config.yaml").write_text(yaml.safe_dump(config))
    return root


def run(place: Path, name: str, *more: str) -> Ended:
    own = {"ask": ("--question", "alba river"), "evaluate": ("--questions", "dev.json", "--out", "out")}
    return command(place, "infer.py", name, "--config", "config.yaml", *own[name], *more)


def test_a_choice_around_a_file_s_rewrites(place: Path) -> None:
    """The same options without a mistake work.

    The strategy is chosen, and the reason is shown, also where nothing is chosen.
    """
    chosen = run(place, "ask", "--width", "200")
    assert chosen.code == 0, chosen.err
    assert "kwr: kwr alba" in chosen.out
    assert "Reason for these queries: kwr by P of at least 0.00: kwr 0." in chosen.out
    nothing = run(place, "ask", "--width", "200", f"{KEY}threshold", "1")
    assert "kwr alba" not in nothing.out
    assert "Reason for these queries: no strategy by P of at least 1.00: kwr 0." in nothing.out
    general = run(
        place, "ask", "--strategy.init_args.strategies", "[kwr,gqr]", f"{KEY}always", "[gqr]", f"{KEY}threshold", "1"
    )
    assert "gqr: gqr alba" in general.out
