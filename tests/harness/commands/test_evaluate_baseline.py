"""`infer.py evaluate --study.baseline_serving`.

Table 7's rows with a generator that was trained under the retriever's weights.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from common.answer_metrics import exact_match
from datamodules.formats.reading import read_questions
from harness.strategies.rerag import ReRag
from models.rerag.marginal_reader import MarginalReader
from tests.helpers.commands import Ended, command, refused
from tests.helpers.reports import cells
from tests.helpers.reports import questions as records_of
from tests.helpers.rerag_data import fid_rows
from tests.helpers.rerag_world import write_serving

pytestmark = pytest.mark.numeric
OWN = "generator without RE: "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """Serving folders, and six questions with scores; the baseline answers four of them right."""
    root, t5 = tmp_path_factory.mktemp("baseline"), checkpoints["t5"]
    write_serving(t5, root / "joint", max_tokens=96, temperature=0.5)
    write_serving(t5, root / "baseline", estimator=False, max_tokens=96, retriever_temperature=0.25, seed=9)
    write_serving(t5, root / "plain", estimator=False, max_tokens=96)
    write_serving(t5, root / "reranker", generator=None, max_tokens=96)
    rows = fid_rows(6)
    for row in rows:
        for place, item in enumerate(row["ctxs"]):
            item["score"] = place / 4
    file = root / "dev.json"
    file.write_text(json.dumps(rows))
    given = served(root).answer(list(read_questions("fid", str(file))))
    for row, answer in zip(rows[:4], given, strict=False):
        row["answers"] = [answer.text]
    file.write_text(json.dumps(rows))
    return root


def served(folder: Path) -> ReRag:
    return ReRag(None, folder / "baseline", contexts=2, device="cpu")


def measure(folder: Path, *more: str, serving: str = "joint", out: str = "report") -> Ended:
    return command(
        folder, "infer.py", "evaluate", "--strategy", "harness.strategies.rerag.ReRag", "--strategy.serving", serving,
        "--strategy.contexts", "2", "--strategy.device", "cpu", "--questions", "dev.json", "--layout", "fid", "--out",
        out, "--resamples", "20", *more,
    )  # fmt: skip


def ablation(folder: Path, out: str = "report") -> dict[tuple[str, str], float]:
    return {(row, column): value for (table, row, column), value in cells(folder / out).items() if table == "ablation"}


def test_the_baselines_row_is_what_its_folder_answers(folder: Path) -> None:
    ended = measure(folder, "--study.baseline_serving", "baseline")
    assert ended.code == 0, ended.err
    questions = list(read_questions("fid", str(folder / "dev.json")))
    answers = served(folder).answer(questions)
    exact = [exact_match(answer.text, q.answers) for answer, q in zip(answers, questions, strict=True)]
    assert sum(exact) >= 4
    found = ablation(folder)
    assert found[OWN + "Baseline", "EM %, thorough"] == pytest.approx(100 * np.mean(exact), abs=1e-3)
    records = records_of(folder / "report")
    for record, answer in zip(records, answers, strict=True):
        assert record["settings"][OWN + "Baseline"]["thorough"]["text"] == answer.text
    assert "generator without RE: baseline; temperature of the retriever's scores 0.25, as in its training" in ended.out
    gain = found[f"Baseline - {OWN}Baseline", "EM %, thorough"]
    joint = found["Baseline", "EM %, thorough"]
    assert gain == pytest.approx(joint - 100 * np.mean(exact), abs=1e-3)
    assert gain < 0

    plain = measure(folder, out="plain-report")
    assert "All rows use the jointly trained generator, under other weights" in plain.out
    without = ablation(folder, "plain-report")
    assert without == {key: value for key, value in found.items() if OWN not in key[0]}  # the present rows stay


def test_an_interrupted_reading_by_the_baseline_resumes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = MarginalReader
    original, calls = reader.matrices, []

    def counted(self: object, *args: object) -> object:
        calls.append(self)
        if stop_at and len(calls) == stop_at:
            raise KeyboardInterrupt
        return original(self, *args)

    monkeypatch.setattr(reader, "matrices", counted)
    stop_at = 2  # the joint generator's batch, then the baseline's
    assert measure(folder, "--study.baseline_serving", "baseline", out="cut").code == 130
    assert (folder / "cut.partial" / "answers-pools.jsonl").is_file()
    stop_at, calls = 0, []
    measure(folder, "--study.baseline_serving", "baseline", out="cut")
    assert len(calls) == 1
    measure(folder, "--study.baseline_serving", "baseline", out="whole")
    assert ablation(folder, "cut") == ablation(folder, "whole")
    assert not (folder / "cut.partial").exists()


@pytest.mark.parametrize(
    ("more", "code", "part"),
    [
        (("--study.baseline_serving", "nowhere"), 66, "baseline_serving: nowhere is no serving folder"),
        (("--study.baseline_serving", "plain"), 2,
            "plain was trained with relevance not recorded, and Table 7's baseline with"),
        (("--study.baseline_serving", "joint"), 2, "joint was trained with an estimator"),
        (("--study.baseline_serving", "reranker"), 74, "reranker holds no generator"),
        (("--study.baseline_serving", "baseline", "--strategy.serving", "reranker"), 2,
            "with an estimator and a generator only: omit"),
        (("--study.baseline_serving", "baseline", "--strategy.serving", "plain"), 2,
            "with an estimator and a generator only: omit"),
    ],
)  # fmt: skip
def test_other_generators_are_refused(folder: Path, more: tuple[str, ...], code: int, part: str) -> None:
    refused(measure(folder, *more, out="refused"), code, part)
    assert not (folder / "refused").exists()
