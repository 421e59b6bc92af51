"""HiQA's system: the context budget by hand and by its invariances, what is returned with an answer, refusals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.records import Passage, Ranked
from documents.records import Segment, as_passage
from harness.retrievers.bm25 import Bm25Retriever
from harness.systems.hiqa import HiQa, within_budget
from tests.helpers.echo_reader import EchoReader
from tests.helpers.river_corpus import indexed


def hits(*lengths: int) -> list[Ranked]:
    return [Ranked(Passage(str(n), " ".join(["word"] * length)), -float(n)) for n, length in enumerate(lengths)]


def kept(found: list[Ranked], budget: int) -> list[int]:
    return [int(hit.passage.id) for hit in within_budget(found, budget)]


@given(st.lists(st.integers(0, 20)), st.integers(1, 50))
def test_what_is_kept_fits_and_what_is_left_out_does_not(lengths: list[int], budget: int) -> None:
    places = kept(hits(*lengths), budget)
    assert places == sorted(set(places))
    assert places[:1] == ([0] if lengths else [])
    for n, length in enumerate(lengths[1:], start=1):
        used = sum(lengths[place] for place in places if place < n)
        assert (n in places) == (used + length <= budget)
    titled = Ranked(Passage("1", "three words here", "two words"), 0.0)  # titles count
    assert (kept([*hits(1), titled], 6), kept([*hits(1), titled], 5)) == ([0, 1], [0])


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Bm25Retriever:
    parts = [
        ("Start", "text", "hold the button", ""),
        ("Data", "table", "| button | force |\n| --- | --- |\n| main | 9 N |", ""),
        ("Parts", "image", "Figure 1: the button", "abc.png"),
    ]
    segments = [
        Segment("alto.pdf", "Alto", (head,), kind, text, text, 2, 2, image=image) for head, kind, text, image in parts
    ]
    return indexed(tmp_path_factory.mktemp("index") / "bm25", [as_passage(each, each.path) for each in segments])


def test_tables_and_images_come_with_the_answer_and_segments_beyond_the_budget_are_counted(retriever) -> None:
    (answer,) = HiQa(retriever, reader=EchoReader()).answer("which button?")
    assert answer.text == " ".join(hit.passage.title for hit in answer.evidence)
    by_kind = {str((hit.passage.metadata or {})["kind"]): hit.passage for hit in answer.evidence}
    assert answer.notes == {"read": True, "tables": [by_kind["table"].id], "images": ["abc.png"]}
    assert by_kind["table"].text.count("\n") == 2  # whole, with its line breaks
    assert answer.costs["retriever_calls"] == 1
    (answer,) = HiQa(retriever, max_words=1).answer("which button?")
    assert (len(answer.evidence), answer.notes["left_out"]) == (1, 2)
