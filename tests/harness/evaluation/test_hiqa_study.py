"""HiQA's study over indexes of small documents: rows, differences, kinds, degradation, tuned weights.

Hand-worked scores; refusals.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from common.chat import Chat
from common.errors import ArtifactError, MissingInputError, UserError
from common.records import Answer, Gold, GoldSegment, Passage, Question, Ranked
from documents.records import Segment, as_passage
from harness.evaluation.engine import ask_rows
from harness.evaluation.hiqa import tables as hiqa
from harness.evaluation.hiqa.study import KINDS, OWN, Study, kept_documents
from harness.evaluation.judge import Judge
from harness.evaluation.retrieval_scores import gold_places
from harness.evaluation.settings import Bootstrap, Settings
from harness.evaluation.study import build
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.dense import DenseRetriever, build_dense
from harness.retrievers.keywords import KeywordRetriever, build_keywords
from harness.retrievers.multi_route import MultiRouteRetriever
from harness.runtime.memo import Memo
from harness.systems.hiqa import HiQa
from harness.tuning.hiqa import ALPHAS, BETAS, Tuning, best_weights, grid, rank_of
from tests.helpers.scripted_lm import ScriptedLm
from tests.helpers.studied import Titles, counted, rows_of, studied

PRODUCTS = [f"Alto {number}00" for number in range(1, 7)]
QUESTIONS = [
    Question(str(n), f"weight of the {name}", ("9 kg",), kind="table" if n % 2 else "descriptive",
             gold=Gold(segments=(GoldSegment(f"{name}.pdf", (f"{n + 3} kg",)),)))
    for n, name in enumerate(PRODUCTS)
]  # fmt: skip
SETTINGS = Settings("flashrag", "squad", (1,), None, Bootstrap(50), Path("unused"))


def passages(cascade: bool) -> list[Passage]:
    made = []
    for n, name in enumerate(PRODUCTS):
        for heading, text in (("Weight", f"it weighs {n + 3} kg"), ("Care", "clean it with water")):
            segment = Segment(f"{name}.pdf", name, (heading,), "text", text, text, 1, 1)
            made.append(as_passage(segment, segment.path if cascade else ()))
    return made


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, encoder: SentenceEncoder) -> dict[str, Path]:
    folders = {name: tmp_path_factory.mktemp(name) for name in ("path", "none")}
    for name, folder in folders.items():
        build_dense(passages(name == "path"), folder / "dense", encoder)
        build_bm25(passages(name == "path"), folder / "bm25")
        # without metadata no passage holds a product's name, and "kg" is the only word of the list
        (folder / "keywords.txt").write_text("\n".join([*PRODUCTS, "kg"]))
        build_keywords(passages(name == "path"), folder / "keywords", given=folder / "keywords.txt")
    return folders


def routes(folder: Path) -> tuple[DenseRetriever, Bm25Retriever, KeywordRetriever]:
    dense, words, keywords = (folder / kind for kind in KINDS)
    return DenseRetriever(dense, "cpu"), Bm25Retriever(words), KeywordRetriever(keywords)


@pytest.fixture(scope="module")
def retriever(folders: dict[str, Path]) -> MultiRouteRetriever:
    return MultiRouteRetriever(*routes(folders["path"]), alpha=0.2, beta=1.0)


def ranked(retriever: Any, asked: Sequence[Question] = QUESTIONS, sizes: Any = (), **study: Any) -> dict[str, Any]:
    """The scores at k 1 by column: the whole index, "1 documents", "7 words"."""
    measuring = Study(k=1, **{"budgets": ()} | study)
    row, *_ = measuring.rows_of(HiQa(retriever))
    return measuring.ranked(row, asked, {f"{size} documents": size for size in sizes})


def test_rows_tables_and_differences(retriever: MultiRouteRetriever, folders: dict[str, Path]) -> None:
    """A passage has four words, with its path three more: 14 words hold two of them, or three without the path."""
    study = Study({"no metadata": folders["none"]}, k=1, documents=[2, 4, 6, 99], budgets=(7, 14))
    findings = studied(study, HiQa(retriever, k=3), QUESTIONS, SETTINGS)
    ranking, *_ = findings.tables
    assert list(ranking.rows) == [OWN, "vectors only", "BM25 only", "without keywords", "segments alone", "no metadata"]
    found = {table.name: rows_of(findings.tables, table.name) for table in findings.tables}
    ours = {column: value for column, value in zip(ranking.columns, found[ranking.name][OWN], strict=True) if value}
    assert ours == dict.fromkeys(("hit@1 %", "recall@1 %", "MRR %", "Log-Rank %"), 100)
    lost, sizes, whole = f"{OWN} - no metadata", "documents - hit@1", "budgets - all gold"
    _, differences, *others = found
    assert others == [sizes, "documents - Log-Rank", "budgets - recall", whole]
    assert list(found[differences])[-1] == lost
    # without a name all six tie: the first of the corpus is right once
    assert found[differences][lost][0] == pytest.approx(100 - 100 / 6)
    columns = {table.name: table.columns for table in findings.tables}
    assert columns[sizes] == ("2 documents", "4 documents", "6 documents")
    assert columns[whole] == ("7 words", "14 words")
    assert findings.facts == ["collections of [99] documents: not measured, there are 6"]
    falling = found[sizes]["no metadata"]
    assert falling == sorted(falling, key=float, reverse=True)  # type: ignore[arg-type]
    # of the twelve passages that tie three of the corpus, two of them weights, are in the longer context
    for row, shares in (OWN, [100, 100]), ("no metadata", [100 / 6, 100 / 3]), (lost, [500 / 6, 200 / 3]):
        assert found[whole][row] == pytest.approx(shares)
    assert found["budgets - recall"]["no metadata"] == found[whole]["no metadata"]  # one gold segment each


def test_a_context_is_what_the_system_keeps(retriever: MultiRouteRetriever) -> None:
    texts, budgets = [question.text for question in QUESTIONS], (3, 20, 84)
    found = ranked(retriever, budgets=budgets)
    for budget in budgets:
        kept = [[hit.passage for hit in each.evidence] for each in HiQa(retriever, 12, budget).answer(texts)]
        held = [gold_places(*each)[0] != [None] for each in zip(QUESTIONS, kept, strict=True)]
        assert [scores[hiqa.ALL_GOLD] for scores in found[f"{budget} words"]] == held
        # the first always; all of them, of which one is the care of six documents
        assert budget == 20 or [*map(len, kept)] == [1 if budget == 3 else 7] * 6


class Fragile(Titles):
    """A reader to which one question is refused."""

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        if any(question.id == "2" for question in questions):
            raise UserError("refused")
        return super().read(questions, evidence)


def test_every_row_equals_a_new_system_alone(retriever: MultiRouteRetriever, folders: dict[str, Path]) -> None:
    """What is shared between rows, by the memo and by their retrievers, changes no answer, score and count."""
    asked = [*QUESTIONS, replace(QUESTIONS[0], id="8", answers=()), Question("9", "clean", ("water",))]
    system = HiQa(retriever, 5, 30, Titles())
    rows = Study({"no metadata": folders["none"]}).rows_of(system)
    assert rows[OWN] is system
    for name, answers in ask_rows(rows, asked, Memo()).items():
        used = rows[name].retriever  # type: ignore[attr-defined]
        options = {option: getattr(used, option) for option in ("alpha", "beta", "section_words")}
        new = MultiRouteRetriever(*routes(folders["none" if name == "no metadata" else "path"]), **options)
        alone = HiQa(new, 5, 30, Titles()).answer(asked)
        alone[6] = replace(alone[6], text="", logprob=None, costs=alone[6].costs | {"model_calls": 0.0})
        assert [*map(counted, answers)] == [*map(counted, alone)]  # without gold answers it is not read


def test_what_cannot_be_measured_is_said(retriever: MultiRouteRetriever) -> None:
    findings = studied(Study(k=1), HiQa(retriever, 3, reader=Fragile()), QUESTIONS, SETTINGS)
    assert "refused" in str(findings.answers[2].notes)
    assert findings.facts[0] == "rankings: 5 of 6 questions; the others name no gold segments, or failed"
    findings = studied(Study(), HiQa(retriever), [Question("1", "?", ("x",))], SETTINGS)
    assert findings.facts == ["rankings: not measured, no question names gold segments"]
    assert "ranking" not in {table.name for table in findings.tables}
    plain = HiQa(SimpleNamespace(search=lambda queries, k: [[] for _ in queries]))  # type: ignore[arg-type]
    assert "no index" in studied(Study(), plain, QUESTIONS, SETTINGS).facts[0]
    # another retriever is ranked alone
    assert [*studied(Study(k=1), HiQa(retriever.bm25), QUESTIONS, SETTINGS).tables[0].rows] == ["HCA"]


def test_scores_by_hand(retriever: MultiRouteRetriever) -> None:
    words = retriever.bm25
    found = ranked(words, QUESTIONS[:1], [1])
    # BM25 finds "weight alto 100": first the heading's and the name's passage, of 12
    assert (found[hiqa.WHOLE][0]["Log-Rank"], found["1 documents"][0]["hit@1"]) == (1, 1)
    nothing = ranked(words, [replace(QUESTIONS[0], text="unknown")], [1], budgets=(7,))
    assert all(each["MRR"] == each[hiqa.RECALL] == 0 for (each,) in nothing.values())
    # smaller collections are never harder
    found = ranked(retriever, QUESTIONS, [1, 3, 6])
    pairs = zip(found["1 documents"], found["3 documents"], strict=True)
    assert all(one["hit@1"] >= three["hit@1"] for one, three in pairs)
    assert found["6 documents"] == found[hiqa.WHOLE]
    # of two gold segments a short context holds one, the whole ranking both; a third is of a document that is not there
    own, care, gone = QUESTIONS[0].gold.segments, ("Alto 300.pdf", ("with water",)), ("lost.pdf", ("nowhere",))
    both = replace(QUESTIONS[0], gold=Gold(segments=(*own, GoldSegment(*care))))
    lost = replace(both, gold=Gold(segments=(*both.gold.segments, GoldSegment(*gone))))
    found = ranked(retriever, [both, lost], budgets=(7, 84))
    for column, recall, every in ("7 words", [1 / 2, 1 / 3], [0, 0]), ("84 words", [1, 2 / 3], [1, 0]):
        assert [each[hiqa.RECALL] for each in found[column]] == pytest.approx(recall)
        assert [each[hiqa.ALL_GOLD] for each in found[column]] == every


def test_collections_hold_the_gold_documents_and_each_other() -> None:
    names = [f"{name}.pdf" for name in PRODUCTS]
    kept = [kept_documents(QUESTIONS[2], names, size, 0) for size in range(1, 7)]
    assert [len(each) for each in kept] == [1, 2, 3, 4, 5, 6]
    assert all("Alto 300.pdf" in each for each in kept)
    assert all(small < large for small, large in pairwise(kept))
    assert kept_documents(QUESTIONS[2], names, 3, 1) != kept_documents(QUESTIONS[2], names, 3, 2)


def test_tuned_weights_rank_as_the_retriever_does(retriever: MultiRouteRetriever, tmp_path: Path) -> None:
    values_ABQ = grid(retriever, QUESTIONS, 2.0)
    parts = (retriever.dense, retriever.bm25, retriever.keywords)
    for a, b in ((0, 0), (3, 2), (10, 5)):
        found = ranked(MultiRouteRetriever(*parts, ALPHAS[a], BETAS[b]), gamma=2.0)
        assert values_ABQ[a, b] == pytest.approx([each["Log-Rank"] for each in found[hiqa.WHOLE]], abs=1e-6)
    file = tmp_path / "weights.json"
    (line,) = Tuning(gamma=2.0).tune(HiQa(retriever), QUESTIONS, file, SETTINGS)
    chosen = MultiRouteRetriever(*parts, weights=file)
    assert (chosen.alpha, chosen.beta) == best_weights(values_ABQ)
    assert values_ABQ[ALPHAS.index(chosen.alpha), BETAS.index(chosen.beta)].mean() == values_ABQ.mean(axis=2).max()
    assert line.startswith(f"alpha {chosen.alpha:g}, beta {chosen.beta:g}, chosen on 6 questions")
    assert MultiRouteRetriever(retriever.dense, retriever.bm25, beta=0.5, weights=file).beta == 0.5


def test_ranks_by_hand() -> None:
    scores = np.array([0.5, 0.9, 0.5, 0.1])
    found = [rank_of(scores, np.array(positions, dtype=np.int64)) for positions in ([1], [0], [2], [3, 2], [])]
    assert found == [1, 2, 3, 3, None]


def test_what_does_not_fit_is_refused(retriever: Any, tmp_path: Path, folders: dict[str, Path]) -> None:
    routes, other = (retriever.dense, retriever.bm25), tmp_path / "other.json"
    system, words = HiQa(retriever), HiQa(retriever.bm25)
    other.write_text("{}")
    assert isinstance(build(system, "study", {"rows": {"none": folders["none"]}, "documents": [1, 2]}), Study)
    refusals: list[tuple[Callable[[], object], type[UserError], str]] = [
        (lambda: build(system, "study", {"k": 0}), UserError, "k"),
        (lambda: build(system, "study", {"gamma": 0.0}), UserError, "gamma"),
        (lambda: build(system, "study", {"documents": [0]}), UserError, "documents"),
        (lambda: build(system, "study", {"budgets": [0]}), UserError, "budgets"),
        (lambda: build(system, "study", {"budgets": [5, 5]}), UserError, "each number once"),
        (lambda: build(system, "study", {"rows": {"lost": tmp_path}}), MissingInputError, "--kind dense"),
        (lambda: MultiRouteRetriever(*routes, weights=tmp_path / "lost.json").load(), MissingInputError, "lost.json"),
        (lambda: MultiRouteRetriever(*routes, weights=other).load(), ArtifactError, "other.json"),
        (lambda: Tuning.output.check(other), UserError, "other.json"),
        (lambda: Tuning().check(words), UserError, "MultiRouteRetriever"),
        (lambda: Tuning().tune(system, [Question("1", "?", ("x",))], other, SETTINGS), UserError, "gold segments"),
        (lambda: studied(Study({"none": tmp_path}), words, QUESTIONS, SETTINGS), UserError, "study.rows needs"),
    ]
    for asked, error, message in refusals:
        with pytest.raises(error, match=message):
            asked()


ANSWERED = [
    Question("1", "Which is right? A) 4 kg B) 5 kg", ("B", "B) 5 kg"), kind="choice"),
    Question("2", "Which is right? A) 6 kg B) 7 kg", ("A", "A) 6 kg"), kind="choice"),
    Question("3", "How much are both?", ("9 kg",), kind="calculation"),
    Question("4", "How is it cleaned?", ("with water and soap",), kind="descriptive"),
    Question("5", "Unknown?", (), kind="choice"),
]


def answered(*texts: str) -> list[Answer]:
    return [Answer(question.id, text, ()) for question, text in zip(ANSWERED, texts, strict=True)]


ROWS = {
    "HCA": answered("B) 5 kg.", "a", "9 kg", "with water", "A"),
    "other": answered("A", "A", "", "with sand", "A"),
    "third": answered("B", "B", "9 kg", "with water and soap", "A"),
}


def verdict(chat: Chat) -> str:
    """Correct if the answer is an accepted one, partly correct if it is the beginning of one."""
    asked = chat.messages[-1].content
    golds, answer = (re.findall(rf"<{name}>(.*)</{name}>", asked)[0] for name in ("accepted_answers", "answer"))
    accepted, given = golds.lower().split(" | "), answer.lower().rstrip(".")
    other = "partly correct" if any(gold.startswith(given) for gold in accepted) else "incorrect"
    return json.dumps({"reason": "so", "verdict": "correct" if given in accepted else other})


def judged(*verdicts: Any) -> Settings:
    return replace(SETTINGS, judge=Judge(ScriptedLm(verdict), verdicts))


def test_exact_match_counts_for_kinds_with_one_right_answer_alone_and_a_judge_gives_half_credit() -> None:
    exact, differences = hiqa.answer_tables_of_rows(ROWS, ANSWERED, SETTINGS)
    assert exact.columns == ("all (3)", "calculation (1)", "choice (2)")  # neither descriptive nor without gold answers
    assert differences.columns == (hiqa.EXACT,)
    found = rows_of([differences], "answers, differences")
    assert found == {"HCA - other": pytest.approx([200 / 3]), "HCA - third": pytest.approx([100 / 3])}
    _, accuracy, _, costs = hiqa.answer_tables_of_rows(ROWS, ANSWERED, judged("answers", "passages"))
    assert accuracy.columns == ("all (4)", "calculation (1)", "choice (2)", "descriptive (1)")
    assert costs.name == "judge costs of the rows"
    expected = {
        "HCA": ([100, 100, 100], [87.5, 100, 100, 50]), "other": ([100 / 3, 0, 50], [25, 0, 50, 0]),
        "third": ([200 / 3, 100, 50], [75, 100, 50, 100]),
    }  # fmt: skip
    for row, values in expected.items():
        assert rows_of([exact], hiqa.EXACT)[row] == pytest.approx(values[0])
        assert rows_of([accuracy], hiqa.JUDGED)[row] == pytest.approx(values[1])


def test_exact_match_by_words() -> None:
    """The letter a is an answer and no article; a mere sign counts; a worked solution does not."""
    several = Question("6", "Which are right?", ("A, C", "A and C", "AC"), kind="choice")
    sign = Question("7", "It rains.", ("true", "√"), kind="true or false")
    for question, text, credit in (
        (several, "a, c", 1), (several, "C", 0), (several, "A and C.", 1), (several, "", 0), (several, "C, A", 0),
        (sign, "√", 1), (sign, "True.", 1), (sign, "\u00d7", 0), (sign, "...", 0),
    ):  # fmt: skip
        assert hiqa.exact_accuracy({"row": [Answer("6", text, ())]}, [question])["row"].tolist() == [credit]
    worked = ("first the one of them, then the other, and both give 9 kg",)
    long = Question("8", "How much?", worked, kind="calculation")
    assert np.isnan(hiqa.exact_accuracy({"row": [Answer("8", "9 kg", ())]}, [long])["row"]).all()


def test_what_is_not_measured_is_left_out_or_says_why() -> None:
    assert hiqa.answer_tables_of_rows(dict.fromkeys(ROWS, answered(*[""] * 5)), ANSWERED, judged("answers")) == []
    one = hiqa.answer_tables_of_rows({"HCA": ROWS["HCA"]}, ANSWERED, judged("passages"))
    assert [table.name for table in one] == [hiqa.EXACT]
    exact, *_ = hiqa.answer_tables_of_rows({"HCA": ROWS["HCA"][3:4]}, ANSWERED[3:4], SETTINGS)
    (cell,) = exact.rows["all rows"]
    assert "no question of the kinds choice" in cell.reason
