"""Collecting preferences: what is searched, what is fused, and rows against the system's own retrieval."""

from pathlib import Path

import pytest
import torch

from common.errors import UserError
from common.preferences import Candidate, RewritePreferences
from common.records import Passage, Question
from datamodules.formats.preferences import rewrite_preferences
from harness.preferences.collecting import Collected, Collector
from harness.preferences.drafts import FAILED, Drafter
from harness.preferences.report import counts_of, counts_text
from harness.preferences.rewards import GoldRecall
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.multi_query import MultiQueryRetriever
from harness.rewriters.extractive import ExtractiveRewriter
from models.dmqr.word_selector import KIND, WordSelector
from models.dmqr.word_tokenizer import TEXT_FORMAT
from models.serving_manifest import write_manifest
from tests.helpers.table_rewriter import CountingRetriever, TableRewriter, WorstFirst

PASSAGES = [
    Passage.of("north", "kiln amber"), Passage.of("south", "kiln kiln"), Passage.of("east", "amber jetty orchard"),
    Passage.of("far", "delta glade"), Passage.of("west", "jetty jetty glade"),
]  # fmt: skip
GOLD = PASSAGES[2]
KILN = Question("q1", "The kiln?", support=(GOLD.id,))
GLADE = Question("q2", "Which glade", support=(PASSAGES[0].id, GOLD.id))
TABLE = {
    KILN.text: {"gqr": ["jetty orchard"], "decomposition": ["amber", "orchard"]},
    GLADE.text: {"gqr": ["jetty orchard"], "decomposition": ["amber kiln", "orchard"]},
}
REWARD = GoldRecall(half_rank=2)


@pytest.fixture(scope="module")
def bm25(tmp_path_factory: pytest.TempPathFactory) -> Bm25Retriever:
    index = tmp_path_factory.mktemp("index") / "bm25"
    build_bm25(PASSAGES, index)
    return Bm25Retriever(index)


@pytest.fixture(scope="module")
def extractive(checkpoints: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> ExtractiveRewriter:
    """An untrained selector that is undecided about every word."""
    folder = tmp_path_factory.mktemp("words") / "serving"
    torch.manual_seed(1)
    WordSelector.build(str(checkpoints["bert"]), 64).save(folder)
    write_manifest(folder, KIND, TEXT_FORMAT, 64)
    return ExtractiveRewriter(folder, 2, stay_probability=0.5, join_probability=0.05, join_words=3, device="cpu")


def collect(
    bm25: Bm25Retriever | CountingRetriever, questions: list[Question], fused: bool = True, table: dict = TABLE
) -> Collected:
    rewriter = TableRewriter(table)
    drafts = Drafter(rewriter, ["gqr", "decomposition"], 0, 1.0, 0)
    return Collector(drafts, REWARD, bm25, fused, 4, 0)(questions)


@pytest.mark.parametrize("fused", [True, False])
def test_rewards_are_those_of_the_system_s_own_lists(bm25: Bm25Retriever, fused: bool) -> None:
    rows = collect(bm25, [KILN, GLADE], fused).rows
    assert [(row.question_id, row.strategy) for row in rows] == [
        ("q1", "gqr"), ("q1", "decomposition"), ("q2", "gqr"), ("q2", "decomposition"),
    ]  # fmt: skip
    for row in rows:
        question = {"q1": KILN, "q2": GLADE}[row.question_id]
        system = MultiQueryRetriever(bm25, TableRewriter(TABLE), (row.strategy,), 4, "rrf", original=fused)
        (ranked,) = [each.ranked for each in system.find([question], 100).results]
        (candidate,) = row.candidates
        assert candidate.rewrite == "; ".join(TABLE[question.text][row.strategy])
        assert candidate.greedy
        assert (candidate.times, candidate.log_probability) == (0, None)
        (expected,) = REWARD([question], [[]], [ranked])
        assert candidate.reward == pytest.approx(expected, abs=1e-6)
        (alone,) = REWARD([question], [[]], bm25.search([question.text], 4))
        assert row.question_reward == pytest.approx(alone, abs=1e-6)
    assert rows[0].candidates[0].reward > rows[0].question_reward == 0.0


def test_all_questions_are_one_search_with_every_query_once(bm25: Bm25Retriever) -> None:
    counting = CountingRetriever(bm25)
    collect(counting, [KILN, GLADE])
    ((queries, depth),) = counting.asked
    assert sorted(queries) == sorted({KILN.text, GLADE.text, "jetty orchard", "amber", "orchard", "amber kiln"})
    assert depth == 4


def test_a_fallback_has_the_question_s_reward_and_a_failed_call_no_row(bm25: Bm25Retriever) -> None:
    (one, other) = collect(bm25, [KILN], table={KILN.text: {"gqr": ["jetty"]}}).rows
    assert other.candidates[0].rewrite == KILN.text
    assert other.candidates[0].reward == other.question_reward == one.question_reward

    class Failing(TableRewriter):
        def rewrite(self, questions, strategies):  # type: ignore[no-untyped-def]
            made = super().rewrite(questions, strategies)
            for each in made:
                each.costs["failed_calls"] = 1.0
            return made

    drafts = Drafter(Failing({GLADE.text: {"gqr": ["jetty"]}}), ["gqr"], 0, 1.0, 0)
    collected = Collector(drafts, REWARD, bm25, True, 4, 0)([KILN, GLADE])
    assert [row.question_id for row in collected.rows] == ["q2"]
    assert collected.skipped == {FAILED: 1}


def test_a_rewriter_without_samples_says_so() -> None:
    with pytest.raises(UserError, match="table cannot be sampled: type --samples 0"):
        Drafter(TableRewriter({}), ["gqr"], 4, 1.0, 0)


@pytest.mark.parametrize("another", [False, True])
def test_a_rewriter_reads_what_its_questions_find(
    bm25: Bm25Retriever, extractive: ExtractiveRewriter, another: bool
) -> None:
    searched, feedback_retriever = (WorstFirst(bm25), bm25) if another else (bm25, None)
    counting, strategies = CountingRetriever(searched), ("par", "hop")
    drafts = Drafter(extractive, strategies, 0, 1.0, 0)
    collected = Collector(drafts, REWARD, counting, True, 4, extractive.feedback_passages, feedback_retriever)(
        [KILN, GLADE]
    )
    if not another:  # the first search serves both
        assert counting.asked[0] == ([KILN.text, GLADE.text], 4)
        assert not {KILN.text, GLADE.text} & set(counting.asked[1][0])
    assert [(row.question_id, row.strategy) for row in collected.rows] == [
        (question, strategy) for question in ("q1", "q2") for strategy in strategies
    ]
    for row in collected.rows:
        question = {"q1": KILN, "q2": GLADE}[row.question_id]
        system = MultiQueryRetriever(
            searched, extractive, (row.strategy,), 4, "rrf", feedback_retriever=feedback_retriever
        )
        (result,) = system.find([question], 100).results
        (expected,) = REWARD([question], [[]], [result.ranked])
        assert row.candidates[0].reward == pytest.approx(expected, abs=1e-6)
    assert [rewrite_preferences(row) for row in collected.saved["rows"]] == collected.rows


def test_counts_and_means(bm25: Bm25Retriever) -> None:
    rows = collect(bm25, [KILN, GLADE], table={KILN.text: {"gqr": ["the KILN"]}, GLADE.text: TABLE[GLADE.text]}).rows
    counts = counts_of(rows, {"no gold passage": 3})
    greedy = [row.candidates[0].reward for row in rows]
    assert (counts["questions"], counts["rows"], counts["candidates"]) == (2, 4, 4)
    assert counts["reward"] == {
        "question": pytest.approx(sum(row.question_reward for row in rows) / 4, abs=1e-6),
        "greedy": pytest.approx(sum(greedy) / 4, abs=1e-6), "sample": None, "best_of_n": None,
    }  # fmt: skip
    assert counts["unchanged_share"] == {"greedy": 0.5, "sample": None}
    assert counts_text(counts).endswith("; 3 skipped (no gold passage).")
    sampled = (Candidate("the kiln", 0.5, -1.0, 2, True), Candidate("jetty", 0.8, -2.0, 1))
    counts = counts_of([RewritePreferences("q1", KILN.text, "gqr", 0.1, sampled)], {})
    assert counts["reward"] == {"question": 0.1, "greedy": 0.5, "sample": 0.6, "best_of_n": 0.8}
    assert counts["unchanged_share"] == {"greedy": 1.0, "sample": pytest.approx(2 / 3, abs=1e-6)}
