"""DR-RAG's selections against values worked out by hand, brute force, and properties that hold for any input."""

import itertools
import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.selection import algorithms
from harness.selection.algorithms import Rankings, filled
from harness.selection.lazy_scoring import decide
from harness.selection.options import SelectionOptions

FIRST, POOLS = ["a", "b"], [["x", "y", "z"], ["x", "w", "y"]]


def only(*pairs):
    """A pair test that is positive for the given pairs alone."""
    return lambda d1, d2: (d1, d2) in pairs


def test_second_stage_counts_depth_after_removing_the_first_stage():
    assert [algorithms.first_stage_size(k) for k in (1, 2, 3, 4, 6)] == [1, 1, 2, 2, 3]
    rankings = Rankings(tuple("abcdef"), (tuple("abxcyz"), tuple("baxwcy")))
    assert algorithms.second_stage(rankings, 2, 3) == [["x", "c", "y"], ["x", "w", "c"]]
    assert algorithms.second_stage(rankings, 2, 3, "ranking") == [["c", "d", "e"], ["c", "d", "e"]]
    assert algorithms.second_stage(rankings, 2, 2, "both") == [["x", "c", "d"], ["x", "w", "c", "d"]]


def test_qdc_goes_round_the_first_stage():
    whole = ["a", "b", "x", "w", "y", "z"]  # b's first candidate not in Cnt, round again, until candidates run out
    assert [algorithms.qdc(FIRST, POOLS, k) for k in (3, 4, 5, 9)] == [whole[:3], whole[:4], whole[:5], whole]
    assert algorithms.qdc(["a"], [["x", "y", "z"]], 3) == ["a", "x", "y"]  # k1 = 1 fills k2 alone
    distinct = [["p", "q", "r"], ["s", "t", "u"]]
    assert algorithms.qdc(FIRST, distinct, 7) == ["a", "b", "p", "s", "q", "t", "r"]  # one of each in turn


def test_cfs_walks_down_to_the_first_positive():
    positive = only(("a", "y"), ("a", "z"), ("b", "y"), ("b", "x"))
    assert algorithms.cfs(FIRST, POOLS, 4, positive) == ["a", "b", "y", "x"]
    assert algorithms.cfs(FIRST, POOLS, 3, positive) == ["a", "b", "y"]  # the budget ends the walk
    assert algorithms.cfs(FIRST, POOLS, 4, positive, cfs_rule="all") == ["a", "b", "y", "z"]
    assert algorithms.cfs(FIRST, POOLS, 6, positive, cfs_rule="all") == ["a", "b", "y", "z", "x"]
    assert algorithms.cfs(FIRST, POOLS, 4, only()) == ["a", "b"]  # fewer than k
    # what an earlier document brought is passed over
    assert algorithms.cfs(FIRST, POOLS, 4, only(("a", "x"), ("b", "x"), ("b", "y"))) == ["a", "b", "x", "y"]
    asked = []  # in the order of equation 4, and no more than it needs
    algorithms.cfs(FIRST, POOLS, 3, lambda d1, d2: asked.append((d1, d2)) or (d1, d2) == ("a", "y"))
    assert asked == [("a", "x"), ("a", "y")]


def test_cis_drops_second_stage_documents_negative_with_every_first_stage_one():
    chosen = ["a", "b", "x", "w"]
    assert algorithms.cis(chosen, FIRST, only(("x", "b"))) == ["a", "b", "x"]
    assert algorithms.cis(chosen, FIRST, only(("b", "x"), ("x", "w"))) == ["a", "b"]  # order and stage count
    assert algorithms.cis(chosen, FIRST, only()) == ["a", "b"]
    # over all: each pair is judged once against the whole set
    assert algorithms.cis(chosen, FIRST, only(("w", "x"), ("x", "a")), cis_scope="all") == ["a", "x", "w"]
    asked = []
    assert algorithms.cis(chosen, FIRST, lambda *pair: asked.append(pair) or False, cis_scope="all") == []
    assert {*asked} == {(later, earlier) for earlier, later in itertools.combinations(chosen, 2)}


def test_ranked_fills_the_budget_by_pair_score_and_gives_up_a_lonely_first_stage_document():
    table = {("a", "z"): 0.9, ("b", "w"): 0.8, ("a", "b"): 0.7}
    score = lambda d1, d2: table.get((d1, d2), 0.1)  # noqa: E731
    ranking = ["a", "b", "c", "x"]
    choose = lambda k, **options: algorithms.ranked(ranking, FIRST, POOLS, k, score, **options)  # noqa: E731
    whole = ["a", "z", "b", "w"]
    assert [choose(k) for k in (2, 3, 4)] == [whole[:2], whole[:3], whole]
    assert choose(2, keep_first=2) == ["a", "b"]
    table = {("b", "w"): 0.9}
    assert choose(2, keep_first=0) == ["b", "w"]
    assert choose(2) == ["a", "b"]  # a is kept, and one place is left
    assert choose(4, keep_first=0)[:2] == ["b", "w"]


def test_ranked_pairs_first_stage_documents_with_each_other_and_is_filled_up_from_them():
    first, pools = ["a", "b", "c"], [["x"], ["x"], ["x"]]
    score = lambda d1, d2: 0.9 if (d1, d2) == ("b", "c") else 0.5  # noqa: E731
    assert algorithms.ranked(first, first, pools, 2, score, keep_first=0) == ["b", "c"]
    assert algorithms.ranked(["a", "b", "c", "d"], ["a"], [["x"]], 4, lambda d1, d2: 0.9) == ["a", "x", "b", "c"]
    assert algorithms.ranked([], [], [], 4, lambda d1, d2: 0.9) == []
    saturated = {("a", "x"): 1.0, ("a", "y"): 0.999, ("a", "z"): 0.0}
    found = algorithms.ranked(["a"], ["a"], [["z", "y", "x"]], 3, lambda *pair: saturated[pair])
    assert found == ["a", "x", "y"]


def test_ranked_prior_is_worth_its_reciprocal_rank_in_nats():
    ranking, pools = ["a", "b", "c"], [["c", "x"], []]
    table = {("a", "x"): 0.60, ("a", "c"): 0.55, ("a", "b"): 0.01}
    log_odds = {pair: math.log(p / (1 - p)) for pair, p in table.items()}
    even = (log_odds["a", "x"] - log_odds["a", "c"]) * 3  # c is at rank 3, x is not in the ranking

    def third(weight):
        prior = algorithms.retrieval_prior(Rankings(tuple(ranking)), weight, 0.0, 3, 0)
        return algorithms.ranked(ranking, FIRST, pools, 2, lambda d1, d2: table[d1, d2], prior=prior)[1]

    assert third(even * 0.99) == "x"
    assert third(even * 1.01) == "c"


def test_a_score_s_prior_is_scaled_within_each_search_and_what_the_retrieval_found_deeper_does_not_count():
    rankings = Rankings(("a", "b", "c"), (("x", "b", "y"), ("z",)), (8.0, 5.0, 2.0), ((0.9, 0.4, -0.1), (7.0,)))
    whole = algorithms.retrieval_prior(rankings, 0.0, 4.0, 3, 3)
    # a, b and c are worth 1, 1/2 and 0 in Retriever(q); x, b and y 1, 1/2 and 0 in Retriever(q*_1); z alone 0 in
    # Retriever(q*_2)
    pairs = ((0, "b"), (0, "c"), (0, "x"), (0, "y"), (1, "c"), (1, "z"))
    assert [whole(i, d) for i, d in pairs] == pytest.approx([8.0, 4.0, 8.0, 4.0, 2.0, 2.0])
    part = algorithms.retrieval_prior(rankings, 0.0, 4.0, 2, 2)
    assert [part(i, d) for i, d in pairs] == pytest.approx([4.0, 4.0, 8.0, 4.0, 0.0, 0.0])


def test_a_walk_adds_what_the_best_first_stage_document_passes_on():
    # a, b, c and d are worth 1, 1/2, 1/4 and 0 in Retriever(q), which is asked with a and b. With a: a 1, x 3/4, b 1/2,
    # y 0; with b, which passes on half: b 1, y 1/2, x 0.
    rankings = Rankings(
        tuple("abcd"), (tuple("axby"), tuple("byx"), tuple("z")), (8.0, 6.0, 5.0, 4.0),
        ((5.0, 4.0, 3.0, 1.0), (9.0, 8.0, 7.0), (5.0,)),
    )  # fmt: skip
    # a 1, b 1/2 + 1/2, x 3/4, c 1/4, y 1/2 * 1/2, d 0
    assert algorithms.walk(rankings, 2, 6, 4, 4) == ["a", "b", "x", "c", "y", "d"]  # equal sums in order of retrieval
    assert algorithms.walk(rankings, 1, 4, 4, 4) == ["a", "b", "x", "c"]  # without what b passes on
    assert algorithms.walk(rankings, 2, 4, 3, 2) == ["a", "b", "c", "x"]  # the deeper ones do not count: x has 0
    options = SelectionOptions("walk", k=3, anchors=2, anchor_depth=2)
    assert (options.ranking_size, options.concatenations, options.concatenated_size) == (4, 2, 4)
    assert options.choose(rankings, lambda d1, d2: pytest.fail("a walk has no classifier")) == ["a", "b", "x"]


def test_a_score_weight_needs_as_deep_a_ranking_as_there_are_candidates():
    options = SelectionOptions("ranked", k=4, anchor_depth=10, score_weight=4.0)
    assert (options.ranking_size, options.concatenated_size) == (13, 13)
    rankings = Rankings(tuple("abc"), (tuple("xy"), tuple("yz"), ()), (3.0, 2.0, 1.0), ((2.0, 1.0), (2.0, 1.0), ()))
    even = lambda d1, d2: 0.5  # noqa: E731
    assert SelectionOptions("ranked", k=2).choose(rankings, even) == ["a", "b"]
    assert SelectionOptions("ranked", k=2, score_weight=1.0).choose(rankings, even) == ["a", "x"]


def test_cfs_symmetric_tests_the_mean_log_odds_of_both_orders_and_scores_both():
    table = {("a", "x"): 0.9, ("x", "a"): 0.05, ("a", "y"): 0.6, ("y", "a"): 0.6}
    score = lambda d1, d2: table[d1, d2]  # noqa: E731
    rankings, options = Rankings(("a",), (("x", "y"),)), SelectionOptions("cfs", k=2, threshold=0.5)
    assert options.choose(rankings, score) == ["a", "x"]
    both = replace(options, symmetric=True)
    for lookahead in (1, 8):
        (decision,) = decide([(both, rankings)], lambda pairs: [table[pair] for _, pair in pairs], lookahead)
        assert decision.documents == ["a", "y"]
        assert set(decision.scores) == set(table)
    # ln(.9/.1) + ln(.05/.95) = -0.75: half of it is the log-odds of 0.407
    assert replace(both, threshold=0.4).choose(rankings, score) == ["a", "x"]
    assert replace(both, threshold=0.41).choose(rankings, score) == ["a", "y"]
    assert algorithms.ranked(["a"], ["a"], [["x", "y"]], 2, score) == ["a", "x"]
    assert algorithms.ranked(["a"], ["a"], [["x", "y"]], 2, score, symmetric=True) == ["a", "y"]


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("options", [{}, {"symmetric": True}, {"method": "cis"}, {"method": "cis", "cis_scope": "all"}])
def test_a_pair_at_the_threshold_is_positive(options, threshold):
    selection = SelectionOptions(**{"method": "cfs", "k": 4, "threshold": threshold, **options})
    assert selection.choose(Rankings(("a", "b"), (("x",), ("y",))), lambda d1, d2: threshold) == ["a", "b", "x", "y"]


IDS = [f"d{i}" for i in range(14)]


@st.composite
def problems(draw):
    """Candidates of any size, a selection with any options, and a score for every ordered pair."""
    lists = st.lists(st.sampled_from(IDS), unique=True)
    ranking = draw(lists)
    concatenated = [draw(lists) for _ in ranking]
    k = draw(st.integers(1, 7))
    options = SelectionOptions(
        method=draw(st.sampled_from(["sm", "qdc", "walk", "cis", "cfs", "ranked"])),
        k=k,
        k1=draw(st.none() | st.integers(1, k)),
        depth=draw(st.none() | st.integers(1, 6)),
        cfs_rule=draw(st.sampled_from(["first", "all"])),
        cis_scope=draw(st.sampled_from(["second", "all"])),
        second_stage=draw(st.sampled_from(["qdc", "ranking"])),
        anchors=draw(st.none() | st.integers(1, 5)),
        anchor_depth=draw(st.integers(1, 6)),
        candidate_pool=draw(st.sampled_from(["qdc", "ranking", "both"])),
        keep_first=draw(st.integers(0, k)),
        prior_weight=draw(st.sampled_from([0.0, 0.5])),
        score_weight=draw(st.sampled_from([0.0, 2.0])),
        symmetric=draw(st.none() | st.booleans()),
    )
    random = Random(draw(st.integers(0, 1000)))
    scores = {pair: random.random() for pair in itertools.permutations(IDS, 2)}
    of_lists = [tuple(random.uniform(-1, 1) for _ in found) for found in (ranking, *concatenated)]
    return options, Rankings(tuple(ranking), tuple(map(tuple, concatenated)), of_lists[0], tuple(of_lists[1:])), scores


@given(problems())
@settings(max_examples=100)
def test_any_selection_keeps_within_budget_and_candidates(problem):
    options, rankings, scores = problem
    chosen = options.choose(rankings, lambda d1, d2: scores[d1, d2])
    assert len(chosen) <= options.k
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= set(rankings.ranking).union(*rankings.concatenated)
    if options.method == "cfs" or (options.method == "cis" and options.cis_scope == "second"):
        first = list(rankings.ranking[: options.first_size])
        assert chosen[: len(first)] == first
    if options.method == "ranked":
        assert set(rankings.ranking[: options.keep_first]) <= set(chosen)


@given(problems(), st.integers(1, 5))
@settings(max_examples=100)
def test_deciding_in_rounds_equals_asking_pair_by_pair(problem, lookahead):
    options, rankings, scores = problem
    needed, asked = set(), []
    expected = options.choose(rankings, lambda *pair: needed.add(pair) or scores[pair])

    def batch(pairs):
        asked.extend(pair for _, pair in pairs)
        return [scores[pair] for _, pair in pairs]

    (decision,) = decide([(options, rankings)], batch, lookahead)
    assert decision.documents == expected
    assert len(asked) == len(set(asked))  # nothing is scored twice
    assert needed <= set(asked) == set(decision.scores)
    if lookahead == 1 and options.method == "cfs" and options.first_size == 1:
        assert set(asked) == needed


@given(problems())
@settings(max_examples=100)
def test_cfs_equals_a_literal_reading_of_equation_4(problem):
    options, rankings, scores = problem
    first, pools = options.stages(rankings)
    k = len(first) + 2
    expected = list(first)
    for i, d_i in enumerate(first):
        eligible = [d for d in pools[i] if d not in expected and scores[d_i, d] >= 0.5]
        expected = (expected + eligible[:1])[:k]
    assert algorithms.cfs(first, pools, k, lambda d1, d2: scores[d1, d2] >= 0.5) == expected


def test_lookahead_trades_rounds_for_pairs():
    def rounds(lookahead, **more):
        options, sizes = SelectionOptions(method="cfs", k=2, depth=8, **more), []

        def batch(pairs):
            sizes.append(len(pairs))
            return [float("d4" in pair) for _, pair in pairs]

        (decision,) = decide([(options, Rankings(("a",), (("a", *IDS),)))], batch, lookahead)
        assert decision.documents == ["a", "d4"]
        return sizes

    assert [rounds(lookahead) for lookahead in (1, 4, 8)] == [[1, 1, 1, 1, 1], [4, 4], [8]]
    assert rounds(4, symmetric=True) == [8, 8]  # stops as one order does


def test_all_jobs_share_a_round():
    options = SelectionOptions(method="cfs", k=2)
    jobs = [(options, Rankings(("a",), (("x", "y"),))), (options, Rankings(("b",), (("x", "z"),)))]
    calls = []
    decide(jobs, lambda pairs: calls.append(pairs) or [1.0] * len(pairs), lookahead=1)
    assert calls == [[(0, ("a", "x")), (1, ("b", "x"))]]


@pytest.mark.parametrize("k", [3, 4, 6])
def test_a_selection_asks_retrieval_for_what_the_decided_depths_need(k):
    half = math.ceil(k / 2)
    sm, cfs = SelectionOptions(method="sm", k=k), SelectionOptions(method="cfs", k=k)
    without = SelectionOptions(method="cfs", k=k, second_stage="ranking")
    ranked = SelectionOptions(method="ranked", k=k, candidate_pool="both")
    assert (sm.ranking_size, sm.concatenations) == (k, 0)
    assert (cfs.ranking_size, cfs.concatenations, cfs.concatenated_size) == (k, half, 2 * k + half)
    assert (without.ranking_size, without.concatenations) == (half + 2 * k, 0)
    assert (ranked.ranking_size, ranked.concatenations, ranked.concatenated_size) == (15, 3, 15)


def test_empty_places_go_to_the_ranking_but_not_to_what_was_refused():
    rankings = Rankings(("a", "b", "c", "d"), (("x", "y", "c"), ("c", "z", "y")))
    score = lambda d1, d2: {("a", "x"): 0.2, ("a", "y"): 0.9}.get((d1, d2), 0.0)  # noqa: E731
    bare = SelectionOptions(method="cfs", k=4)
    assert bare.choose(rankings, score) == ["a", "b", "y"]
    assert replace(bare, fill_budget=True).choose(rankings, score) == ["a", "b", "y", "c"]
    assert replace(bare, fill_budget=True, threshold=1.0).choose(rankings, score) == ["a", "b", "c", "d"]  # nothing: SM
    cis = SelectionOptions(method="cis", k=4, fill_budget=True)  # QDC takes a, b, x, c; x and c are negative with both
    assert cis.choose(rankings, score) == ["a", "b", "d"]
    assert filled(["p"], ["p", "q"], 1) == ["p"]
