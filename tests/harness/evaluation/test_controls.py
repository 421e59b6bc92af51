"""The controls of a trained part, on planted data: gains that need no question are told from those that do."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from torch import nn

from common.context_sources import SelectedSource
from common.other_questions import other_texts
from common.records import Answer, Passage, Question
from common.rewrites import Rewrites
from harness.evaluation.controls import FLOOR, OTHER, Controls, Rows, changed, trained_part, verdict
from harness.evaluation.engine import measure
from harness.evaluation.settings import Bootstrap, Settings
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.rerank import RerankedRetriever, shortened
from harness.retrievers.rerank_prior import RerankPrior
from harness.selection.options import SelectionOptions
from harness.systems.dmqr import Dmqr
from harness.systems.drrag import DrRag
from harness.systems.rerag import ReRag
from harness.systems.retrieve_read import RetrieveRead
from models.calibration import Calibration
from models.context_tokenizer import ContextEncoder
from models.cross_encoder import RelevanceEstimator
from models.loading import load_tokenizer
from models.pretrained import MINILM, resolve
from models.rerag.model import ReRagModel
from tests.helpers.studied import rows_of
from tests.helpers.table_rewriter import TableRewriter

pytestmark = pytest.mark.numeric
COUNT = 40  # questions
SOURCES = ("web", "generated", "none")


class Rule(RelevanceEstimator):
    """An estimator that has learned a rule."""

    def __init__(self, rule: Callable[[str, Passage], float], max_tokens: int = 512) -> None:
        nn.Module.__init__(self)
        self.rule, self.tokens_read = rule, 0
        self.encode = ContextEncoder(load_tokenizer(str(resolve(MINILM))), max_tokens, "sentence_pair")

    def scores(self, pairs: Sequence[tuple[str, Passage]], tokens_per_batch: int | None = None) -> list[float]:
        """What the rule says of each pair."""
        return [self.rule(*pair) for pair in pairs]


class Rewriter(TableRewriter):
    """A trained rewriter that has learned a rule; it makes nothing of a text that the rule does not know."""

    name, serving, reads_history = "rule", Path("checkpoints/rule/serving"), True

    def __init__(self, rule: Callable[[Question], str]) -> None:
        super().__init__({})
        self.rule = rule

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        """One query each."""
        self.table = {each.text: {"gqr": [made]} for each in questions if (made := self.rule(each))}
        return super().rewrite(questions, strategies)


class Pairs:
    """A pair classifier that has learned which documents belong together for a question."""

    threshold = 0.5

    def probabilities(self, triples: Sequence[tuple[str, Passage, Passage]]) -> list[float]:
        """High for the passage that names the river of the question, and that on where its neighbour ends."""
        return [
            0.9 if name_in(question) in d1.text.split() and d1.text.split()[-1] == d2.title else 0.1
            for question, d1, d2 in triples
        ]


def name(number: int, of: str = "") -> str:
    """An invented name."""
    return "".join(chr(ord("a") + int(each, 16)) for each in hashlib.sha256(f"{of}/{number}".encode()).hexdigest()[:8])


def name_in(question: str) -> str:
    return question.split()[1]


def asked(number: int, passages: Sequence[Passage] = (), gold: Sequence[Passage] = (), **further: Any) -> Question:
    text = f"is {name(number)} kept in a vault"
    fields = {"id": str(number), "text": text, "answers": (name(number, "place"),), **further}
    return Question(passages=tuple(passages), support=tuple(each.id for each in gold), **fields)


def around(number: int, marked: str = "") -> tuple[Passage, list[Passage]]:
    """The passage that answers a question, and four that have more words of it, in an order that says nothing."""
    gold = Passage.of("", f"{name(number)} {name(number, 'place')} was where they put that {marked}".strip())
    others = [Passage.of("", f"{name(number)} is kept in a vault {name(number, str(each))}") for each in range(4)]
    return gold, sorted([gold, *others], key=lambda passage: passage.id)


def evaluated(system: Any, questions: Sequence[Question], tmp_path: Path) -> tuple[str, dict[str, float]]:
    """The verdict, and the rows of its table."""
    settings = Settings("fid", "squad", (1,), None, Bootstrap(500, 0), tmp_path / "partial")
    measured = measure(system, questions, None, settings)
    rows = rows_of(measured.tables, "controls")
    return measured.verdict, {name: round(values[0] or 0.0, 2) for name, values in rows.items()}


def answers_question(question: str, passage: Passage) -> float:
    """An honest rule: the passage has the question's name and no other word of it."""
    words = passage.text.split()
    return float(name_in(question) in words and "vault" not in words)


def shipped(rule: Callable[[str, Passage], float]) -> ReRag:
    return ReRag(None, model=ReRagModel(Rule(rule), None), contexts=2)


def index_of(passages: Sequence[Passage], folder: Path) -> Bm25Retriever:
    build_bm25({each.id: each for each in passages}.values(), folder / "bm25")
    return Bm25Retriever(folder / "bm25")


def test_gold_that_is_told_without_a_question_shows_nothing(tmp_path: Path) -> None:
    """Gold texts that differ in length alone, and in style in an index that is searched."""
    sets = [around(number, "so on and on as before for a long while yet again verily") for number in range(COUNT)]
    questions = [asked(number, passages, [gold]) for number, (gold, passages) in enumerate(sets)]
    said, rows = evaluated(shipped(lambda _, passage: len(passage.text.split())), questions, tmp_path)
    assert said.startswith("not shown: R@1 100.0")
    assert "80.0 of the 80.0 points above the floor need no question" in said
    assert [rows[each] for each in ("trained", OTHER, FLOOR, "BM25")] == [100, 100, 20, 0]

    retriever = RerankedRetriever(index_of([p for _, own in sets for p in own], tmp_path), Path("none"), candidates=5)
    rule = Rule(lambda _, passage: float("verily" in passage.text), max_tokens=16)  # it reads 8 tokens of a question
    vars(retriever)["estimator"] = rule  # as if loaded
    assert any(shortened(rule, one.text) != one.text for one in questions)
    said, rows = evaluated(RetrieveRead(retriever, 2), questions, tmp_path)
    assert said.startswith("not shown: R@1 100.0")
    assert [rows[each] for each in ("trained", OTHER, FLOOR, "Bm25")] == [100, 100, 20, 0]


def test_answers_under_their_pages_name_show_nothing_of_a_rewriter(tmp_path: Path) -> None:
    questions, passages = [], []
    for number in range(COUNT):
        page = name(number // 4, "page")
        gold = Passage.of(page, f"{name(number, 'said')} was said")
        passages.append(gold)
        turns = (page, "history", "what else", "nothing")[: 2 + number % 2 * 2]
        further = {"history": turns, "text": f"what about {name(number, 'about')}"}
        questions.append(asked(number, [gold], [gold], **further))
    system = Dmqr(index_of(passages, tmp_path), Rewriter(lambda one: one.history[0]), ("gqr",), k=4, fusion="rrf")
    said, rows = evaluated(system, questions, tmp_path)
    assert said.startswith("not shown: recall@4 100.0")
    assert rows["Bm25"] == 0  # the question alone
    assert rows["all turns and the question"] == rows[OTHER] == 100


def test_a_file_in_which_paraphrases_are_neighbours_shows_an_honest_gain(tmp_path: Path) -> None:
    questions = []
    for number in range(COUNT):
        gold, passages = around(number)
        one = asked(number, passages, [gold])
        questions += [one, replace(one, id=f"{number}b", text=f"has {name(number)} a vault that it is kept in")]
    said, rows = evaluated(shipped(answers_question), questions, tmp_path)
    assert said.startswith("R@1 100.0, +100.0 [+100.0, +100.0] to the best that is not trained")
    assert rows[OTHER] < 40  # equal scores: the passages in the order of the file


def test_drrag_and_a_rewriter_over_an_index_show_an_honest_gain(tmp_path: Path) -> None:
    chains, passages = [], []
    for number in range(COUNT):
        river, neighbour = name(number), name(number, "joined")
        own = [Passage.of(river, f"{river} river joins {neighbour}"), Passage.of(neighbour, f"{neighbour} ends there")]
        for kind, word in ("ship", "steamer"), ("boat", "rowing"):  # share more words with q*, are no gold
            own.append(Passage.of(f"{river} {kind}", f"{river} joins {neighbour} {word}"))
        passages += own
        chains.append(asked(number, own, own[:2], text=f"river {river}"))
    index = index_of(passages, tmp_path)
    system = DrRag(index, selection=SelectionOptions("cfs", k=2), scorer=Pairs())
    said, rows = evaluated(system, chains, tmp_path)
    assert said.startswith("recall@2 100.0, +50.0 [+50.0, +50.0] to the best that is not trained")
    assert [rows[each] for each in ("Bm25", "QDC", OTHER, FLOOR)] == [50] * 4

    spelled = [replace(one, text=f"whose {name_in(one.text)[::-1]}", support=one.support[:1]) for one in chains]
    right = {one.text: other.text for one, other in zip(spelled, chains, strict=True)}
    rewriter = Rewriter(lambda one: right.get(one.text, ""))
    said, rows = evaluated(Dmqr(index, rewriter, ("gqr",), k=2, fusion="rrf"), spelled, tmp_path)
    assert said.startswith("recall@2 100.0")
    assert "need no question" not in said
    assert rows["the question"] == rows[OTHER] == rows["Bm25"] == 0
    assert "RM3" in rows


# --- the parts


def test_the_part_that_decides_last_is_controlled_and_the_system_stays_as_it_was(tmp_path: Path) -> None:
    index = index_of([Passage.of("", "one two")], tmp_path)
    estimator, rewriter = Rule(lambda *_: 0.0), Rewriter(lambda one: one.text)
    system = Dmqr(index, rewriter, ("gqr",), scorer=estimator)
    assert trained_part(system) == ("rewriter", rewriter)
    made = changed(system, {id(rewriter): None})
    assert made.search.rewriter is None is made.rewriter
    assert system.search.rewriter is rewriter is system.rewriter
    kind, found = trained_part(made) or ("", None)
    assert (kind, found.rule) == ("estimator", estimator.rule)
    assert trained_part(RetrieveRead(index)) is None


def test_with_a_prior_the_floor_is_its_order_and_without_one_it_is_chance(tmp_path: Path) -> None:
    sets = [around(number) for number in range(COUNT)]
    questions = [
        asked(n, own, [gold], scores=tuple(float(p is gold) for p in own)) for n, (gold, own) in enumerate(sets)
    ]
    system = shipped(answers_question)
    assert evaluated(system, questions, tmp_path)[1][FLOOR] == 20
    system.prior = RerankPrior(0.5, Calibration())
    said, rows = evaluated(system, questions, tmp_path)
    assert [rows[each] for each in ("trained", FLOOR, "the file's order")] == [100] * 3
    assert said.startswith("not shown: R@1 100.0, +0.0")


class Chooser:
    """A selector that takes the web for questions of even numbers: where it is right."""

    file, uses_gold, name, even = Path("selector.json"), False, "rule", {asked(n).text for n in range(0, COUNT, 2)}

    def probability(self, questions: Any, answers: Any) -> list[dict[str, float | None]]:
        return [{"web": 0.2, "generated": 0.6, "none": None}] * len(questions)

    def choose(self, questions: Any, answers: Any) -> list[SelectedSource]:
        return [SelectedSource("web" if one.text in self.even else "generated", "") for one in questions]


def test_a_selector_is_asked_with_another_question_about_the_same_answers() -> None:
    def answered(made: Any, own: Sequence[Question]) -> list[Answer]:
        right = ["web" if int(one.id) % 2 == 0 else "generated" for one in own]
        texts = [
            {source: Answer(one.id, one.answers[0] if source == at else "no", ()) for source in SOURCES}
            for one, at in zip(own, right, strict=True)
        ]
        chosen = made.selector.choose(own, texts)
        return [each[choice.source] for each, choice in zip(texts, chosen, strict=True)]

    def exact(own: Sequence[Question], answers: Sequence[Answer]) -> np.ndarray:
        return np.array([float(a.text in q.answers) for q, a in zip(own, answers, strict=True)])

    questions = [asked(number) for number in range(COUNT)]
    system = SimpleNamespace(retriever=None, selector=Chooser())
    rows = Controls(system, exact, answered).rows(questions, answered(system, questions))
    others = other_texts(questions, 30)
    assert rows.trained_N.tolist() == [1.0] * 30
    assert rows.controls[OTHER].tolist() == [
        float((place % 2 == 0) == (text in Chooser.even)) for place, text in others.items()
    ]
    from_web = sum(place % 2 == 0 for place in others) / 30
    assert [rows.untrained[each].mean() for each in SOURCES] == [from_web, 1 - from_web, 0]
    assert rows.untrained["the source of the most relevant context"].mean() == 1 - from_web
    assert rows.controls[FLOOR].mean() == max(from_web, 1 - from_web)


# --- the verdict


def shares(trained: float, untrained: float, other: float | None, floor: float = 0.2, count: int = 200) -> Rows:
    def values(share: float) -> np.ndarray:
        return (np.arange(count) < round(share * count)).astype(float)

    controls = {} if other is None else {OTHER: values(other), FLOOR: values(floor)}
    return Rows("R@1", values(trained), {"BM25": values(untrained)}, controls)


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (shares(0.8, 0.4, 0.2), True),
        (shares(0.8, 0.4, 0.35), True),  # 15 of 60 points: a quarter
        (shares(0.8, 0.4, 0.36), False),
        (shares(0.8, 0.4, 0.21), True),  # two questions of 200: the interval holds 0
        (shares(0.41, 0.4, 0.2), False),  # the first interval holds 0
        (shares(0.3, 0.4, 0.2), False),  # worse
        (shares(0.8, 0.4, None), True),
    ],
)
def test_what_is_shown(rows: Rows, shown: bool) -> None:
    line, table = verdict(rows, Bootstrap(2000, 0))
    assert line.startswith("not shown: ") is not shown
    assert list(table.rows)[:2] == ["trained", "BM25"]


def test_the_gain_is_to_the_best_of_the_untrained() -> None:
    rows = replace(shares(0.8, 0.4, None), untrained={"a": np.zeros(200), "b": np.ones(200), "c": np.zeros(200)})
    line, table = verdict(rows, Bootstrap(100, 0))
    assert line.startswith("not shown: R@1 80.0, -20.0 ")
    assert "(b)" in line
    assert rows_of([table], "controls")["b"][1] == pytest.approx(-20)
