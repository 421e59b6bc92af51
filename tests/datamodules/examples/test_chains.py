"""Examples for a beam: what is drawn, how it is labelled, and that a group is one chain's extensions."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby

import pytest

from common.errors import UserError
from common.records import Passage, Question
from datamodules.examples.chains import (
    ChainExample,
    ChainSampling,
    draw,
    mined_expansions,
)
from datamodules.formats.expansions import Expansion
from datamodules.formats.mined_negatives import Mined
from models.drrag.triple_tokenizer import END
from tests.datamodules.examples.test_triples import GOLD, MINED, OWN, question

MANY = ChainSampling(candidates=3, noise_chains=2)


def drawn(golds: int = 3, sampling: ChainSampling = MANY, epochs: int = 60, **more: object) -> list[ChainExample]:
    """The examples of many epochs."""
    expansions = more.get("expansions", ())
    return [e for n in range(epochs) for e in draw(question(golds), MINED, expansions, sampling, 1, n)]  # type: ignore[arg-type]


def groups_of(examples: Sequence[ChainExample]) -> list[list[int]]:
    """Positions of the examples of each group."""
    return [list(places) for _, places in groupby(range(len(examples)), lambda place: examples[place].group)]


def test_a_question_of_two_hops_by_hand() -> None:
    examples = draw(question(2), MINED, (), ChainSampling(candidates=2, noise_chains=0), 0, 0)
    kinds = [[examples[place].kind for place in group] for group in groups_of(examples)]
    assert kinds == [
        ["gold", "gold_noise", "gold_noise"],  # no chain yet: nothing to end
        ["gold", "gold_noise", "gold_noise", "incomplete"],
        ["gold_noise", "gold_noise", "complete"],
    ]
    lengths = [{len(examples[place].passages) for place in group} for group in groups_of(examples)]
    assert lengths == [{1}, {2}, {3}]


@pytest.mark.parametrize("golds", [1, 2, 3])
def test_a_chain_is_positive_if_all_are_gold_and_its_end_if_none_is_missing(golds: int) -> None:
    gold = {p.id for p in GOLD[:golds]}
    seen = Counter()
    for example in drawn(golds):
        *chain, last = example.passages
        ids = {p.id for p in chain}
        assert len(ids) == len(chain), "no document twice"
        assert END not in chain
        if last is END:
            assert chain
            assert example.positive == (ids == gold)
        else:
            assert last.id not in ids
            assert example.positive == ({*ids, last.id} <= gold)
        assert len(example.passages) <= 4
        seen[example.kind] += 1
    assert set(seen) == {"gold", "gold_noise", "noise", "complete", "incomplete"}


def test_a_group_extends_one_chain_by_different_candidates_that_stand_together() -> None:
    examples = draw(question(3), MINED, (), MANY, 0, 0)
    groups = groups_of(examples)
    assert len(groups) == 4 + 2  # a gold chain of 0 to 3 documents, and two with noise
    assert [place for group in groups for place in group] == list(range(len(examples)))
    for group in groups:
        assert len({examples[place].passages[:-1] for place in group}) == 1
        assert len({examples[place].passages[-1].id for place in group}) == len(group)
        assert sum(examples[place].kind == "gold_noise" for place in group) in (0, 3)
        assert sum(examples[place].positive for place in group) <= 1


def test_every_order_of_gold_and_every_place_of_noise_occurs() -> None:
    chains = {tuple(p.title for p in e.passages[:-1]) for e in drawn(2, ChainSampling(noise_chains=1), 400)}
    assert {("gold0", "gold1"), ("gold1", "gold0"), ("gold0",), ("gold1",), ()} <= chains
    mixed = [tuple(title.startswith("gold") for title in chain) for chain in chains]
    assert {(False,), (True, False), (False, True)} <= set(mixed)
    assert not [chain for chain in mixed if len(chain) > 2]


def test_a_question_with_a_gold_passage_that_is_not_shipped_is_never_complete() -> None:
    asked = Question("q", "who?", ("x",), (*GOLD[:2], *OWN), tuple(p.id for p in GOLD[:2]), unshipped_support=("own3",))
    examples = [e for n in range(30) for e in draw(asked, MINED, (), MANY, 0, n)]
    assert {e.kind for e in examples} == {"gold", "gold_noise", "noise", "incomplete"}
    assert not [e for e in examples if OWN[3] in e.passages]


def test_drawing_depends_on_seed_epoch_and_question_alone() -> None:
    random.seed(1)
    here = draw(question(), MINED, (), MANY, 3, 4)
    random.seed(2)
    assert draw(question(), MINED, (), MANY, 3, 4) == here
    for other, seed, epoch in ((question(), 3, 5), (question(), 4, 4), (question(id="r"), 3, 4)):
        assert [e.passages for e in draw(other, MINED, (), MANY, seed, epoch)] != [e.passages for e in here]


def test_noise_is_mined_as_often_as_said() -> None:
    examples = drawn(2, ChainSampling(candidates=2, mined_share=0.25), 800)
    noise = [e.passages[-1] for e in examples if e.kind == "gold_noise"]
    assert sum(p in MINED for p in noise) / len(noise) == pytest.approx(0.25, abs=0.03)


def test_the_beam_s_own_expansions_are_its_negatives() -> None:
    met, of_gold = Passage.of("met", "met by the beam"), Passage.of("near", "beside gold0")
    expansions = (
        Expansion((met,), (OWN[0], GOLD[0])),
        Expansion((GOLD[0],), (of_gold, GOLD[1])),
        Expansion((met, OWN[0], OWN[1], OWN[2]), (GOLD[0],)),  # too long to be extended
    )
    examples = drawn(2, ChainSampling(candidates=1, noise_chains=1, mined_share=1.0), 60, expansions=expansions)
    by_chain = defaultdict(Counter)
    for example in examples:
        if example.passages[-1] is not END:
            by_chain[tuple(p.title for p in example.passages[:-1])][example.kind, example.passages[-1].title] += 1
    assert set(by_chain["gold0",]) == {("gold", "gold1"), ("gold_noise", "near")}
    assert {kind for kind, _ in by_chain["met",]} == {"noise"}
    assert {title for _, title in by_chain["met",]} == {"gold0", "gold1", "own0"}
    assert not [chain for chain in by_chain if len(chain) > 2]
    assert {title for kind, title in by_chain["gold1",] if kind == "gold_noise"} <= {p.title for p in MINED}


def test_what_the_miner_s_second_searches_found_are_expansions_of_one_passage() -> None:
    mined = Mined(MINED[:3], {GOLD[0].id: [MINED[2].id, GOLD[1].id, "gone"], MINED[0].id: [MINED[1].id], "gone": []})
    assert mined_expansions(question(2), mined) == [
        Expansion((GOLD[0],), (MINED[2], GOLD[1])),
        Expansion((MINED[0],), (MINED[1],)),
    ]
    sampling = ChainSampling(candidates=1, mined_share=1.0)
    examples = [
        e for n in range(40) for e in draw(question(2), mined, mined_expansions(question(2), mined), sampling, 0, n)
    ]
    after = defaultdict(set)
    for example in examples:
        if len(example.passages) == 2:
            after[example.passages[0]].add(example.passages[1])
    assert after[MINED[0]] == {MINED[1], END, *GOLD[:2]}
    assert after[GOLD[0]] == {MINED[2], END, GOLD[1]}
    assert set(MINED[:3]) <= after[GOLD[1]]


def test_chains_can_be_capped_and_the_longest_shortened() -> None:
    capped = draw(question(3), MINED, (), ChainSampling(chains_per_question=2), 0, 0)
    assert len(groups_of(capped)) == 2
    assert max(len(e.passages) for e in drawn(3, ChainSampling(most_documents=3))) == 3


def test_without_gold_or_noise_nothing_is_drawn() -> None:
    assert draw(question(0), MINED, (), MANY, 0, 0) == []
    bare = Question("q", "who?", ("x",), tuple(GOLD), tuple(p.id for p in GOLD))
    assert draw(bare, [], (), MANY, 0, 0) == []
    few = draw(Question("q", "who?", ("x",), (*GOLD, OWN[0]), tuple(p.id for p in GOLD)), [], (), MANY, 0, 0)
    assert {e.passages[-1].title for e in few if e.kind == "gold_noise"} == {"own0"}


@pytest.mark.parametrize("most", [2, 5])
def test_chains_of_another_length_are_refused(most: int) -> None:
    with pytest.raises(UserError, match=f"most_documents is {most}; allowed: 3 to 4"):
        ChainSampling(most_documents=most)
