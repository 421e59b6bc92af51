"""Rewrites of the rephrased questions by every strategy.

What each says, that none reveals the answer, and splits without shared templates.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from datamodules.formats.rewrites import read_rewrites
from datamodules.world.facts import RELATIONS
from datamodules.world.phrases import SPLITS
from datamodules.world.questions import contains
from datamodules.world.rephrasing import RephrasedQuestion, rephrase
from datamodules.world.rewriting import APPEARED, Clean, rewrites
from datamodules.world.world import World, generate
from datamodules.world.writing import write_world
from models.dmqr.rewrite_outputs import queries_of
from models.dmqr.strategies import POOL
from tests.helpers.small_world import SMALL

CONFIG = replace(SMALL, rephrased=240)


@pytest.fixture(scope="module")
def world() -> World:
    return generate(CONFIG)


@pytest.fixture(scope="module")
def made(world: World) -> dict[str, list[RephrasedQuestion]]:
    return rephrase(world, CONFIG)


def every(made: dict[str, list[RephrasedQuestion]], kind: str = "") -> list[RephrasedQuestion]:
    return [one for split in SPLITS for one in made[split] if one.base.generated.kind.startswith(kind)]


def test_every_question_has_a_rewrite_by_every_strategy(tmp_path: Path) -> None:
    write_world(CONFIG, tmp_path / "out")
    for split in SPLITS:
        rows = json.loads((tmp_path / "out" / f"rephrased_{split}.json").read_text())
        pairs = list(read_rewrites("rewrites", str(tmp_path / "out" / f"rewrites_{split}.jsonl")))
        assert [(pair.question, pair.strategy) for pair in pairs] == [
            (row["question"], strategy) for row in rows for strategy in POOL
        ]


def test_no_rewrite_reveals_the_answer_or_a_bridge_entity(made: dict[str, list[RephrasedQuestion]]) -> None:
    for one in every(made):
        generated = one.base.generated
        hidden = [] if generated.answer in ("yes", "no") else [generated.answer]
        if not generated.kind.startswith("comparison"):
            hidden += [step.entity.name for step in generated.steps[1:]]
        shown = hidden if generated.kind != "comparison_name" else []  # one of the two names in the question
        for text in one.rewrites.values():
            assert not any(contains(text, each) for each in shown)


def test_keywords_are_the_words_of_the_clean_question_and_the_core_is_shorter(
    made: dict[str, list[RephrasedQuestion]],
) -> None:
    for one in every(made):
        words = re.findall(r"[\w'-]+", one.rewrites["gqr"].lower())
        keywords, core = (re.findall(r"[\w'-]+", one.rewrites[name].lower()) for name in ("kwr", "cce"))
        assert len(core) < len(keywords) <= len(words)
        assert set(core) <= set(keywords) <= set(words)
        assert not {"what", "who", "is", "which"} & set(keywords)
        for name in (step.entity.name for step in one.base.generated.steps):
            if contains(one.rewrites["gqr"], name):
                assert name in one.rewrites["kwr"].split(", ")
                assert name in one.rewrites["cce"]


def test_pseudo_answers_state_every_fact_as_passages_of_the_split_do(made: dict[str, list[RephrasedQuestion]]) -> None:
    for split in SPLITS:
        for one in made[split]:
            generated = one.base.generated
            sentences = one.rewrites["par"].removesuffix(".").split(". ")
            assert len(sentences) == len(generated.steps) + (generated.kind == "comparison_fact")
            for step, sentence in zip(generated.steps, sentences, strict=False):
                told = APPEARED if step.relation == "year" else RELATIONS[step.relation].statements
                forms = [re.sub(r"\bthe (river )?{o}", "{o}", template) for template in told.of(split)]
                forms = [re.sub(r"\\{\w\\}", ".+", re.escape(form)) for form in forms]
                assert any(re.search(form, sentence, re.IGNORECASE) for form in forms), sentence


def test_a_chain_is_asked_hop_by_hop_and_a_comparison_entity_by_entity(
    made: dict[str, list[RephrasedQuestion]],
) -> None:
    for one in every(made):
        generated = one.base.generated
        found = queries_of(one.rewrites["decomposition"], several=True)
        if generated.kind in ("comparison_same", "comparison_name"):
            assert found == tuple(step.question.rstrip(".") for step in generated.steps)
            continue
        assert len(found) == len(generated.steps) + (generated.kind == "comparison_fact")
        assert found[-1] == one.rewrites["gqr"].rstrip(".")
        if not generated.kind.startswith("comparison"):
            lengths = [len(text.split()) for text in found]
            assert lengths[:-1] == sorted(lengths[:-1])


def test_rewrites_of_a_question_read_as_expected(made: dict[str, list[RephrasedQuestion]]) -> None:
    one = next(
        one for one in made["train"] if one.base.generated.kind == "bridge" and one.kind != "underspecified"
    ).base.generated
    first = one.steps[0].entity.name
    relation = RELATIONS[one.steps[0].relation]
    phrases = [template.format(x=".*" + re.escape(first)) for template in relation.noun_phrases.train]
    sub = queries_of(rewrites(one, "train", Clean(one.clean, (first,)))["decomposition"], several=True)
    assert any(re.fullmatch(f"(Who is|What is) {phrase}.*[?]", sub[0]) for phrase in phrases)


def test_no_template_of_pseudo_answers_serves_two_splits() -> None:
    templates = [set(APPEARED.of(split)) for split in SPLITS]
    for relation in RELATIONS.values():
        for used, split in zip(templates, SPLITS, strict=True):
            used |= set(relation.statements.of(split))
    assert not (templates[0] & templates[1] | templates[0] & templates[2] | templates[1] & templates[2])
