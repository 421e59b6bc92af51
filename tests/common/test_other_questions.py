"""Partners of a control: another question shares nothing that the first one's trained part could use."""

from dataclasses import replace

import pytest

from common.other_questions import other_texts
from common.records import Gold, GoldSegment, Passage, Question, Source

IT = GoldSegment("manual.pdf", ("it",))
PASSAGE = Passage.of("page", "text", corpus_id="doc")
SHARED = [
    {"answers": ("Yes",)},
    {"support": (PASSAGE.id,), "passages": (PASSAGE,)},
    {"source": Source(group="customer")},
    *({"gold": Gold(**named)} for named in ({"corpus_ids": ("doc",)}, {"titles": ("page",)}, {"segments": (IT,)})),
]


def asked(number: int, **fields: object) -> Question:
    return Question(str(number), **{"text": f"question {number}", **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize("fields", SHARED)
def test_what_two_questions_share_makes_them_no_partners(fields: dict) -> None:
    assert not other_texts([asked(0, **fields), asked(1, **fields)], 9)
    assert other_texts([asked(0, **fields), asked(1)], 9) == {0: "question 1", 1: "question 0"}


def test_texts_and_answers_are_compared_normalized() -> None:
    assert not other_texts([asked(0, text="The Question?"), asked(1, text="question")], 9)
    assert not other_texts([asked(0, answers=("the Rhône",)), asked(1, answers=("Rhône.", "other"))], 9)


def test_partners_do_not_depend_on_the_order_of_the_file_and_each_is_the_first_behind() -> None:
    questions = [asked(number, source=Source(group=str(number % 3))) for number in range(30)]
    found = {questions[place].text: text for place, text in other_texts(questions, 30).items()}
    turned = questions[::-1]
    assert found == {turned[place].text: text for place, text in other_texts(turned, 30).items()}
    order = list(found)  # in the order of the hash
    groups = {one.text: one.source.group for one in questions}
    for place, text in enumerate(order):
        behind = [*order[place + 1 :], *order[:place]]
        assert found[text] == next(each for each in behind if groups[each] != groups[text])
    few = other_texts(questions, 7)
    assert [questions[place].text for place in few] == order[:7]


def test_in_a_dialogue_it_is_another_turn_under_the_same_page() -> None:
    turns = [asked(number, history=(f"page {number % 2}", "section", "earlier")) for number in range(4)]
    found = other_texts([*turns, asked(9), asked(8)], 9)
    assert [found[number] for number in range(6)] == [f"question {number}" for number in (2, 3, 0, 1, 8, 9)]
    alone = [replace(turns[0], answers=("a",)), replace(turns[2], answers=("a",))]
    assert not other_texts(alone, 9)
