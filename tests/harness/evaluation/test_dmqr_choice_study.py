"""DMQR-RAG's study of a system that chooses strategies: with and without the choice."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from common.records import Question
from common.rewrites import Rewrites
from harness.evaluation.dmqr.search import restricted
from harness.evaluation.dmqr.study import Study
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from tests.helpers.rewriting_study import (
    ASKED,
    CORPUS,
    STRATEGIES,
    TABLE,
    Titles,
    counted,
    measured,
    system,
    table,
    value,
)
from tests.helpers.table_rewriter import TableRewriter
from tests.helpers.word_scorer import WordScorer


@pytest.fixture(scope="module")
def bm25(tmp_path_factory: pytest.TempPathFactory) -> Bm25Retriever:
    folder = tmp_path_factory.mktemp("index") / "bm25"
    build_bm25(CORPUS, folder)
    return Bm25Retriever(folder)


class ChoosesByLength:
    """A rewriter that chooses strategies by the number of letters of the question."""

    adaptive, name = True, "by length"

    def __init__(self) -> None:
        self.inner = TableRewriter(TABLE)

    def without_choice(self) -> TableRewriter:
        return self.inner

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        """One record per question."""
        return [
            restricted(made, strategies[: len(question.text) % 4])
            for question, made in zip(questions, self.inner.rewrite(questions, strategies), strict=True)
        ]


def test_a_system_that_chooses_is_measured_with_and_without_the_choice(bm25: Bm25Retriever, tmp_path: Path) -> None:
    options = {"strategies": STRATEGIES, "judged_by": "kwr", "reader": Titles()}
    strategy = system(bm25, WordScorer(), rewriter=ChoosesByLength(), **options)
    found = measured(strategy, tmp_path, rows=["kwr"])
    assert list(table(found, "methods").rows) == ["OQR", "OQR deep", "all strategies", "kwr", "DMQR-RAG"]
    for name, rewriter in {"dmqr": ChoosesByLength(), "all strategies": TableRewriter(TABLE)}.items():
        expected = system(bm25, WordScorer(), rewriter=rewriter, **options).answer(ASKED)
        for one, other in zip(found.systems[name], expected, strict=True):
            assert (one.evidence, one.text) == (other.evidence, other.text)
            assert counted(one) == counted(other)
    choice, methods = table(found, "choice"), table(found, "methods")
    assert choice.columns == ("rewrites", "different queries", "H@4 %", "P@4 %", "EM %", "F1 %")
    chosen = [len(each.text) % 4 for each in ASKED]
    assert value(found, "choice", "with choice", "rewrites") == pytest.approx(np.mean(chosen))
    assert value(found, "choice", "all strategies", "rewrites") == 3
    assert value(found, "choice", "difference", "rewrites") == pytest.approx(np.mean(chosen) - 3)
    for row, of in (("with choice", "DMQR-RAG"), ("all strategies", "all strategies")):
        for column in choice.columns[2:]:
            assert value(found, "choice", row, column) == value(found, "methods", of, column)
        queries = methods.rows[of][methods.columns.index("queries")]
        assert queries is not None
        assert value(found, "choice", row, "different queries") == pytest.approx(queries.value - 1)
    differences = table(found, "methods - all strategies")
    for column in choice.columns[2:]:
        own, name = choice.rows["difference"][choice.columns.index(column)], f"{column[:-2]}, points"
        assert own == differences.rows["DMQR-RAG"][differences.columns.index(name)]
    fewer = 100 * (1 - np.mean(chosen) / 3)
    assert f"{fewer:.0f}% fewer rewrites" in choice.note
    assert value(found, "rewrites", "DMQR-RAG", "strategies") == pytest.approx(np.mean(chosen))
    found.findings.plots["choice.png"](tmp_path / "choice.png")
    found.findings.plots["rewrites.png"](tmp_path / "rewrites.png")
    assert (tmp_path / "choice.png").stat().st_size > 5000
    with pytest.raises(UserError, match="'all strategies' is the name of another row"):
        Study(rewriters={"all strategies": tmp_path}).check(strategy, tmp_path, "hotpotqa")
    alone = measured(strategy, tmp_path / "alone", rows=[])
    assert list(alone.systems) == ["dmqr"]
    assert not any(each.name == "choice" for each in alone.findings.tables)
