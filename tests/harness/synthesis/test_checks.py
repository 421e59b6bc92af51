"""Checks of drafted questions, with a reader that gives right and wrong answers."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from common.records import Answer, Passage, Question, Ranked
from harness.readers.llm import LlmReader
from harness.synthesis.checks import REASONS, RoundTrip, fault
from harness.synthesis.drafts import Draft, DraftTask
from harness.synthesis.llm_writer import CHECK, parsed
from tests.helpers.people_corpus import BY_TITLE, GUESSED, MISREAD, PeopleLlm, asked_about, linked

JAWS = Passage.of("Jaws (film)", "Jaws was shot by Ann Lee in Rome .")
ANN = Passage.of("Ann Lee", "Ann Lee was born in Oslo .")


@pytest.mark.parametrize(
    ("question", "answer", "reason"),
    [
        ("Where was the director of Jaws born ?", "Oslo", ""),
        ("Where was the director of Jaws born ?", "Bonn", "answer_not_in_passage"),
        ("Was the director of Jaws born in Oslo ?", "Oslo", "answer_in_question"),
        ("Who shot Jaws ?", "Ann Lee", "answer_in_first_passage"),
        ("Where was Ann Lee born ?", "Oslo", "names_second_passage"),
        ("", "Oslo", "empty"),
        ("Where ?", "the", "empty"),
        (" ".join(map(str, range(51))), "Oslo", "too_long"),
        ("Where was the one who was the one who was born ?", "Oslo", "repeats_itself"),
        ("Where was the one born who shot the one who shot Jaws ?", "Oslo", ""),
    ],
)
def test_what_is_dropped_before_it_is_read(question: str, answer: str, reason: str) -> None:
    assert fault(DraftTask((JAWS, ANN), answer), Draft(question, answer)) == reason
    assert not reason or reason in REASONS


def test_the_second_title_counts_without_its_parentheses() -> None:
    task = DraftTask(
        (Passage.of("Ann Lee", "Ann Lee shot Jaws ."), Passage.of("Jaws (film)", "It ran in Rome .")), "Rome"
    )
    assert fault(task, Draft("Where did Jaws run ?", "Rome")) == "names_second_passage"
    assert fault(task, Draft("Where did the film that Ann Lee shot run ?", "Rome")) == ""


@pytest.mark.parametrize(
    "reply",
    ['{"question": "Where?"}', '{"question": "Where?", "answer": 1492}', '["Where?", "Rome"]', "Where?",
     '{"question": "Where?", "answer": "Rome", "why": ""}', '{"question": "", "answer": "Rome"}'],
)  # fmt: skip
def test_a_reply_is_parsed_strictly(reply: str) -> None:
    assert parsed('{"question": "Where  is\\nit?", "answer": "Rome"}') == Draft("Where is it?", "Rome")
    with pytest.raises(ValueError, match=r"JSON|must be"):
        parsed(reply)


def task(*titles: str, answer: str) -> DraftTask:
    return DraftTask(tuple(BY_TITLE[title] for title in titles), answer)


def test_a_wrong_answer_is_dropped() -> None:
    tasks = [task("Ann", answer="Rome"), task(MISREAD, answer="Oslo"), task("Cid", answer="Bonn")]
    drafts = [Draft(asked_about(each.passages[0].title), each.answer) for each in tasks]
    check = RoundTrip(LlmReader(PeopleLlm(), CHECK))
    assert check.faults(tasks, drafts) == ["", "wrong_answer", ""]
    planted = [Draft(draft.question, "Paris") for draft in drafts]  # only what the reader says of MISREAD
    assert check.faults(tasks, planted) == ["wrong_answer", "", "wrong_answer"]
    assert len(check.costs) == 6


def test_a_question_that_one_passage_answers_is_dropped() -> None:
    tasks = [task("Ann", "Rome", answer="Tiber"), task(GUESSED, "Rome", answer="Tiber")]
    drafts = [Draft(linked(each.passages[0].title, "river"), each.answer) for each in tasks]
    reader = LlmReader(PeopleLlm(), CHECK)
    assert RoundTrip(reader).faults(tasks, drafts) == ["", "one_passage_is_enough"]
    assert RoundTrip(reader, alone=False).faults(tasks, drafts) == ["", ""]


class Interrupted(LlmReader):
    """Gives no reply about a single passage, like an endpoint that is busy for a while."""

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        return [
            replace(answer, text="", notes={"error": "503: busy"}) if len(hits) == 1 else answer
            for answer, hits in zip(super().read(questions, evidence), evidence, strict=True)
        ]


def test_a_question_that_was_not_read_again_is_dropped() -> None:
    """Whether one passage is enough is unknown then, and so is whether the answer is wrong."""
    tasks = [task("Ann", "Rome", answer="Tiber"), task("Ann", answer="Rome")]
    drafts = [Draft(linked("Ann", "river"), "Tiber"), Draft(asked_about("Ann"), "Rome")]
    reader = Interrupted(PeopleLlm(), CHECK)
    assert RoundTrip(reader).faults(tasks, drafts) == ["failed", "failed"]
    assert RoundTrip(reader, alone=False).faults(tasks, drafts) == ["", "failed"]


def test_a_near_answer_counts_from_the_given_f1() -> None:
    reader = LlmReader(PeopleLlm(), CHECK)
    near = [Draft(asked_about("Ann"), "old Rome")]  # F1 2/3 with what the reader says
    assert RoundTrip(reader, 0.6).faults([task("Ann", answer="Rome")], near) == [""]
    assert RoundTrip(reader, 0.7).faults([task("Ann", answer="Rome")], near) == ["wrong_answer"]
    assert RoundTrip(reader).faults([task("Ann", answer="Rome")], near) == ["wrong_answer"]
