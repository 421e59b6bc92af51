"""Labels of words: worked by hand on BM25, and against their definition on random questions."""

import random

import pytest

from common.records import Passage, Question, Ranked
from common.words import words_of
from harness.rewriters.word_labels import LabelCounts, WordLabeler, gold_recall, interleaved
from tests.helpers.river_corpus import indexed
from tests.helpers.small_world import WORDS, corpus

SOUTH, NORTH = Passage.of("south", "kiln kiln"), Passage.of("north", "kiln amber")
EAST, FAR = Passage.of("east", "amber jetty"), Passage.of("far", "delta glade")


def hits(*passages: Passage) -> list[Ranked]:
    return [Ranked(passage, -place) for place, passage in enumerate(passages)]


def test_the_value_of_a_query_by_hand() -> None:
    """C² / (C² + rank²)."""
    found, south, north, east, far = hits(SOUTH, NORTH, EAST), SOUTH.id, NORTH.id, EAST.id, FAR.id
    for gold, c, value in (
        ([{north}], 10, 100 / 104),
        ([{east}], 3, 1 / 2),  # C is the rank at which a passage counts half
        ([{south}, {east}], 10, (100 / 101 + 100 / 109) / 2),
        ([{south}, {far}], 1, (1 / 2 + 0) / 2),  # one is not found
        ([{east, north, far}], 10, 100 / 104),  # chunks of one document
    ):
        assert gold_recall(found, gold, c) == pytest.approx(value)
    assert gold_recall([], [{south}], 10) == 0
    assert interleaved([hits(SOUTH, NORTH, FAR), hits(SOUTH, EAST)], 5) == [SOUTH, NORTH, EAST, FAR]
    assert interleaved([hits(SOUTH, NORTH, FAR), hits(EAST)], 3) == [SOUTH, EAST, NORTH]
    assert interleaved([[], []], 3) == []


def test_changes_by_hand(tmp_path) -> None:
    """ "kiln" finds south, which has it twice, before north; a word of north makes north the first."""
    index = indexed(tmp_path / "index", [SOUTH, NORTH, EAST, FAR])
    (labels,) = WordLabeler(index, None, 2, 100, 10).label([Question("q1", "The kiln: a Kiln?", support=(NORTH.id,))])
    assert labels.passages == (SOUTH, NORTH)
    assert labels.recall == pytest.approx(100 / 104)
    # without "kiln" the question finds nothing; "the" and "a" are no words of BM25
    assert labels.without_word == {"the": 0, "kiln": pytest.approx(-100 / 104), "a": 0}
    first = pytest.approx(100 / 101 - 100 / 104)
    assert labels.with_word == {"south": 0, "north": first, "amber": first}
    counts = LabelCounts()
    counts.add(labels)
    # of depth 1 "kiln" finds south alone, which is gold; with "north" or "amber" north takes its place
    (labels,) = WordLabeler(index, None, 2, 1, 10).label([Question("q1", "kiln", support=(SOUTH.id, FAR.id))])
    assert labels.passages == (SOUTH, NORTH)  # as many as asked for, also beyond the depth
    lost = pytest.approx(-100 / 101 / 2)
    assert labels.recall == pytest.approx(100 / 101 / 2)
    assert (labels.without_word, labels.with_word) == ({"kiln": lost}, {"south": 0, "north": lost, "amber": lost})
    counts.add(labels)
    assert str(counts) == (  # without "kiln" less is found: it helps
        "2 questions, 6 words of passages, 2 words of passages that help, 2 words of passages that harm, "
        "4 words of questions, 2 words of questions that help, 0 words of questions that harm"
    )


def test_random_questions_against_the_definition(tmp_path) -> None:
    rng, passages = random.Random(0), corpus(60)
    retriever = indexed(tmp_path / "index", passages)
    other = indexed(tmp_path / "other", passages, k1=0.5, b=0.0)
    questions = []
    for number in range(12):
        text = " ".join(rng.choices([*WORDS, "the", "Zebra!"], k=rng.randint(1, 6)))
        gold = rng.sample(passages, k=rng.randint(1, 3))
        questions.append(Question(str(number), text, support=tuple(passage.id for passage in gold)))

    def value(query: str, question: Question) -> float:
        ids = [hit.passage.id for hit in retriever.search([query], 20)[0]]
        values = [9 / (9 + (1 + ids.index(gold)) ** 2) if gold in ids else 0 for gold in question.support]
        return sum(values) / len(values)

    compared = 0
    for question, labels in zip(questions, WordLabeler(retriever, [other], 4, 20, 3).label(questions), strict=True):
        base, own = value(question.text, question), [word.text for word in words_of(question.text)]
        first, second = (each.search([question.text], 4)[0] for each in (retriever, other))
        mixed = [hit.passage for pair in zip(first, second, strict=True) for hit in pair]
        assert list(labels.passages) == list(dict.fromkeys(mixed))[:4]
        words = {word.text for each in labels.passages for word in words_of(f"{each.title} {each.text}")}
        added = {word: value(f"{question.text} {word}", question) - base for word in words - {*own}}
        others = {w: [each for each in question.text.split() if words_of(each)[0].text != w] for w in own}
        removed = {word: value(" ".join(left), question) - base for word, left in others.items()}
        assert labels.recall == pytest.approx(base)
        assert (labels.with_word, labels.without_word) == (pytest.approx(added), pytest.approx(removed))
        compared += sum(change != 0 for change in [*labels.with_word.values(), *labels.without_word.values()])
    assert compared > 100
