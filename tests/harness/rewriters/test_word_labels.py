"""Labels of words: worked by hand on BM25, and against their definition on random questions."""

import random
from pathlib import Path

import pytest

from common.records import Passage, Question, Ranked
from common.words import words_of
from datamodules.formats.word_labels import WordLabels
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.rewriters.word_labels import LabelCounts, WordLabeler, gold_recall, interleaved
from tests.helpers.small_world import WORDS, corpus

SOUTH = Passage.of("south", "kiln kiln")
NORTH = Passage.of("north", "kiln amber")
EAST = Passage.of("east", "amber jetty")
FAR = Passage.of("far", "delta glade")


def bm25(folder: Path, passages: list[Passage], **options: float) -> Bm25Retriever:
    build_bm25(passages, folder, **options)
    return Bm25Retriever(folder)


def hits(*passages: Passage) -> list[Ranked]:
    return [Ranked(passage, -place) for place, passage in enumerate(passages)]


def test_the_value_of_a_query_by_hand() -> None:
    """C² / (C² + rank²)."""
    found = hits(SOUTH, NORTH, EAST)
    assert gold_recall(found, [{NORTH.id}], 10) == pytest.approx(100 / 104)
    assert gold_recall(found, [{EAST.id}], 3) == pytest.approx(1 / 2)  # C is the rank at which a passage counts half
    assert gold_recall(found, [{SOUTH.id}, {EAST.id}], 10) == pytest.approx((100 / 101 + 100 / 109) / 2)
    assert gold_recall(found, [{SOUTH.id}, {FAR.id}], 1) == pytest.approx((1 / 2 + 0) / 2)  # one is not found
    assert gold_recall(found, [{EAST.id, NORTH.id, FAR.id}], 10) == pytest.approx(100 / 104)  # chunks of one document
    assert gold_recall([], [{SOUTH.id}], 10) == 0


def test_passages_are_interleaved_by_rank_each_once() -> None:
    assert interleaved([hits(SOUTH, NORTH, FAR), hits(SOUTH, EAST)], 5) == [SOUTH, NORTH, EAST, FAR]
    assert interleaved([hits(SOUTH, NORTH, FAR), hits(EAST)], 3) == [SOUTH, EAST, NORTH]
    assert interleaved([[], []], 3) == []


def test_changes_by_hand(tmp_path: Path) -> None:
    """ "kiln" finds south, which has it twice, before north; a word of north makes north the first."""
    labeler = WordLabeler(bm25(tmp_path / "index", [SOUTH, NORTH, EAST, FAR]), None, 2, 100, 10)
    (labels,) = labeler.label([Question("q1", "The kiln: a Kiln?", support=(NORTH.id,))])
    assert labels.passages == (SOUTH, NORTH)
    assert labels.recall == pytest.approx(100 / 104)
    # without "kiln" the question finds nothing; "the" and "a" are no words of BM25
    assert labels.without_word == {"the": 0, "kiln": pytest.approx(-100 / 104), "a": 0}
    first = pytest.approx(100 / 101 - 100 / 104)
    assert labels.with_word == {"south": 0, "north": first, "amber": first}


def test_two_gold_passages_and_a_word_that_harms(tmp_path: Path) -> None:
    """Of depth 1, "kiln" finds south alone, which is gold; with "north" or "amber" north takes its place."""
    labeler = WordLabeler(bm25(tmp_path / "index", [SOUTH, NORTH, EAST, FAR]), None, 2, 1, 10)
    (labels,) = labeler.label([Question("q1", "kiln", support=(SOUTH.id, FAR.id))])
    assert labels.passages == (SOUTH, NORTH)  # as many as asked for, also beyond the depth
    lost = pytest.approx(-100 / 101 / 2)
    assert labels.recall == pytest.approx(100 / 101 / 2)
    assert labels.without_word == {"kiln": lost}
    assert labels.with_word == {"south": 0, "north": lost, "amber": lost}


def test_helping_and_harming_words_are_counted() -> None:
    counts = LabelCounts()
    joining = {"south": 0.0, "north": -0.5, "amber": 0.1}
    counts.add(WordLabels("q1", "kiln", 0.5, {"kiln": -0.5}, joining, (SOUTH, NORTH)))
    assert str(counts) == (  # without "kiln" less is found: it helps
        "1 questions, 3 words of passages, 1 words of passages that help, 1 words of passages that harm, "
        "1 words of questions, 1 words of questions that help, 0 words of questions that harm"
    )


def test_random_questions_against_the_definition(tmp_path: Path) -> None:
    rng, passages = random.Random(0), corpus(60)
    retriever = bm25(tmp_path / "index", passages)
    other = bm25(tmp_path / "other", passages, k1=0.5, b=0.0)
    questions = [
        Question(
            str(number), " ".join(rng.choices([*WORDS, "the", "Zebra!"], k=rng.randint(1, 6))),
            support=tuple(passage.id for passage in rng.sample(passages, k=rng.randint(1, 3))),
        )
        for number in range(12)
    ]  # fmt: skip

    def value(query: str, question: Question) -> float:
        ids = [hit.passage.id for hit in retriever.search([query], 20)[0]]
        return sum(9 / (9 + (1 + ids.index(gold)) ** 2) if gold in ids else 0 for gold in question.support) / len(
            question.support
        )

    compared = 0
    for question, labels in zip(questions, WordLabeler(retriever, [other], 4, 20, 3).label(questions), strict=True):
        base, own = value(question.text, question), [word.text for word in words_of(question.text)]
        first, second = (each.search([question.text], 4)[0] for each in (retriever, other))
        mixed = [hit.passage for pair in zip(first, second, strict=True) for hit in pair]
        assert list(labels.passages) == list(dict.fromkeys(mixed))[:4]
        new = {word.text for passage in labels.passages for word in words_of(f"{passage.title} {passage.text}")} - {
            *own
        }
        assert labels.recall == pytest.approx(base)
        assert labels.with_word == {
            word: pytest.approx(value(f"{question.text} {word}", question) - base) for word in new
        }
        assert labels.without_word == {
            word: pytest.approx(
                value(" ".join(each for each in question.text.split() if words_of(each)[0].text != word), question)
                - base
            )
            for word in own
        }
        compared += sum(change != 0 for change in [*labels.with_word.values(), *labels.without_word.values()])
    assert compared > 100
