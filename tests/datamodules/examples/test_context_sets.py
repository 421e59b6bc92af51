"""Context sets of questions with grades, and of questions without answers."""

from pathlib import Path

from common.records import Gold, Passage, Question
from datamodules.examples.context_sampling import ContextSampler, count_contexts
from datamodules.examples.context_sets import ContextSet, shares_of_grades

BEST, GOOD, BAD = Passage.of("", "the best"), Passage.of("", "a good one"), Passage.of("", "a bad one")
COPY = Passage.of("copy", "the best")


def asked(*support: Passage, answers: tuple[str, ...] = (), **fields: object) -> Question:
    passages = (BEST, GOOD, BAD)
    return Question("q", "Which?", answers, passages, tuple(each.id for each in support), **fields)  # type: ignore[arg-type]


def test_grades_are_shares_of_the_highest_one() -> None:
    question = asked(BEST, GOOD, gold=Gold(grades=((BEST.id, 4.0), (GOOD.id, 1.0))))
    assert shares_of_grades(question, (BAD, GOOD, BEST, COPY), (False, True, True, True)) == (0.0, 0.25, 1.0, 0.25)
    assert shares_of_grades(asked(BEST), (BEST, BAD), (True, False)) == ()
    assert shares_of_grades(asked(gold=Gold(grades=(("of a corpus", 0.0),))), (BAD,), (False,)) == ()


def test_a_training_by_gold_passages_needs_no_answers(tmp_path: Path) -> None:
    questions = [asked(BEST), asked(answers=("best",)), asked(), asked(GOOD, answers=("x",))]

    def places(labels: str, answered: bool) -> list[int]:
        sampler = ContextSampler({}, labels, False, seed=0)  # type: ignore[arg-type]

        def selected(question: Question) -> ContextSet:
            return sampler.selected(question, 3, "sampled", sampler.rng_of(question, 0))

        return count_contexts(questions, len(questions), selected, answered)["place"].tolist()

    assert places("has_answer", True) == [1, 3]
    assert places("gold", True) == [1, 3]
    assert places("gold", False) == [0, 1, 3]  # the third has neither an answer nor a gold passage
