"""Generated context: Figure 3's prompt and JSON, the floor of 70 words, "could not be retrieved", repairs, failures."""

import json

import pytest

from common.records import Question
from harness.context_sources.generated import NOT_RETRIEVED, NOTHING_KNOWN, GeneratedContext, content_of, says_nothing
from tests.helpers.scripted_lm import FAILS, ScriptedLm

QUESTION = Question("q", "Where does the Alba end?")
LONG = "word " * 69 + "end."
SHORT = "It joins the Brune."


def reply(content: object, **further: object) -> str:
    return json.dumps({"question": QUESTION.text, "content": content, **further})


def context_of(*replies: str, **options):
    llm = ScriptedLm({QUESTION.text: replies})
    (context,) = GeneratedContext(llm, **options).contexts([QUESTION])
    return context, llm


def test_a_good_reply_is_one_passage_and_a_short_one_is_asked_again_and_used_with_a_note() -> None:
    context, llm = context_of(f"Here it is:\n```json\n{reply(LONG)}\n```")
    (hit,) = context.passages
    assert (hit.passage.text, hit.passage.source, hit.passage.title) == (LONG.strip(), "generated", "")
    assert (context.missing, context.lost, context.costs["context_calls"]) == ("", False, 1.0)
    asked = llm.asked[0][0].messages[0].content
    assert asked.count(QUESTION.text) == 2  # as printed: above, and in the form of the result
    assert "at\nleast 70 words" in asked
    context, llm = context_of(reply(SHORT), reply(LONG))
    assert context.passages[0].passage.text == LONG
    assert "has 4 words, and must have at least 70" in llm.asked[1][0].messages[-1].content
    assert ("short_contexts" in context.costs, context.costs["context_calls"]) == (False, 2.0)
    context, _ = context_of(reply(SHORT), reply("Short."))
    assert (context.passages[0].passage.text, context.costs["short_contexts"]) == (SHORT, 1.0)  # the longest of them
    assert "must have at least 70" in context.notes["short context"]
    context, llm = context_of(reply(SHORT), min_words=4)
    assert (context.passages[0].passage.text, len(llm.asked)) == (SHORT, 1)


@pytest.mark.parametrize(
    "text", [reply(NOT_RETRIEVED), reply("the relevant information could not be retrieved"), NOT_RETRIEVED]
)
def test_a_model_that_knows_nothing_leaves_the_source_empty_not_lost(text: str) -> None:
    context, llm = context_of(text)
    assert (context.passages, context.missing, context.lost) == ((), NOTHING_KNOWN, False)
    assert (context.costs["not_retrieved"], len(llm.asked)) == (1.0, 1)


@pytest.mark.parametrize(
    "broken", ["no JSON", reply(""), reply(7), reply(LONG, more=1), "{}", reply(LONG) + '{"content": "b"}']
)
def test_a_reply_in_another_form_is_repaired_or_loses_the_source(broken: str) -> None:
    assert context_of(broken, reply(LONG))[0].passages[0].passage.text == LONG
    context, llm = context_of(broken)
    assert (context.passages, context.lost, context.missing == "", len(llm.asked)) == ((), True, False, 2)
    assert len(context_of(broken, repairs=0)[1].asked) == 1


def test_a_failed_call_loses_the_source_for_its_question_alone() -> None:
    llm = ScriptedLm({QUESTION.text: [FAILS], "Who is Elbe?": [json.dumps({"content": LONG})]})
    lost, kept = GeneratedContext(llm).contexts([QUESTION, Question("r", "Who is Elbe?")])
    assert (lost.lost, lost.missing, lost.costs["failed_context_calls"]) == (True, "HTTP 500", 1.0)
    assert kept.passages
    assert GeneratedContext(llm).contexts([]) == []


FILM = 'Corliss in the film "Kiss and Tell"\nwas Shirley Temple.'


@pytest.mark.parametrize(
    "written",
    [
        f'{{\n  "question": "Who was Corliss in "Kiss and Tell"?"\n  "content": "{FILM}"\n}}',
        f'question: "Who was it?"\n\ncontent: "{FILM}"\n--',
        f"```json\n{{question: Who was it?, content: “{FILM}”}}\n```",
        f"{{'question': 'Who?' 'content': \"{FILM}\",}}",
        f"{{ content: {FILM} }}",
        json.dumps({"question": "Who?", "content": FILM})[:-1] + ",}",
    ],
)
def test_the_form_of_figure_3_which_is_no_json(written: str) -> None:
    assert content_of(written) == FILM


def test_a_text_that_was_cut_off_is_refused_in_any_form() -> None:
    for written in (f'{{"question": "Who?" "content": "{FILM}', f"content: {FILM}", '{"question": "Who?"}', "Who?"):
        with pytest.raises(ValueError, match="JSON object"):
            content_of(written)
    assert content_of(reply(f" {SHORT} ")) == SHORT
    assert says_nothing(f"Sorry. {NOT_RETRIEVED}")
    assert not says_nothing(f"{LONG} {NOT_RETRIEVED}")  # a long text that holds the sentence is a text
