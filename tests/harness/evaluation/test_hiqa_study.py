"""HiQA's study over indexes of small documents: rows, differences, kinds, degradation, tuned weights.

Hand-worked scores; refusals.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.chat import Chat, Reply
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
from harness.evaluation.tables import ReportTable
from harness.interfaces import Retriever
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.dense import DenseRetriever, build_dense
from harness.retrievers.keywords import KeywordRetriever, build_keywords
from harness.retrievers.multi_route import MultiRouteRetriever
from harness.runtime.memo import Memo
from harness.systems.hiqa import HiQa, fitting
from harness.tuning.hiqa import ALPHAS, BETAS, Tuning, best_weights, grid, rank_of
from tests.helpers.studied import counted, rows_of, studied

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
def folders(tmp_path_factory: pytest.TempPathFactory, encoder) -> dict[str, Path]:
    folders = {name: tmp_path_factory.mktemp(name) for name in ("path", "none")}
    for name, folder in folders.items():
        build_dense(passages(name == "path"), folder / "dense", encoder)
        build_bm25(passages(name == "path"), folder / "bm25")
        given = folder / "keywords.txt"
        given.write_text("\n".join(PRODUCTS))
        # without metadata no passage holds a product's name, and "kg" is the only word of the list
        given.write_text("\n".join([*PRODUCTS, "kg"]))
        build_keywords(passages(name == "path"), folder / "keywords", given=given)
    return folders


@pytest.fixture(scope="module")
def system(folders: dict[str, Path], encoder) -> HiQa:
    dense, words, keywords = (folders["path"] / kind for kind in KINDS)
    routes = DenseRetriever(dense, "cpu", encoder=encoder.name), Bm25Retriever(words), KeywordRetriever(keywords)
    return HiQa(MultiRouteRetriever(*routes, alpha=0.2, beta=1.0), k=3)


def ranked(
    retriever: Retriever,
    questions: Sequence[Question] = QUESTIONS,
    sizes: Sequence[int] = (),
    budgets: tuple[int, ...] = (),
    gamma: float = 1.0,
) -> dict[str, list[hiqa.Scores]]:
    """The scores at k 1 by column: the whole index, "1 documents", "7 words"."""
    study = Study(k=1, gamma=gamma, budgets=budgets)
    row, *_ = study.rows_of(HiQa(retriever))
    return study.ranked(row, questions, {f"{size} documents": size for size in sizes})


def test_rows_tables_and_differences(system: HiQa, folders: dict[str, Path]) -> None:
    study = Study({"no metadata": folders["none"]}, k=1, documents=[2, 4, 6, 99], budgets=())
    findings = studied(study, system, QUESTIONS, SETTINGS)
    ranking, differences, *others = findings.tables
    assert list(ranking.rows) == [OWN, "vectors only", "BM25 only", "without keywords", "segments alone", "no metadata"]
    ours = dict(zip(ranking.columns, ranking.rows[OWN], strict=True))
    assert {column: cell.value for column, cell in ours.items() if cell} == {
        "hit@1 %": 100, "recall@1 %": 100, "MRR %": 100, "Log-Rank %": 100
    }  # fmt: skip
    assert list(differences.rows)[-1] == f"{OWN} - no metadata"
    lost = differences.rows[f"{OWN} - no metadata"]
    assert lost[0] is not None
    # without a name all six tie: the first of the corpus is right once
    assert lost[0].value == pytest.approx(100 - 100 / 6)
    assert [table.name for table in others] == ["documents - hit@1", "documents - Log-Rank"]
    assert others[0].columns == ("2 documents", "4 documents", "6 documents")
    assert findings.facts == ["collections of [99] documents: not measured, there are 6"]
    falling = [cell.value for cell in others[0].rows["no metadata"] if cell]
    assert falling == sorted(falling, reverse=True)


def of_budget(table: ReportTable, row: str) -> list[float]:
    return [cell.value for cell in table.rows[row] if cell]


def test_contexts_of_equal_length_by_hand(system: HiQa, folders: dict[str, Path], tmp_path: Path) -> None:
    """A passage has four words, with its path three more.

    A context of 14 words holds two of them, or three without the path.
    """
    asked = [replace(question, answers=("kg",), kind="calculation") for question in QUESTIONS]
    study = Study({"no metadata": folders["none"]}, k=1, budgets=(7, 14))
    findings = studied(study, system, asked, replace(SETTINGS, partial=tmp_path))
    tables = {table.name: table for table in findings.tables}
    whole = tables["budgets - all gold"]
    assert whole.columns == ("7 words", "14 words")
    assert of_budget(whole, OWN) == [100, 100]
    # without metadata all twelve passages tie: three of the corpus, two of them weights, are in the longer context
    assert of_budget(whole, "no metadata") == pytest.approx([100 / 6, 100 / 3])
    assert of_budget(whole, f"{OWN} - no metadata") == pytest.approx([500 / 6, 200 / 3])
    assert tables["budgets - recall"].rows["no metadata"] == whole.rows["no metadata"]  # one gold segment each


def test_a_context_is_what_the_system_keeps(system: HiQa) -> None:
    texts, budgets = [question.text for question in QUESTIONS], (3, 20, 84)
    found = ranked(system.retriever, budgets=budgets)
    for budget in budgets:
        kept = [[hit.passage for hit in each.evidence] for each in HiQa(system.retriever, 12, budget).answer(texts)]
        held = [gold_places(*each)[0] != [None] for each in zip(QUESTIONS, kept, strict=True)]
        assert [scores[hiqa.ALL_GOLD] for scores in found[f"{budget} words"]] == held
    # the first always; all of them, of which one is the care of six documents
    assert [len(each.evidence) for each in HiQa(system.retriever, 12, 3).answer(texts)] == [1] * 6
    assert [len(each.evidence) for each in HiQa(system.retriever, 12, 84).answer(texts)] == [7] * 6


@given(st.lists(st.integers(1, 9), max_size=8), st.integers(1, 30))
def test_what_fits_by_definition(words: list[int], most: int) -> None:
    kept = fitting(words, most)
    assert kept[:1] == [0] * bool(words)
    assert sum(words[place] for place in kept) <= max(most, *words[:1], 0)
    for place in set(range(len(words))) - set(kept):  # what is left out did not fit behind those before it
        assert sum(words[each] for each in kept if each < place) + words[place] > most


class Weight:
    """A reader: the weight in the first passage."""

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        found = [re.search(r"\d+ kg", hits[0].passage.text) for hits in evidence]
        costs = {"model_calls": 1.0}
        return [
            Answer(q.id, match[0] if match else "", (), costs=costs) for q, match in zip(questions, found, strict=True)
        ]


def test_every_row_equals_a_new_system_alone(system: HiQa, folders: dict[str, Path], encoder) -> None:
    """What is shared between rows, by the memo and by their retrievers, changes no answer, score and count."""
    asked = [*QUESTIONS, replace(QUESTIONS[0], id="8", answers=()), Question("9", "clean", ("water",))]
    system = HiQa(system.retriever, 5, 30, Weight())
    rows = Study({"no metadata": folders["none"]}).rows_of(system)
    assert rows[OWN] is system
    for name, answers in ask_rows(rows, asked, Memo()).items():
        used = rows[name].retriever  # type: ignore[attr-defined]
        kinds = (folders["none" if name == "no metadata" else "path"] / kind for kind in KINDS)
        routes = [
            made(folder) for made, folder in zip((DenseRetriever, Bm25Retriever, KeywordRetriever), kinds, strict=True)
        ]
        new = MultiRouteRetriever(*routes, alpha=used.alpha, beta=used.beta, section_words=used.section_words)
        alone = HiQa(new, 5, 30, Weight()).answer(asked)
        read = [
            replace(each, text="", costs=each.costs | {"model_calls": 0.0}) if n == 6 else each
            for n, each in enumerate(alone)
        ]
        assert [*map(counted, answers)] == [*map(counted, read)]  # without gold answers it is not read


def test_a_question_that_fails_has_no_rank(system: HiQa) -> None:
    class Fragile:
        def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
            if any(question.id == "2" for question in questions):
                raise UserError("refused")
            return Weight().read(questions, evidence)

    findings = studied(Study(k=1), HiQa(system.retriever, 3, reader=Fragile()), QUESTIONS, SETTINGS)
    assert "refused" in str(findings.answers[2].notes)
    assert findings.facts[0] == "rankings: 5 of 6 questions; the others name no gold segments, or failed"


def test_scores_by_hand(system: HiQa) -> None:
    words = system.retriever.bm25  # type: ignore[attr-defined]
    found = ranked(words, QUESTIONS[:1], [1])
    # BM25 finds "weight alto 100": first the heading's and the name's passage, of 12
    assert found[hiqa.WHOLE][0]["Log-Rank"] == 1
    assert found["1 documents"][0]["hit@1"] == 1
    nothing = ranked(words, [replace(QUESTIONS[0], text="unknown")], [1], (7,))
    assert all(each["MRR"] == each[hiqa.RECALL] == 0 for (each,) in nothing.values())


def test_collections_hold_the_gold_documents_and_each_other() -> None:
    names = [f"{name}.pdf" for name in PRODUCTS]
    kept = [kept_documents(QUESTIONS[2], names, size, 0) for size in range(1, 7)]
    assert [len(each) for each in kept] == [1, 2, 3, 4, 5, 6]
    assert all("Alto 300.pdf" in each for each in kept)
    assert all(small < large for small, large in pairwise(kept))
    assert kept_documents(QUESTIONS[2], names, 3, 1) != kept_documents(QUESTIONS[2], names, 3, 2)


def test_what_cannot_be_measured_is_said(system: HiQa) -> None:
    findings = studied(Study(), system, [Question("1", "?", ("x",))], SETTINGS)
    assert findings.facts == ["rankings: not measured, no question names gold segments"]
    assert "ranking" not in {table.name for table in findings.tables}
    plain = HiQa(SimpleNamespace(search=lambda queries, k: [[] for _ in queries]))  # type: ignore[arg-type]
    assert "no index" in studied(Study(), plain, QUESTIONS, SETTINGS).facts[0]


def test_another_retriever_is_ranked_alone(system: HiQa) -> None:
    words = HiQa(system.retriever.bm25)  # type: ignore[attr-defined]
    assert [*studied(Study(k=1), words, QUESTIONS, SETTINGS).tables[0].rows] == ["HCA"]


def test_options_are_checked_before_anything_is_loaded(system: HiQa, tmp_path: Path, folders: dict[str, Path]) -> None:
    given = {"rows": {"none": folders["none"]}, "documents": [1, 2]}
    assert isinstance(build(system, "study", given), Study)
    for wrong, named in (
        ({"k": 0}, "k"), ({"gamma": 0.0}, "gamma"), ({"documents": [0]}, "documents"), ({"budgets": [0]}, "budgets"),
        ({"budgets": [5, 5]}, "each number once"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=named):
            build(system, "study", wrong)
    with pytest.raises(MissingInputError, match="--kind dense"):
        build(system, "study", {"rows": {"lost": tmp_path}})


def test_smaller_collections_are_never_harder(system: HiQa) -> None:
    found = ranked(system.retriever, QUESTIONS, [1, 3, 6])
    pairs = zip(found["1 documents"], found["3 documents"], strict=True)
    assert all(one["hit@1"] >= three["hit@1"] for one, three in pairs)
    assert found["6 documents"] == found[hiqa.WHOLE]


def test_tuned_weights_rank_as_the_retriever_does(system: HiQa, tmp_path: Path) -> None:
    retriever = system.retriever
    assert isinstance(retriever, MultiRouteRetriever)
    values_ABQ = grid(retriever, QUESTIONS, 2.0)
    for a, b in ((0, 0), (3, 2), (10, 5)):
        other = MultiRouteRetriever(retriever.dense, retriever.bm25, retriever.keywords, ALPHAS[a], BETAS[b])
        scores = [each["Log-Rank"] for each in ranked(other, gamma=2.0)[hiqa.WHOLE]]
        assert values_ABQ[a, b] == pytest.approx(scores, abs=1e-6)
    file = tmp_path / "weights.json"
    (line,) = Tuning(gamma=2.0).tune(system, QUESTIONS, file, SETTINGS)
    chosen = MultiRouteRetriever(retriever.dense, retriever.bm25, retriever.keywords, weights=file)
    assert (chosen.alpha, chosen.beta) == best_weights(values_ABQ)
    assert values_ABQ[ALPHAS.index(chosen.alpha), BETAS.index(chosen.beta)].mean() == values_ABQ.mean(axis=2).max()
    assert line.startswith(f"alpha {chosen.alpha:g}, beta {chosen.beta:g}, chosen on 6 questions")
    assert MultiRouteRetriever(retriever.dense, retriever.bm25, beta=0.5, weights=file).beta == 0.5


def test_ranks_by_hand() -> None:
    scores = np.array([0.5, 0.9, 0.5, 0.1])
    assert [rank_of(scores, np.array(positions)) for positions in ([1], [0], [2], [3, 2])] == [1, 2, 3, 3]
    assert rank_of(scores, np.array([], dtype=np.int64)) is None


def test_what_does_not_fit_is_refused(system: HiQa, tmp_path: Path) -> None:
    retriever = system.retriever
    assert isinstance(retriever, MultiRouteRetriever)
    (tmp_path / "other.json").write_text("{}")
    for name, error in (("lost.json", MissingInputError), ("other.json", ArtifactError)):
        with pytest.raises(error, match=name):
            MultiRouteRetriever(retriever.dense, retriever.bm25, weights=tmp_path / name).load()
    unlabelled = [Question("1", "?", ("x",))]
    for refused in (
        lambda: Tuning.output.check(tmp_path / "other.json"),
        lambda: Tuning().check(HiQa(retriever.bm25)),
        lambda: Tuning().tune(system, unlabelled, tmp_path / "x.json", SETTINGS),
        lambda: studied(Study({"no metadata": tmp_path}), HiQa(retriever.bm25), QUESTIONS, SETTINGS),
    ):
        with pytest.raises(UserError):
            refused()


def test_a_context_holds_a_part_or_the_whole_of_the_gold(system: HiQa) -> None:
    """Of two gold segments a short context holds one, the whole ranking both.

    A third stands in a document that is not there.
    """
    both = replace(
        QUESTIONS[0], gold=Gold(segments=(*QUESTIONS[0].gold.segments, GoldSegment("Alto 300.pdf", ("with water",))))
    )
    lost = replace(both, gold=Gold(segments=(*both.gold.segments, GoldSegment("lost.pdf", ("nowhere",)))))
    found = ranked(system.retriever, [both, lost], budgets=(7, 84))
    values = {
        column: {name: [each[name] for each in found[column]] for name in (hiqa.RECALL, hiqa.ALL_GOLD)}
        for column in found
    }
    assert values["7 words"] == {hiqa.RECALL: [0.5, pytest.approx(1 / 3)], hiqa.ALL_GOLD: [0, 0]}
    assert values["84 words"] == {hiqa.RECALL: [1, pytest.approx(2 / 3)], hiqa.ALL_GOLD: [1, 0]}


ANSWERED = [
    Question("1", "Which is right? A) 4 kg B) 5 kg", ("B", "B) 5 kg"), kind="choice"),
    Question("2", "Which is right? A) 6 kg B) 7 kg", ("A", "A) 6 kg"), kind="choice"),
    Question("3", "How much are both?", ("9 kg",), kind="calculation"),
    Question("4", "How is it cleaned?", ("with water and soap",), kind="descriptive"),
    Question("5", "Unknown?", (), kind="choice"),
]
ROWS = {
    "HCA": ["B) 5 kg.", "a", "9 kg", "with water", "A"],
    "other": ["A", "A", "", "with sand", "A"],
    "third": ["B", "B", "9 kg", "with water and soap", "A"],
}


def answers(rows: dict[str, list[str]]) -> dict[str, list[Answer]]:
    return {
        name: [Answer(question.id, text, ()) for question, text in zip(ANSWERED, texts, strict=True)]
        for name, texts in rows.items()
    }


class RuleLm:
    """Correct if the answer is an accepted one, partly correct if it is the beginning of one."""

    name = "rules"

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        return [Reply(json.dumps(self._verdict(chat.messages[-1].content))) for chat in chats]

    def _verdict(self, asked: str) -> dict[str, object]:
        (golds,) = re.findall(r"<accepted_answers>(.*)</accepted_answers>", asked)
        (answer,) = re.findall(r"<answer>(.*)</answer>", asked)
        accepted = golds.lower().split(" | ")
        given = answer.lower().rstrip(".")
        partly = any(gold.startswith(given) for gold in accepted)
        verdict = "correct" if given in accepted else "partly correct" if partly else "incorrect"
        return {"reason": "so", "verdict": verdict}


def judged(*verdicts: str) -> Settings:
    return replace(SETTINGS, judge=Judge(RuleLm(), verdicts or ("answers", "passages")))  # type: ignore[arg-type]


def test_exact_match_counts_for_kinds_with_one_right_answer_alone() -> None:
    exact, differences = hiqa.answer_tables_of_rows(answers(ROWS), ANSWERED, SETTINGS)
    assert exact.columns == ("all (3)", "calculation (1)", "choice (2)")  # neither descriptive nor without gold answers
    assert rows_of([exact], hiqa.EXACT) == {
        "HCA": pytest.approx([100, 100, 100]), "other": pytest.approx([100 / 3, 0, 50]),
        "third": pytest.approx([200 / 3, 100, 50]),
    }  # fmt: skip
    assert differences.columns == (hiqa.EXACT,)
    found = rows_of([differences], "answers, differences")
    assert found == {"HCA - other": pytest.approx([200 / 3]), "HCA - third": pytest.approx([100 / 3])}


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


def test_a_judge_gives_half_credit() -> None:
    _, accuracy, _, costs = hiqa.answer_tables_of_rows(answers(ROWS), ANSWERED, judged())
    assert accuracy.columns == ("all (4)", "calculation (1)", "choice (2)", "descriptive (1)")
    assert rows_of([accuracy], hiqa.JUDGED) == {
        "HCA": pytest.approx([87.5, 100, 100, 50]), "other": pytest.approx([25, 0, 50, 0]),
        "third": pytest.approx([75, 100, 50, 100]),
    }  # fmt: skip
    assert costs.name == "judge costs of the rows"


def test_what_is_not_measured_is_left_out_or_says_why() -> None:
    assert hiqa.answer_tables_of_rows(answers(dict.fromkeys(ROWS, [""] * 5)), ANSWERED, judged()) == []
    one = hiqa.answer_tables_of_rows(answers({"HCA": ROWS["HCA"]}), ANSWERED, judged("passages"))
    assert [table.name for table in one] == [hiqa.EXACT]
    exact, *_ = hiqa.answer_tables_of_rows({"HCA": answers(ROWS)["HCA"][3:4]}, ANSWERED[3:4], SETTINGS)
    (cell,) = exact.rows["all rows"]
    assert cell is not None
    assert "no question of the kinds choice" in cell.reason
