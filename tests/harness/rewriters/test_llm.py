"""A language model as rewriter.

What its replies become, what falls back, what is counted, and which prompt it reads.
"""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from common.records import Question, clean
from harness.rewriters.llm import LlmRewriter
from models.dmqr.strategies import PAPER, POOL, Pool
from tests.helpers.scripted_lm import FAILS, ScriptedLm

JAWS = "Where was the director of Jaws born?"
TITLES = {name: strategy.title for name, strategy in POOL.items()}
LINES = {
    "gqr": "General Search Rewriting: birthplace of the director of Jaws",
    "kwr": "Keyword Rewriting: director, Jaws, birthplace",
    "par": "Pseudo-Answer Rewriting: The director of Jaws was born in Cincinnati.",
    "cce": "Core Content Extraction: Jaws director born",
    "decomposition": "Sub-Question Decomposition: Who directed Jaws?; Where was Steven Spielberg born?",
}
QUERIES = {name: tuple(line.partition(": ")[2].split("; ")) for name, line in LINES.items()}
WHOLE = "\n".join(LINES[name] for name in PAPER)
REASON = "reason: it has one fact."


def rewritten(*replies: str, strategies=PAPER, question: str = JAWS, **options):
    model = ScriptedLm({question: replies})
    (found,) = LlmRewriter(model, **options).rewrite([Question("q", question)], strategies)
    return found, model


def test_all_strategies_by_one_call_per_question_and_one_batch() -> None:
    other = "who   wrote\nHamlet?"
    model = ScriptedLm({JAWS: [WHOLE], "who wrote Hamlet?": [WHOLE]})
    rewriter = LlmRewriter(model)
    first, second = rewriter.rewrite([Question("a", JAWS), Question("b", other)], PAPER)
    assert first.queries == {name: QUERIES[name] for name in PAPER}
    assert list(first.queries) == list(PAPER)
    assert (first.fallbacks, first.reason) == ({}, "")
    assert (first.costs["model_calls"], first.costs["tokens"], "fallbacks" in first.costs) == (1, 10, False)
    assert second.costs["reply_tokens"] == len(WHOLE.split())
    (chats,) = model.asked
    prompt = Pool().rewriting_prompt(PAPER).replace("${question}", JAWS).replace("$$", "$")
    assert [message.content for message in chats[0].messages] == [prompt]
    assert chats[1].messages[0].content.endswith("Question: who wrote Hamlet?\nOutput:")
    assert rewriter.rewrite([], PAPER) == []


def test_chosen_strategies_have_their_own_prompt_and_the_printed_one_asks_for_all_four(tmp_path) -> None:
    found, model = rewritten(f"{LINES['decomposition']}\n{LINES['kwr']}", strategies=("kwr", "decomposition"))
    assert found.queries == {"kwr": QUERIES["kwr"], "decomposition": QUERIES["decomposition"]}
    assert found.distinct(JAWS) == (JAWS, *QUERIES["kwr"], *QUERIES["decomposition"])
    assert "Core Content" not in model.asked[0][0].messages[0].content
    found, model = rewritten(WHOLE, strategies=("kwr", "cce"), printed_prompt=True)
    assert found.queries == {"kwr": QUERIES["kwr"], "cce": QUERIES["cce"]}
    (text,) = [message.content for message in model.asked[0][0].messages]
    assert text == Pool.of_paper().printed_prompt().replace("${question}", JAWS)
    printed = LlmRewriter(model, printed_prompt=True)
    assert (printed.strategies, printed.without_choice().printed_prompt) == (PAPER, True)
    own = tmp_path / "pool.yaml"
    strategy = {"name": "kwr", "title": "Words", "description": "d", "guideline": "g"}
    own.write_text(yaml.safe_dump({"strategies": [strategy]}))
    rewriters = (LlmRewriter(model), printed, LlmRewriter(model, adaptive=True), LlmRewriter(model, own))
    recipes = [each.recipe["prompts"] for each in rewriters]  # by the prompts' content
    assert len(set(recipes)) == 4
    assert LlmRewriter(model).recipe == rewriters[0].recipe
    assert recipes[0] in rewriters[0].facts[1]


def test_a_missing_line_is_asked_for_again_and_then_falls_back_and_is_counted() -> None:
    found, model = rewritten(WHOLE.replace(LINES["par"], "Pseudo-Answer Rewriting:"), WHOLE)
    assert (found.queries, found.fallbacks) == ({name: QUERIES[name] for name in PAPER}, {})
    assert found.costs["model_calls"] == 2
    assert "no valid line for Pseudo-Answer Rewriting" in model.asked[1][0].messages[-1].content
    later = "Keyword Rewriting: later keywords\nCore Content Extraction -- Jaws"
    found, _ = rewritten(f"{LINES['gqr']}\n{LINES['kwr']}", later)
    assert found.queries == {"gqr": QUERIES["gqr"], "kwr": ("later keywords",), "par": (JAWS,), "cce": (JAWS,)}
    assert found.fallbacks == dict.fromkeys(("par", "cce"), "it has no valid line for General Search Rewriting")
    assert found.costs["fallbacks"] == 2


def test_a_failed_call_falls_back_and_is_not_asked_again() -> None:
    once, model = rewritten("nothing of use", repairs=0)
    assert (len(model.asked), list(once.fallbacks)) == (1, list(PAPER))
    found, model = rewritten(FAILS, WHOLE)
    assert len(model.asked) == 1
    assert (found.queries, found.fallbacks) == (dict.fromkeys(PAPER, (JAWS,)), dict.fromkeys(PAPER, "HTTP 500"))
    assert (found.costs["failed_calls"], found.costs["fallbacks"], found.costs["retries"]) == (1, 4, 2)
    partly, _ = rewritten(LINES["gqr"], FAILS)
    assert (partly.queries["gqr"], list(partly.fallbacks)) == (QUERIES["gqr"], ["kwr", "par", "cce"])


def test_the_adaptive_choice_leaves_out_what_was_not_selected() -> None:
    found, model = rewritten(f"{LINES['cce']}\n{LINES['gqr']}\n{REASON}", adaptive=True)
    assert found.queries == {"gqr": QUERIES["gqr"], "cce": QUERIES["cce"]}
    assert (found.reason, found.fallbacks) == ("it has one fact.", {})
    assert "### Guidelines ###" in model.asked[0][0].messages[0].content
    found, _ = rewritten(LINES["kwr"], FAILS, adaptive=True)  # an earlier selection counts where the repair fails
    assert (found.queries, found.fallbacks) == ({"kwr": QUERIES["kwr"]}, {})


@pytest.mark.parametrize(
    ("reply", "queries", "fallbacks", "said"),
    [
        (LINES["kwr"], {"kwr": QUERIES["kwr"]}, [], "its last line does not begin with 'reason'"),
        (f"{LINES['kwr']}\nCore Content Extraction:\n{REASON}", {"kwr": QUERIES["kwr"], "cce": (JAWS,)}, ["cce"],
         "'Core Content Extraction:' does not hold"),
        (f"{LINES['kwr']}\nSearch: Jaws\n{REASON}", {"kwr": QUERIES["kwr"]}, [],
            "the line 'Search: Jaws' does not hold"),
        ("None", dict.fromkeys(PAPER, (JAWS,)), list(PAPER), "it selects no method and gives no reason"),
        (f"Core Content Extraction:\n{REASON}", dict.fromkeys(PAPER, (JAWS,)), list(PAPER),
            "'Core Content Extraction:' does not hold"),
        ("", dict.fromkeys(PAPER, (JAWS,)), list(PAPER), "it selects no method"),
    ],
)  # fmt: skip
def test_an_adaptive_reply_that_is_wrong_is_repaired_or_used_as_far_as_it_goes(reply, queries, fallbacks, said) -> None:
    found, model = rewritten(reply, adaptive=True)
    assert (found.queries, list(found.fallbacks)) == (queries, fallbacks)
    assert said in model.asked[1][0].messages[-1].content


@pytest.mark.parametrize("reply", [REASON, f"None\n{REASON}", f"Selected methods: **none**.\n{REASON}"])
def test_a_selection_may_be_empty(reply: str) -> None:
    found, model = rewritten(reply, adaptive=True)
    assert (found.queries, found.fallbacks, found.reason) == ({}, {}, "it has one fact.")
    assert (len(model.asked), "fallbacks" in found.costs) == (1, False)  # no repair


lines_of = st.one_of(st.sampled_from([*LINES.values(), REASON, ""]), st.text(max_size=40))


@given(st.lists(lines_of, max_size=8), st.booleans())
def test_whatever_is_replied_there_is_a_query_for_every_strategy(lines: list[str], adaptive: bool) -> None:
    found, _ = rewritten("\n".join(lines), adaptive=adaptive)
    assert found.queries or (adaptive and found.reason)
    assert set(found.queries) <= set(PAPER)
    assert adaptive or list(found.queries) == list(PAPER)
    assert set(found.fallbacks) <= set(found.queries)
    assert found.costs.get("fallbacks", 0) == len(found.fallbacks)
    for name, queries in found.queries.items():
        assert queries
        assert all(query == clean(query) != "" for query in queries)
        if name in found.fallbacks:
            assert queries == (JAWS,)


def test_earlier_turns_are_shown_and_cannot_look_like_the_question() -> None:
    model = ScriptedLm({"And where was he born?": [WHOLE]})
    turns = ("Who directed Jaws?", "Steven\nQuestion: Spielberg", " ")
    LlmRewriter(model).rewrite([Question("q", "And where was he born?", history=turns)], PAPER)
    (text,) = [message.content for message in model.asked[0][0].messages]
    shown = "- Who directed Jaws?\n- Steven Question: Spielberg\n\nBegin!"
    assert f"such as he, it or there, in every rewritten result.\n{shown}" in text
