"""The file of options chosen on validation questions: what it completes, and what is refused."""

from dataclasses import asdict

import pytest

from harness.selection.options import SelectionOptions
from harness.selection.tuned import SELECTION, Tuned, completed, read_selection

CHOSEN = {3: Tuned(2, 12, 0.4, 3, True), 4: Tuned(3, 8, 0.7, 1, False)}


@pytest.fixture
def file(tmp_path):
    chosen = {str(k): asdict(each) for k, each in CHOSEN.items()}
    SELECTION.write(tmp_path / "selection.json", {"selection": chosen, "classifier": "abc", "chosen_on": {}})
    return tmp_path / "selection.json"


def test_what_was_written_is_read(file) -> None:
    assert read_selection(file, "abc") == CHOSEN
    assert SELECTION.is_one(file)
    file.write_text(file.read_text().replace("0.4", "0.5"))
    assert not SELECTION.is_one(file)


def test_cfs_takes_all_of_it_and_what_is_given_wins(file) -> None:
    assert completed(SelectionOptions("cfs", 3), CHOSEN, file) == CHOSEN[3].cfs(3)
    options = {"k1": 1, "depth": 5, "threshold": 0.2, "question_weight": 2, "symmetric": False, "fill_budget": True}
    given = SelectionOptions("cfs", 3, **options)
    assert completed(given, CHOSEN, file) == given


def test_other_methods_take_the_candidates_alone_or_nothing(file) -> None:
    for method in ("qdc", "cis"):
        taken = completed(SelectionOptions(method, 3), CHOSEN, file)  # type: ignore[arg-type]
        assert taken == SelectionOptions(method, 3, k1=2, depth=12, question_weight=3)  # type: ignore[arg-type]
    for method in ("sm", "ranked"):  # also with a k that the file does not have
        options = SelectionOptions(method, 5)  # type: ignore[arg-type]
        assert completed(options, CHOSEN, file) == options
