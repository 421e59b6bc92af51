"""The synthetic world: whole, unambiguous, and not flattering."""

import re
from collections import Counter

import pytest

from datamodules.world import facts, frames
from datamodules.world.phrases import SPLITS, Phrases, Relation
from datamodules.world.questions import contains
from datamodules.world.world import World, WorldConfig, generate

PARTS = (*SPLITS, "web")


def asked(world: World, split: str, kinds: tuple[str, ...] = ()) -> list:
    groups = (world.questions, world.singles, world.open_singles)
    every = [shipped.generated for group in groups for shipped in group[split]]
    return [one for one in every if not kinds or one.kind in kinds]


def templates(value: object) -> list[Phrases]:
    """All phrase sets inside a module's value."""
    if isinstance(value, Phrases):
        return [value]
    if isinstance(value, Relation):
        return [value.statements, value.noun_phrases, value.asks]
    return [found for item in value.values() for found in templates(item)] if isinstance(value, dict) else []


def test_no_template_serves_two_splits() -> None:
    sets = [found for module in (facts, frames) for value in vars(module).values() for found in templates(value)]
    assert len(sets) > 90
    used = [{template for one in sets for template in one.of(split)} for split in SPLITS]
    assert not (used[0] & used[1] | used[0] & used[2] | used[1] & used[2])
    assert all(one.train and one.validation and one.test for one in sets)


def test_splits_share_no_answer_and_no_entity(world: World) -> None:
    answers = [{one.answer.casefold() for one in asked(world, split)} - {"yes", "no"} for split in PARTS]
    names = [{e.name.casefold() for e in world.entities[split]} for split in PARTS]
    for sets in (answers, names):
        assert sum(map(len, sets)) == len(set.union(*sets))
    for split in PARTS:
        for one in asked(world, split):
            assert {step.entity.split for step in one.steps} == {split}


def test_answers_stand_in_the_last_gold_passage_and_nowhere_on_the_way(world: World) -> None:
    for split in PARTS:
        for one in asked(world, split):
            if one.answer in ("yes", "no"):
                continue
            texts = [f"{world.passages[s.entity].title}. {world.passages[s.entity].text}" for s in one.steps]
            assert contains(texts[-1], one.answer)
            if one.kind != "comparison_name":
                assert not contains(one.question, one.answer)
                assert not any(contains(text, one.answer) for text in texts[:-1])


def test_chains_are_followed_through_facts_and_hide_their_bridges(world: World) -> None:
    for split in PARTS:
        for one in asked(world, split, ("single", "bridge", "bridge3", "bridge4")):
            assert len(one.steps) == {"single": 1, "bridge": 2, "bridge3": 3, "bridge4": 4}[one.kind]
            for step, following in zip(one.steps, one.steps[1:], strict=False):
                assert step.entity.facts[step.relation] is following.entity
                assert not any(contains(one.question, w) for w in following.entity.name.split() if w != "The")
                assert contains(world.passages[step.entity].text, following.entity.name)
            said = one.steps[-1].entity.facts[one.steps[-1].relation]
            assert (said if isinstance(said, str) else said.name) == one.answer


def test_comparisons_are_right(world: World) -> None:
    for one in asked(world, "train", ("comparison_name", "comparison_fact")):
        loser, winner = (int(step.answer) for step in one.steps)
        assert loser != winner
        earlier = re.search(r"earlier|older|first", one.question, re.IGNORECASE)
        later = re.search(r"later|newer|younger|last", one.question, re.IGNORECASE)
        if earlier or later:  # a slip of the finger may have hit the word
            assert (winner < loser) == bool(earlier)
    for one in asked(world, "test", ("comparison_same",)):
        first, second = (step.entity.facts[step.relation] for step in one.steps)
        assert (first is second) == (one.answer == "yes")


@pytest.fixture(scope="module")
def full_size() -> World:
    return generate(WorldConfig(singles=0, open_singles=0, web_questions=2))


def test_a_reader_without_contexts_cannot_score(full_size: World) -> None:
    questions = [shipped.generated for shipped in full_size.questions["test"]]
    assert len(questions) >= 400
    share = Counter(one.kind for one in questions)
    guessable = 0.5 * (share["comparison_same"] + share["comparison_name"]) / len(questions)
    answers = Counter(one.answer for one in questions if one.answer not in ("yes", "no"))
    assert answers.most_common(1)[0][1] / len(questions) < 0.02
    assert guessable < 0.04
    said = Counter(one.answer for one in questions if one.kind == "comparison_same")
    assert abs(said["yes"] - said["no"]) <= 1
