"""A system outside this project is trained, asked, evaluated and compared without a change to its files."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.records import Passage
from harness.retrievers.bm25 import build_bm25
from tests.docs.documents import ROOT, fences
from tests.helpers.commands import Ended, command, refused
from tests.helpers.reports import cells

HERE = Path(__file__).parent
CONFIGS = ROOT / "configs/infer"
FILES = (
    "expansion/system.py", "expansion.yaml", "expansion/study.py",
    "expansion/model.py", "expansion/data.py", "expansion/trainer.py", "expansion/trainer_card.md", "train.yaml",
)  # fmt: skip
PASSAGES = [
    Passage.of("Edgar Poe", "wrote the raven"),
    Passage.of("Birthplaces", "Edgar Poe: Boston"),  # shares no word with the question: found by the title alone
    Passage.of("Raven", "a black bird"),
    Passage.of("Author", "someone whose books are read"),
    Passage.of("Boston", "a harbour"),
]
QUESTION = {
    "_id": "q1", "question": "where was the author who wrote the raven born", "answer": "Boston", "type": "bridge",
    "level": "hard", "supporting_facts": [["Edgar Poe", 0], ["Birthplaces", 0]],
    "context": [[each.title, [each.text]] for each in PASSAGES],
}  # fmt: skip


ROOTED = ("--index_root", "indexes/world")  # of the shipped config


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the index that the configs name and a question file; the new system is on the import path."""
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setattr("sys.argv", ["train.py"])  # Lightning warns of others
    build_bm25(PASSAGES, tmp_path / "indexes/world/bm25")
    (tmp_path / "test.json").write_text(json.dumps([QUESTION]))
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "expansion"]:
        del sys.modules[name]


def evaluate(place: Path, *options: str, configs: tuple[Path, ...] = (HERE / "expansion.yaml",)) -> Ended:
    named = [word for config in configs for word in ("--config", str(config))]
    return command(place, "infer.py", "evaluate", *named, "--questions", "test.json", "--out", "report", *options)


def trained(place: Path, *options: str) -> Ended:
    """A run of the system's trainer on the question file."""
    data = [
        word for part in ("train", "validation") for word in (f"--data.{part}", "[{layout: hotpotqa, path: test.json}]")
    ]
    return command(place, "train.py", "fit", "--config", str(HERE / "train.yaml"), *data, *options)


def test_the_page_that_explains_it_prints_its_files() -> None:
    printed = [text for language, text in fences(ROOT / "docs/extend.md") if language in ("python", "yaml", "markdown")]
    assert printed == [(HERE / file).read_text(encoding="utf-8") for file in FILES]


def test_it_is_asked(place: Path) -> None:
    ended = command(
        place, "infer.py", "ask", "--config", str(HERE / "expansion.yaml"), "--question", QUESTION["question"]
    )
    assert ended.code == 0, ended.err
    assert "1. Edgar Poe\n   (stage: first; retriever's rank: 1)" in ended.out
    assert "Birthplaces\n   (stage: second; retriever's rank: 2)" in ended.out
    assert "2 retriever calls" in ended.out


def test_it_is_evaluated_with_its_own_study(place: Path) -> None:
    ended = evaluate(place, "--study.plain_k", "3")
    assert ended.code == 0, ended.err
    report = place / "report"
    found = cells(report)
    assert found["evidence", "recall of gold passages", "4 first %"] == 100
    assert found["expansion", "added", "per question"] == 1
    means = json.loads((report / "report.json").read_text())["means"]
    assert means["expansion"]["recall of gold"] == 1
    assert means["one search"]["recall of gold"] == 0.5
    assert "Passages that one search does not find" in (report / "report.html").read_text()
    assert (report / "questions.jsonl").is_file()


@pytest.mark.parametrize(
    ("option", "parts"),
    [
        (("--study.plain_k", "0"), ["study.plain_k: Not of type PositiveInt"]),
        (("--study.rows", "[QDC]"), ["study.rows is no option of expansion's study; allowed: plain_k"]),
        (("--system.init_args.k", "0"), ["system.k: Not of type PositiveInt"]),
    ],
)
def test_its_options_are_checked_before_anything_is_loaded(
    place: Path, option: tuple[str, str], parts: list[str]
) -> None:
    shutil.rmtree(place / "indexes")
    refused(evaluate(place, *option), 2, *parts)
    assert not (place / "report").exists()


def with_study(place: Path, options: str) -> Path:
    """A copy of the config with options of the study."""
    config = place / "expansion.yaml"
    config.write_text((HERE / "expansion.yaml").read_text() + f"study: {options}\n")
    return config


def test_an_option_of_its_study_that_a_config_misspells_is_refused_in_a_comparison(place: Path) -> None:
    configs = (CONFIGS / "retrieve_read.yaml", with_study(place, "{plan_k: 2}"))
    refused(
        evaluate(place, *ROOTED, configs=configs),
        2,
        "study.plan_k is no option of the study of expansion; allowed: plain_k.",
    )


def test_it_is_compared(place: Path) -> None:
    ended = evaluate(place, *ROOTED, configs=(CONFIGS / "retrieve_read.yaml", with_study(place, "{plain_k: 2}")))
    assert ended.code == 0, ended.err
    found = cells(place / "report")
    assert found["quality", "retrieve_read", "recall of gold %"] == 50
    assert found["quality", "expansion", "recall of gold %"] == 100
    assert found["quality", "expansion: one search", "passages"] == 2
    assert found["differences", "expansion", "recall of gold, points"] == 50
    assert {each.name for each in (place / "report").iterdir() if each.is_dir()} == {"retrieve_read", "expansion"}


def test_its_model_is_trained_exported_and_used(place: Path) -> None:
    options = ("--trainer.max_epochs", "20", "--trainer.accelerator", "cpu", "--trainer.enable_progress_bar", "false")
    ended = trained(place, *options)
    assert ended.code == 0, ended.err
    serving = place / "checkpoints/expansion-world/serving"
    logged = [json.loads(line) for line in (serving.parent / "metrics.jsonl").read_text().splitlines()]
    losses = [row["val/loss_nats"] for row in logged if "val/loss_nats" in row]
    assert losses[-1] < losses[0]
    assert "Chooses the passage of a first search" in (serving / "README.md").read_text()
    ended = evaluate(place, "--system.init_args.serving", str(serving))
    assert ended.code == 0, ended.err
    found = cells(place / "report")
    assert found["evidence", "recall of gold passages", "4 first %"] == 100
    assert found["costs", "expansion", "model calls"] == 1
    (serving / "model.safetensors").write_bytes(b"")
    refused(evaluate(place, "--system.init_args.serving", str(serving)), 74, "model.safetensors is corrupt")


def test_its_trainer_s_options_are_checked(place: Path) -> None:
    refused(trained(place, "--model.learning_rate", "0"), 2, "model.learning_rate: Not of type")
    assert not (place / "checkpoints").exists()


def copied(place: Path, package: str, study: str | None) -> tuple[str, ...]:
    """The system alone, as another package, with this study; its options."""
    (place / package).mkdir()
    text = (HERE / "expansion/system.py").read_text()
    (place / package / "system.py").write_text(text.replace('"expansion.study:Study"', repr(study)))
    return (
        *("--system", f"{package}.system.TitleExpansion"),
        *("--system.retriever", "harness.retrievers.bm25.Bm25Retriever"),
        *("--system.retriever.index", "indexes/world/bm25"),
    )


def test_a_system_without_a_study_is_measured_like_all(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(place))
    options = copied(place, "plain", None)
    ended = evaluate(place, *options, "--study.plain_k", "3", configs=())
    refused(ended, 2, "study.plain_k: plain has no study of its own: omit the option.")
    ended = evaluate(place, *options, configs=())
    assert ended.code == 0, ended.err
    assert cells(place / "report")["evidence", "recall of gold passages", "4 first %"] == 100


def test_a_study_module_without_the_class_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(place))
    options = copied(place, "halfway", "halfway.study:Study")
    (place / "halfway/study.py").write_text('"""No study yet."""\n')
    ended = evaluate(place, *options, configs=())
    refused(ended, 2, "TitleExpansion.study is 'halfway.study:Study', a module and a class")
