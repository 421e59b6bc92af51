"""Rewriting baselines by one prompt: one query, a pseudo-document, similar queries."""

import pytest

from common.records import Question
from harness.llm.prompts import Prompt
from harness.rewriters.prompted import PromptRewriter
from tests.helpers.scripted_lm import FAILS, ScriptedLm

JAWS = "Where was the director of Jaws born?"


def rewritten(*replies: str, prompt: str = "rewrite_query", **options):
    model = ScriptedLm({JAWS: replies})
    rewriter = PromptRewriter(model, prompt, **options)
    (found,) = rewriter.rewrite([Question("q", JAWS)], [prompt])
    return found, model


def test_one_query_or_a_pseudo_document_and_what_falls_back() -> None:
    found, model = rewritten('Query: "birthplace of Jaws director"')
    assert found.queries == {"rewrite_query": ("birthplace of Jaws director",)}
    assert found.costs["model_calls"] == 1
    assert JAWS in model.asked[0][0].messages[0].content
    found, model = rewritten("Steven Spielberg directed Jaws.\n\nHe was born in Cincinnati.", prompt="hyde")
    assert found.queries == {"hyde": ("Steven Spielberg directed Jaws. He was born in Cincinnati.",)}
    assert model.asked[0][0].max_tokens == 256
    for replies, why, calls in (([" ", "..."], "it is empty", 2), ([FAILS], "HTTP 500", 1)):
        found, _ = rewritten(*replies)
        assert (found.queries, found.fallbacks) == ({"rewrite_query": (JAWS,)}, {"rewrite_query": why})
        assert (found.costs["fallbacks"], found.costs["model_calls"]) == (1, calls)


@pytest.mark.parametrize(
    ("replies", "queries", "calls"),
    [
        (["1. Jaws director\n2. 2010 prize of Spielberg; when\n\n- Spielberg born"],
         ("Jaws director", "2010 prize of Spielberg, when", "Spielberg born"), 1),
        (["a\nb\nc\nd\ne"], ("a", "b", "c"), 1),
        (["a\nA.\n b", "a\nb\nc"], ("a", "b", "c"), 2),
        (["a\nb", "x"], ("a", "b"), 2),  # fewer than asked for: those that there are
        (["a", FAILS], ("a",), 2),
        (["Here are four queries:\na\nb\nc"], ("a", "b", "c"), 1),
        (["Sure!\n\n**Queries:**\n1. a\n2. b\n3. c\n\nThese cover it."], ("a", "b", "c"), 1),
        (["Query 1: a\n**Query 2:** b\n- Search query 3: \"c\""], ("a", "b", "c"), 1),
        (["3.5 inch disks\n2010 prize\na 5: 4 ratio"], ("3.5 inch disks", "2010 prize", "a 5: 4 ratio"), 1),
    ],
)  # fmt: skip
def test_similar_queries_stand_in_lines(replies: list[str], queries: tuple[str, ...], calls: int) -> None:
    found, model = rewritten(*replies, prompt="similar_queries", queries=3)
    assert found.queries == {"similar_queries": queries}
    assert (found.fallbacks, len(model.asked)) == ({}, calls)
    assert "Generate 3 search queries" in model.asked[0][0].messages[1].content


@pytest.mark.parametrize(
    "lines",
    [
        "\n\nSub-questions:\n1. Who made it?\n2. Where is it?",
        "\n**Sub-questions**:\n- Who made it?\n- Where is it?",
        "\n\n### Sub-questions\nWho made it?\nWhere is it?",
        "\nWho made it?\nWhere is it?",
        "\n1. Who made it?\n2. Where is it?\nTogether they answer it.",
        "\nHere are the two sub-questions:\nSub-question 1: Who made it?\nSub-question 2: Where is it?",
    ],
)
def test_sub_questions_after_lines_of_reasoning(lines: str) -> None:
    found, _ = rewritten(f"First the director, then the place.{lines}", prompt="sub_questions", queries=2)
    assert found.queries == {"sub_questions": ("Who made it?", "Where is it?")}


def test_a_prompt_of_ones_own_is_a_strategy_of_its_name(tmp_path) -> None:
    own = tmp_path / "stepback.yaml"
    own.write_text("user: 'A more general question.\n\n  Question: ${question}\n'\n")
    rewriter = PromptRewriter(ScriptedLm({JAWS: ["Who is born where?"]}), str(own))
    (found,) = rewriter.rewrite([Question("q", JAWS)], ["stepback"])
    assert found.queries == {"stepback": ("Who is born where?",)}
    assert rewriter.recipe["prompt"] in rewriter.facts[1]
    assert rewriter.recipe == {"llm": "scripted", "prompt": Prompt.load(str(own)).hash, "max_tokens": 32}
    assert rewriter.rewrite([], ["stepback"]) == []
