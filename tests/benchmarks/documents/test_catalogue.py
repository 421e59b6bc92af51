"""The list of real documents: well formed, free of repetitions, halves drawn by the stated rule."""

import re
from collections import Counter

import pytest

from benchmarks.documents.catalogue import catalogue, halves


def test_at_least_twelve_documents_and_five_pdfs_stand_in_each_kind_of_layout() -> None:
    entries = catalogue()
    assert len(entries) >= 12
    assert sum(entry.format == "pdf" for entry in entries) >= 5
    assert {"pdf", "html", "docx", "markdown"} == {entry.format for entry in entries}
    assert all((entry.pages is not None) == (entry.format == "pdf") for entry in entries)


def test_checksums_and_names_are_well_formed_and_differ() -> None:
    entries = catalogue()
    for entry in entries:
        assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256)
        assert re.fullmatch(r"[0-9a-f]{64}", entry.truth.sha256)
        assert re.fullmatch(r"[a-z0-9-]+", entry.id)
        assert entry.licence
        assert entry.version
        assert not entry.path.startswith("/")
    assert max(Counter(entry.id for entry in entries).values()) == 1
    assert max(Counter(entry.sha256 for entry in entries).values()) == 1


def test_the_truth_of_a_pdf_is_another_file() -> None:
    assert all(
        entry.truth.kind != "pdf" and entry.truth.path != entry.path for entry in catalogue() if entry.format == "pdf"
    )


def test_halves_follow_the_rule_and_are_equally_large() -> None:
    entries = catalogue()
    assert {entry.id: entry.half for entry in entries} == halves(entries)
    for pdf in (True, False):
        count = Counter(entry.half for entry in entries if (entry.format == "pdf") is pdf)
        assert count["tuning"] == count["held-out"]


def test_a_half_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match=r"'test'.*tuning, held-out"):
        catalogue("test")
