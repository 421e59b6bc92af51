"""The report of a synthesis."""

from collections import Counter

from harness.synthesis.pipeline import SynthesisOutcome
from harness.synthesis.report import advice, counts_text


def test_a_reader_that_guesses_is_named() -> None:
    kept = SynthesisOutcome(rows=[{}] * 3, drafts=9, dropped=Counter(one_passage_is_enough=3, wrong_answer=3))
    assert advice({"train": kept}) == ""
    other = SynthesisOutcome(rows=[{}], drafts=4, dropped=Counter(one_passage_is_enough=2, duplicate=1))
    assert advice({"train": kept, "test": other}).startswith("5 questions were dropped")
    assert "--alone false" in advice({"train": kept, "test": other})


def test_counts_are_of_all_splits_and_add_up() -> None:
    outcomes = {
        "train": SynthesisOutcome(rows=[{}] * 3, drafts=8, dropped=Counter(wrong_answer=5)),
        "test": SynthesisOutcome(rows=[{}], drafts=2, dropped=Counter(duplicate=1)),
    }
    found = {line.rsplit(maxsplit=2)[0].strip(): line.split()[-2:] for line in counts_text(outcomes).splitlines()}
    assert found == {
        "drafts": ["10", "100.0%"], "the question was written before": ["1", "10.0%"],
        "the reader answers something else from the passages": ["5", "50.0%"],
        "questions": ["4", "40.0%"], "train": ["3", "30.0%"], "test": ["1", "10.0%"],
    }  # fmt: skip
