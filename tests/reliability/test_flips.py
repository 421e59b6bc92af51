"""A handful of damages; all of them are a command (docs/operate.md#how-it-was-tested)."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.reliability.artefacts import ARTEFACTS
from tests.reliability.flips import FLIPS, damaged, ready, tried
from tests.reliability.workplace import endpoint, write_files

SOME = range(FLIPS - 1, FLIPS + 1)  # a flip and a cut
INDEX = next(each for each in ARTEFACTS if each.name == "index bm25")


def test_a_damage_is_one_bit_or_an_end_and_always_the_same() -> None:
    whole = bytes(range(200))
    flipped, cut = damaged(whole, "row", 0), damaged(whole, "row", FLIPS)
    assert sum((one ^ other).bit_count() for one, other in zip(whole, flipped, strict=True)) == 1
    assert whole.startswith(cut)
    assert len(cut) < len(whole)
    assert damaged(whole, "row", 0) == flipped != damaged(whole, "row", 1)


def test_an_index_refuses_what_it_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with endpoint() as address:
        write_files(address)
    ready(INDEX)
    for row in tried(INDEX, SOME, tmp_path / "kept").values():
        assert row == Counter(refused=len(SOME))
    unchecked = replace(INDEX, use=f"{INDEX.use} --system.retriever.verify off")
    assert sum(row["silently wrong"] + row["traceback"] for row in tried(unchecked, SOME, tmp_path / "kept").values())
