"""Beam search over chains against hand-worked cases and a brute force over all chains."""

import math
import random
from collections.abc import Callable, Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import UserError
from harness.selection.beam import BeamOptions, BeamResult, Found, Ids, beam_search

LogOdds = Callable[[Ids, bool], float]


def search(
    options: BeamOptions,
    log_odds: LogOdds,
    found: dict[Ids, str],
    default: str = "",
    scores: Callable[[Ids], Sequence[float]] = lambda chain: (),
) -> BeamResult:
    """One question's beam: `found` maps chains to their candidates, one letter each; `default` is for other chains."""
    (result,) = beam_search(
        1,
        options,
        lambda chains: [Found(found.get(chain, default), scores(chain)) for _, chain in chains],
        lambda steps: [log_odds(chain, ended) for _, chain, ended in steps],
    )
    return result


def table(positive: dict[str, float], otherwise: float = -5.0) -> LogOdds:
    """Log-odds of the chains of a table, written as letters; a complete one ends with a full stop."""
    return lambda chain, ended: positive.get("".join(chain) + "." * ended, otherwise)


def random_by_set(seed: int) -> LogOdds:
    """Log-odds that depend on a chain's documents, not on their order."""
    return lambda chain, ended: random.Random(f"{seed}/{sorted(chain)}/{ended}").gauss(0, 2)


def random_scores(seed: int, count: int) -> Callable[[Ids], list[float]]:
    """The retriever's scores of a search with a chain, which depend on its documents, not on their order."""

    def scores(chain: Ids) -> list[float]:
        rng = random.Random(f"{seed}/{sorted(chain)}")
        return [rng.uniform(-3, 9) for _ in range(count)]

    return scores


def brute_force(
    documents: str,
    hops: int,
    log_odds: LogOdds,
    scoring: str,
    weight: float,
    scores: Callable[[Ids], list[float]],
) -> dict[tuple[frozenset[str], bool], float]:
    """The score of every complete chain and every chain of full length by its set: the best over all orders."""

    def prior(prefix: Ids, document: str) -> float:
        value = 0.0
        for searched in {(), prefix}:
            of = scores(searched)
            value += (of[documents.index(document)] - min(of)) / (max(of) - min(of))
        return weight * value

    best: dict[tuple[frozenset[str], bool], float] = {}
    for length in range(1, hops + 1):
        for chain in permutations(documents, length):
            steps = [(chain[: n + 1], False) for n in range(length)] + [(chain, True)] * (length < hops)
            score = priors = 0.0
            for number, (after, ended) in enumerate(steps):
                prefix = chain[:number]
                own = 0.0 if ended else prior(prefix, after[-1])
                priors += own
                step = log_odds(after, ended) + own
                others = [log_odds((*prefix, d), False) + prior(prefix, d) for d in documents if d not in prefix]
                others += [log_odds(prefix, True)] if prefix else []
                if scoring == "last":
                    score = log_odds(after, ended) + priors / len(after)
                elif scoring == "sum":
                    score += -math.log(1 + math.exp(-step))
                else:
                    score += step - math.log(1 + sum(math.exp(each) for each in others))
            key = (frozenset(chain), length < hops)
            best[key] = max(best.get(key, -math.inf), score)
    return best


@pytest.mark.parametrize("scoring", ["last", "sum", "softmax"])
@pytest.mark.parametrize("hops", [1, 2, 3, 4])
@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_a_wide_beam_finds_what_a_brute_force_over_all_chains_finds(scoring: str, hops: int, weight: float) -> None:
    documents = "abcde"
    for seed in range(4):
        log_odds, scores = random_by_set(seed), random_scores(seed, len(documents))
        options = BeamOptions(k=5, width=10_000, most_hops=hops, depth=5, scoring=scoring, score_weight=weight)  # type: ignore[arg-type]
        result = search(options, log_odds, {}, documents, scores)
        expected = brute_force(documents, hops, log_odds, scoring, weight, scores)
        found = {(frozenset(chain.documents), chain.ended): chain.score for chain in result.chains}
        assert found == pytest.approx(expected)
        assert [chain.score for chain in result.chains] == sorted(found.values(), reverse=True)
        assert not result.passed_over


def test_the_second_hop_is_found_through_the_first() -> None:
    found = {(): "axyz", ("a",): "xab", ("x",): "yza"}
    result = search(
        BeamOptions(k=3, width=2, depth=2),
        table({"a": 1.0, "x": 0.5, "ab": 2.0, "ax": -1.0, "ab.": 1.5}),
        found,
    )
    assert [(chain.documents, chain.ended, chain.score) for chain in result.chains[:1]] == [(("a", "b"), True, 1.5)]
    assert result.chains[0].log_odds == (1.0, 2.0, 1.5)
    assert set(result.passed_over) == {frozenset("xy"), frozenset("xz")}
    assert list(result.documents(3)) == ["a", "b", "x"]  # x: of ax, the beam's second chain


def test_the_learned_end_decides_between_chains_of_different_length() -> None:
    found = {(): "ab", ("a",): "b", ("a", "b"): "c", ("b",): "a"}
    growing = {"a": 2.0, "ab": 2.0, "abc": 2.0}
    for ends, best in (({"a.": 3.0}, "a"), ({"ab.": 3.0}, "ab"), ({"a.": 1.0, "ab.": 1.0}, "abc")):
        result = search(BeamOptions(k=3, width=2, depth=2), table({**growing, **ends}), found)
        assert "".join(result.chains[0].documents) == best
        assert result.chains[0].ended == (len(best) < 3)


def test_two_orders_are_one_chain_and_the_better_one_stays() -> None:
    found = {(): "ab", ("a",): "bc", ("b",): "ac"}
    log_odds = table({"a": 1.0, "b": 1.0, "ab": 0.5, "ba": 2.0, "ac": 1.0})
    result = search(BeamOptions(k=2, width=3, depth=2), log_odds, found)
    assert [(chain.documents, chain.ended) for chain in result.chains] == [
        (("b", "a"), False),
        (("a", "c"), False),
        (("a",), True),
    ]


def test_a_complete_chain_keeps_its_place_only_while_it_is_good_enough() -> None:
    found = {(): "ab", ("a",): "c", ("b",): "d", ("b", "d"): "e"}
    log_odds = {"a": 1.0, "b": 0.9, "a.": 1.5, "bd": 2.0, "bde": 1.7}
    for hops, beam in ((2, ["bd", "a"]), (3, ["bde", "a"])):
        result = search(BeamOptions(width=2, depth=2, most_hops=hops), table(log_odds), found)
        assert ["".join(chain.documents) for chain in result.chains] == beam
    result = search(BeamOptions(width=2, depth=2, most_hops=3), table({**log_odds, "bd.": 1.6}), found)
    assert ["".join(chain.documents) for chain in result.chains] == ["bde", "bd"]


def test_the_question_s_own_candidates_may_be_considered_again() -> None:
    found = {(): "ab", ("a",): "xyb", ("b",): "xya"}
    log_odds = table({"a": 1.0, "b": 0.5, "ab": 2.0})
    assert search(BeamOptions(k=2, width=1, depth=2), log_odds, found).chains[0].documents == ("a", "x")
    assert search(BeamOptions(k=2, width=1, depth=2, again=2), log_odds, found).chains[0].documents == ("a", "b")


def test_a_question_whose_chains_are_all_complete_is_asked_no_more() -> None:
    asked: list[list[tuple[int, Ids]]] = []
    scored: list[int] = []

    def retrieve(chains: list[tuple[int, Ids]]) -> list[Found]:
        asked.append(chains)
        return [Found("ab")] * len(chains)

    def score(steps: list[tuple[int, Ids, bool]]) -> list[float]:
        scored.append(len(steps))
        return [3.0 if ended and question == 0 else float(len(chain)) / 9 for question, chain, ended in steps]

    first, second = beam_search(2, BeamOptions(k=3, width=1), retrieve, score)
    assert [len(chains) for chains in asked] == [2, 2, 1]  # one batch per hop; the first question ends after its first
    assert scored == [4, 4, 1]  # the third hop finds no further document: its end alone
    assert (first.searches, second.searches) == (2, 3)
    assert (first.scored, second.scored) == (4, 5)
    assert first.chains[0].documents == ("a",)
    assert second.chains[0].documents == ("a", "b")


@given(st.integers(0, 1000), st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.integers(0, 2))
def test_documents_come_once_and_never_more_than_k(seed: int, k: int, width: int, depth: int, again: int) -> None:
    rng = random.Random(seed)
    found = {(): "".join(rng.sample("abcdef", 6))}
    log_odds = random_by_set(seed)

    def candidates(chain: Ids) -> str:
        return found.setdefault(chain, "".join(random.Random(f"{seed}{chain}").sample("abcdefgh", 6)))

    options = BeamOptions(k=k, width=width, depth=depth, again=again)

    def run(questions: int) -> list[BeamResult]:
        return beam_search(
            questions,
            options,
            lambda chains: [Found(candidates(chain)) for _, chain in chains],
            lambda steps: [log_odds(chain, ended) for _, chain, ended in steps],
        )

    one, two = run(2)
    assert one == two == run(1)[0]
    chosen = one.documents(k)
    assert len(chosen) == min(k, 6)
    assert one.searches <= options.most_searches
    assert one.scored <= options.most_scored
    assert len(one.chains) <= width
    for place, (document, chain) in enumerate(chosen.items()):
        assert chain is None or document in chain.documents
        if place == 0:
            assert chain == one.chains[0]


def test_a_beam_without_candidates_falls_back_to_the_ranking() -> None:
    assert list(search(BeamOptions(k=2), table({}), {(): ""}).documents(2)) == []
    result = search(BeamOptions(k=4, width=1, depth=1, most_hops=1), table({"a": 1.0}), {(): "abc"})
    assert list(result.documents(4).items()) == [("a", result.chains[0]), ("b", None), ("c", None)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"most_hops": 5}, "most_hops is 5; allowed: 1 to 4"),
        ({"width": 0}, "width"),
        ({"again": -1}, "again"),
        ({"scoring": "mean"}, "last, sum, softmax"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        BeamOptions(**options)  # type: ignore[arg-type]
