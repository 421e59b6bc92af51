"""Planted changes are drawn, planted, caught and undone; those on record have a place."""

import json
from collections import Counter
from pathlib import Path

from tests.reliability.planted import FOLDERS, OF_FILE, RECORDS, ROOT, changes, places, result

CODE = '''"""Docstring with 1 number."""

LIMIT = 3


def larger(a: int, b: int = 2) -> int:
    """The larger number, at most LIMIT."""
    if a + b > LIMIT:
        return LIMIT
    if a < 0:
        raise ValueError("less than 0")
    print(1)
    return a if a > b else b
'''
TEST = """from models.numbers import larger


def test_larger():
    assert larger(1, 1) == 1


def test_limit():
    assert larger(5, 5) == 3
"""


def write_tree(root: Path) -> Path:
    (root / "pytest.ini").write_text("[pytest]\n")
    file = root / "models/numbers.py"
    for path, text in [(file, CODE), (root / "tests/models/test_numbers.py", TEST)]:
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return file


def test_what_can_be_drawn(tmp_path: Path) -> None:
    drawn = [record for _, record in changes(write_tree(tmp_path), tmp_path) if record["kind"]]
    assert Counter((record["kind"], record["new"].strip()) for record in drawn) == Counter([
        ("comparison", "if a + b >= LIMIT:"), ("sign", "if a - b > LIMIT:"), ("drop", "pass"),
        ("comparison", "if a <= 0:"), ("constant", "if a < 1:"), ("comparison", "return a if a >= b else b"),
    ])  # fmt: skip


def test_a_change_is_caught_and_undone_also_where_its_file_has_moved(tmp_path: Path) -> None:
    file = write_tree(tmp_path)
    found = {record["new"].strip(): record for _, record in changes(file, tmp_path)}
    moved = file.rename(file.with_name("sizes.py"))
    test = tmp_path / "tests/models/test_numbers.py"
    test.write_text(TEST.replace("models.numbers", "models.sizes"))
    assert result(found["pass"], tmp_path) == "tests/models/test_numbers.py::test_limit"
    assert result(found["if a <= 0:"], tmp_path) == "nothing"
    assert moved.read_text() == CODE
    moved.unlink()
    assert result(found["pass"], tmp_path) is None


def test_the_changes_on_record_have_one_place_at_most() -> None:
    records = json.loads(RECORDS.read_text())
    assert Counter(record["file"].split("/")[0] for record in records) == dict.fromkeys(FOLDERS, 30)
    assert max(Counter(record["file"] for record in records).values()) <= OF_FILE
    assert all(len(places(record, ROOT)) <= 1 for record in records)
