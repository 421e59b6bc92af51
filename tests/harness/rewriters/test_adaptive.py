"""The adaptive rewriter: only the chosen strategies are asked, around rewriters of every kind; refusals."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from common.errors import ArtifactError, UserError
from common.records import Passage, Question, Ranked
from common.rewrites import Rewrites
from harness.interfaces import FeedbackRewriter, Rewriter
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.multi_query import ORIGINAL, MultiQueryRetriever
from harness.rewriters.adaptive import AdaptiveRewriter
from harness.rewriters.extractive import ExtractiveRewriter
from harness.rewriters.fallbacks import tell_fallbacks, with_fallbacks
from harness.rewriters.strategy_checks import check_strategies
from harness.runtime.turns import reads_history
from harness.systems.dmqr import Dmqr
from models.dmqr.strategy_classifier import StrategyClassifier
from tests.helpers.rerag_world import corpus
from tests.helpers.strategy_classifiers import save_classifier
from tests.helpers.table_rewriter import CountingRetriever, TableRewriter

STRATEGIES = ("kwr", "par", "cce")
WORDS = ("who", "where", "is", "born", "the", "director", "film", "city", "yes", "no")
TEXTS = [f"{WORDS[n % 10]} {WORDS[n // 3]} name{n} name{3 * n % 50}" for n in range(12)]
ASKED = [Question(str(n), text) for n, text in enumerate(TEXTS)]
TABLE = {text: {name: [f"{name} of {text}"] for name in STRATEGIES} for text in TEXTS}
PASSAGES = corpus(40)


@pytest.fixture(scope="module")
def serving(checkpoints: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_classifier(checkpoints["bert"], tmp_path_factory.mktemp("choice") / "serving", STRATEGIES)


@pytest.fixture(scope="module")
def bm25(tmp_path_factory: pytest.TempPathFactory) -> Bm25Retriever:
    index = tmp_path_factory.mktemp("index") / "bm25"
    build_bm25(PASSAGES, index)
    return Bm25Retriever(index)


def choices(serving: Path, threshold: float = 0.5) -> list[tuple[str, ...]]:
    """What the model chooses for every question, computed one by one."""
    classifier = StrategyClassifier.load(serving, "cpu", "fp32")
    found = [classifier.probabilities([(text, ())])[0] for text in TEXTS]
    return [tuple(n for n, p in zip(STRATEGIES, each or (), strict=True) if p >= threshold) for each in found]


class TableWithStrategies(TableRewriter):
    """Keeps the strategies of every call."""

    def __init__(self) -> None:
        super().__init__(TABLE)
        self.calls: list[tuple[tuple[str, ...], tuple[str, ...]]] = []  # strategies, texts

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        self.calls.append((tuple(strategies), tuple(each.text for each in questions)))
        return super().rewrite(questions, strategies)


def test_a_rewriter_is_asked_for_the_chosen_strategies_once_for_equal_choices(serving: Path) -> None:
    inner = TableWithStrategies()
    rewriter = AdaptiveRewriter(inner, serving, device="cpu", precision="fp32")
    expected = choices(serving)
    assert len({*expected}) > 3  # or this would test little
    assert () in expected
    made = rewriter.rewrite(ASKED, STRATEGIES)
    for question, chosen, each in zip(ASKED, expected, made, strict=True):
        assert each.queries == {name: (f"{name} of {question.text}",) for name in chosen}
        assert each.reason.startswith(f"{', '.join(chosen) or 'no strategy'} by P of at least 0.50: kwr 0.")
        calls = {"model_calls": 1.0, "reply_tokens": 3.0} if chosen else {}
        assert {name: cost for name, cost in each.costs.items() if name != "tokens"} == {**calls, "choice_calls": 1.0}
        assert each.costs["tokens"] > 7.0 * bool(chosen)
    assert [strategies for strategies, _ in inner.calls] == [names for names in dict.fromkeys(expected) if names]
    for strategies, texts in inner.calls:
        assert texts == tuple(text for text, chosen in zip(TEXTS, expected, strict=True) if chosen == strategies)
    assert rewriter.rewrite(ASKED[3:4], STRATEGIES)[0].queries == made[3].queries
    assert rewriter.rewrite([], STRATEGIES) == []


def test_fewer_strategies_to_choose_from_change_no_other_choice(serving: Path) -> None:
    rewriter = AdaptiveRewriter(TableRewriter(TABLE), serving, device="cpu", precision="fp32")
    for chosen, each in zip(choices(serving), rewriter.rewrite(ASKED, ("cce", "kwr")), strict=True):
        assert list(each.queries) == [name for name in ("cce", "kwr") if name in chosen]


def test_the_threshold_and_what_is_always_asked(serving: Path) -> None:
    everything = AdaptiveRewriter(TableRewriter(TABLE), serving, threshold=0.0, device="cpu")
    assert [*map(len, (each.queries for each in everything.rewrite(ASKED, STRATEGIES)))] == [3] * 12
    nothing = AdaptiveRewriter(TableRewriter(TABLE), serving, threshold=1.0, device="cpu")
    assert [each.queries for each in nothing.rewrite(ASKED, STRATEGIES)] == [{}] * 12
    with_gqr = AdaptiveRewriter(
        TableRewriter({text: {"gqr": ["general"], **own} for text, own in TABLE.items()}), serving, 1.0, ("gqr",), "cpu"
    )
    made = with_gqr.rewrite(ASKED, ("gqr", "kwr"))
    assert [each.queries for each in made] == [{"gqr": ("general",)}] * 12
    assert made[0].reason.startswith("gqr by P of at least 1.00: gqr always, kwr 0.")
    assert with_gqr.strategies == ("gqr", *STRATEGIES)
    other = [*choices(serving, 0.9)]
    raised = AdaptiveRewriter(TableRewriter(TABLE), serving, threshold=0.9, device="cpu", precision="fp32")
    assert [tuple(each.queries) for each in raised.rewrite(ASKED, STRATEGIES)] == other != choices(serving)


def test_a_question_that_is_too_long_is_chosen_for_by_its_first_tokens(serving: Path) -> None:
    long, longer = (Question("long", "name1 " * words) for words in (22, 30))
    table = TableRewriter({each.text: {name: ["name1"] for name in STRATEGIES} for each in (long, longer)})
    made, alike = AdaptiveRewriter(table, serving, device="cpu").rewrite([long, longer], STRATEGIES)
    assert made.reason == alike.reason
    assert made.queries == alike.queries


class Words:
    """A rewriter that reads the first search: its query is the title of the best passage."""

    name, feedback_passages = "words", 4

    def rewrite(
        self, questions: Sequence[Question], strategies: Sequence[str], found: Sequence[Sequence[Ranked]]
    ) -> list[Rewrites]:
        return [Rewrites({name: (f"{name} {hits[0].passage.title}",) for name in strategies}) for hits in found]


def test_a_rewriter_that_reads_the_first_search_gets_what_its_questions_found(
    serving: Path, bm25: Bm25Retriever
) -> None:
    rewriter = AdaptiveRewriter(Words(), serving, device="cpu", precision="fp32")  # type: ignore[arg-type]
    assert isinstance(rewriter, Rewriter)
    assert isinstance(rewriter, FeedbackRewriter)
    assert not isinstance(AdaptiveRewriter(TableRewriter(TABLE), serving, device="cpu"), FeedbackRewriter)
    passages = [Passage.of(f"title{n}", "text") for n in range(12)]
    made = rewriter.rewrite(ASKED, STRATEGIES, [[Ranked(each, 0.0)] for each in passages])
    for place, (chosen, each) in enumerate(zip(choices(serving), made, strict=True)):
        assert each.queries == {name: (f"{name} title{place}",) for name in chosen}
    with pytest.raises(UserError, match="words reads what a first search found"):
        rewriter.rewrite(ASKED, STRATEGIES)
    counting = CountingRetriever(bm25)
    found = MultiQueryRetriever(counting, rewriter, STRATEGIES, per_query=3, fusion="rrf").find(ASKED, 3).results
    assert counting.asked[0] == (TEXTS, 4)
    assert len(counting.asked) == 2
    for chosen, each in zip(choices(serving), found, strict=True):
        makers = [name for search in each.searches for name in search.made_by]
        assert makers == [ORIGINAL, *chosen]


def test_its_costs_in_a_system(serving: Path, bm25: Bm25Retriever) -> None:
    system = Dmqr(
        bm25, AdaptiveRewriter(TableRewriter(TABLE), serving, device="cpu", precision="fp32"), STRATEGIES, fusion="rrf"
    )
    for chosen, answer in zip(choices(serving), system.answer(ASKED), strict=True):
        assert answer.costs["choice_calls"] == 1
        assert answer.costs.get("rewriter_calls", 0) == bool(chosen)
        assert answer.costs["retriever_calls"] == 1 + len(chosen)
        assert str(answer.notes["reason"]).startswith(", ".join(chosen) or "no strategy")


def test_all_fallbacks_of_a_call_are_one_line(serving: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Falling(TableRewriter):
        def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
            found = [with_fallbacks(each.text, strategies, {}, "it is empty") for each in questions]
            tell_fallbacks(self.name, found)
            return found

    chosen = sum(map(len, choices(serving)))
    AdaptiveRewriter(Falling({}), serving, device="cpu", precision="fp32").rewrite(ASKED, STRATEGIES)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        f"table, adaptive: {chosen} of {chosen} rewrites fell back to the question: it is empty ({chosen})."
    )
    tell_fallbacks("alone", [with_fallbacks("q", ("kwr",), {}, "why")])
    assert "alone: 1 of 1" in capsys.readouterr().err


def test_it_reads_earlier_turns_as_its_rewriter_does(serving: Path) -> None:
    class Reads(TableRewriter):
        reads_history = True

    class System:
        def __init__(self, rewriter: object) -> None:
            self.rewriter = rewriter

    for inner in (TableRewriter(TABLE), Reads(TABLE)):
        assert reads_history(System(AdaptiveRewriter(inner, serving))) is isinstance(inner, Reads)


def test_strategies_are_checked_before_a_model_is_loaded(
    serving: Path, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    words = ExtractiveRewriter(tmp_path / "words")  # there is none
    check_strategies(AdaptiveRewriter(words, serving), ("kwr", "par"))
    with pytest.raises(UserError, match="does not know the strategy 'hop'; it knows: kwr, par, cce"):
        check_strategies(AdaptiveRewriter(words, serving), ("kwr", "hop"))
    check_strategies(AdaptiveRewriter(words, serving, always=("hop",)), ("kwr", "hop"))
    with pytest.raises(UserError, match="always names 'gqr', which is not among the strategies: kwr, hop"):
        check_strategies(AdaptiveRewriter(words, serving, always=("hop", "gqr")), ("kwr", "hop"))
    four = save_classifier(checkpoints["bert"], tmp_path / "four", (*STRATEGIES, "gqr"))
    with pytest.raises(UserError, match=r"extractive rewriter .* does not know the strategy 'gqr'"):
        check_strategies(AdaptiveRewriter(words, four), ("kwr", "gqr"))
    with pytest.raises(UserError, match="does not know the strategy 'hop'"):
        AdaptiveRewriter(TableRewriter(TABLE), serving, device="cpu").rewrite(ASKED, ("hop",))
    shutil.copytree(serving, tmp_path / "corrupt")
    with (tmp_path / "corrupt" / "choice" / "model.safetensors").open("ab") as file:
        file.write(b"x")
    with pytest.raises(ArtifactError, match=r"model\.safetensors"):
        AdaptiveRewriter(TableRewriter(TABLE), tmp_path / "corrupt").load()


def test_its_facts_and_what_it_wraps(serving: Path) -> None:
    inner = TableRewriter(TABLE)
    rewriter = AdaptiveRewriter(inner, serving, always=("kwr",), device="cpu", precision="fp32")
    assert rewriter.facts == [
        "rewriter: table",
        f"choice {serving}: strategies with P 0.500 or more, always kwr, computed in float32",
    ]
    assert rewriter.without_choice() is inner
    assert rewriter.recipe is None
