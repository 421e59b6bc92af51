"""Planted changes are planted, caught and undone; those on record have a place."""

import json
from collections import Counter
from pathlib import Path

from tests.reliability.planted import FOLDERS, RECORDS, ROOT, Record, places, result

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


def changed(old: str, new: str) -> Record:
    lines = CODE.split("\n")
    at = lines.index(old)
    return {
        "old": old,
        "new": new,
        "caught_by": "nothing",
        "before": lines[at - 2 : at],
        "after": lines[at + 1 : at + 3],
    }


def write_tree(root: Path) -> Path:
    (root / "pytest.ini").write_text("[pytest]\n")
    file = root / "models/numbers.py"
    for path, text in [(file, CODE), (root / "tests/models/test_numbers.py", TEST)]:
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return file


def test_a_change_is_caught_and_undone_also_where_its_file_has_moved(tmp_path: Path) -> None:
    file = write_tree(tmp_path)
    moved = file.rename(file.with_name("sizes.py"))
    test = tmp_path / "tests/models/test_numbers.py"
    test.write_text(TEST.replace("models.numbers", "models.sizes"))
    dropped, smaller = changed("        return LIMIT", "        pass"), changed("    if a < 0:", "    if a <= 0:")
    assert result(dropped, tmp_path) == "tests/models/test_numbers.py::test_limit"
    assert result(smaller, tmp_path) == "nothing"
    assert moved.read_text() == CODE
    moved.unlink()
    assert result(dropped, tmp_path) is None


def test_the_changes_on_record_have_one_place_at_most() -> None:
    records = json.loads(RECORDS.read_text())
    assert Counter(record["file"].split("/")[0] for record in records) == dict.fromkeys(FOLDERS, 30)
    assert all(len(places(record, ROOT)) <= 1 for record in records)
