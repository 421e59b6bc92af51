"""The file of options chosen on validation questions: what it completes, and what is refused."""

from dataclasses import asdict
from pathlib import Path

import pytest

from common.errors import ArtifactError, MissingInputError, UserError
from common.sealed_json import write_sealed
from harness.selection.options import SelectionOptions
from harness.selection.tuned import SELECTION, Tuned, completed, read_selection

CHOSEN = {3: Tuned(2, 12, 0.4, 3, True), 4: Tuned(3, 8, 0.7, 1, False)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    chosen = {str(k): asdict(each) for k, each in CHOSEN.items()}
    SELECTION.write(tmp_path / "selection.json", {"selection": chosen, "classifier": "abc", "chosen_on": {}})
    return tmp_path / "selection.json"


def test_what_was_written_is_read(file: Path) -> None:
    assert read_selection(file, "abc") == CHOSEN
    assert SELECTION.is_one(file)


def test_cfs_takes_all_of_it_and_what_is_given_wins(file: Path) -> None:
    assert completed(SelectionOptions("cfs", 3), CHOSEN, file) == CHOSEN[3].cfs(3)
    given = SelectionOptions(
        "cfs", 3, k1=1, depth=5, threshold=0.2, question_weight=2, symmetric=False, fill_budget=True
    )
    assert completed(given, CHOSEN, file) == given


def test_other_methods_take_the_candidates_alone_or_nothing(file: Path) -> None:
    for method in ("qdc", "cis"):
        taken = completed(SelectionOptions(method, 3), CHOSEN, file)  # type: ignore[arg-type]
        assert taken == SelectionOptions(method, 3, k1=2, depth=12, question_weight=3)  # type: ignore[arg-type]
    for method in ("sm", "ranked"):  # also with a k that the file does not have
        options = SelectionOptions(method, 5)  # type: ignore[arg-type]
        assert completed(options, CHOSEN, file) == options


def test_a_budget_that_was_not_tuned_is_refused(file: Path) -> None:
    with pytest.raises(
        UserError, match=r"has options for k = 3, 4, none for k = 5\. .*infer\.py tune with --tuning\.ks '\[5\]'"
    ):
        completed(SelectionOptions("cfs", 5), CHOSEN, file)


def test_a_file_of_another_classifier_is_refused(file: Path) -> None:
    with pytest.raises(ArtifactError, match=r"chosen for the classifier abc, not for this one \(xyz\)"):
        read_selection(file, "xyz")
    with pytest.raises(ArtifactError, match="of no serving folder"):
        read_selection(file, None)


def test_missing_corrupt_and_edited_files_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"infer\.py tune"):
        read_selection(tmp_path / "none.json", "abc")
    text = file.read_text()
    for broken in (text[:-9], text.replace("0.4", "0.5"), "[]", ""):
        file.write_text(broken)
        assert not SELECTION.is_one(file)
        with pytest.raises(ArtifactError, match=r"infer\.py tune"):
            read_selection(file, "abc")


@pytest.mark.parametrize(
    "selection",
    [
        {"x": {}},
        {"3": []},
        {"3": {"k1": 2}},
        [],
        {"3": asdict(CHOSEN[3]) | {"deep": 4}},
        {"3": asdict(CHOSEN[3]) | {"k1": 4}},
    ],
)  # fmt: skip
def test_a_file_with_other_content_is_refused(file: Path, selection: object) -> None:
    write_sealed(file, {"selection": selection, "classifier": "abc", "chosen_on": {}})
    assert not SELECTION.is_one(file)
    with pytest.raises(ArtifactError, match="not a file of selection options of this release"):
        read_selection(file, "abc")
