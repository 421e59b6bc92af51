"""The list of real documents: well formed, free of repetitions, halves drawn by the stated rule."""

import re
from collections import Counter

from benchmarks.documents.catalogue import catalogue, halves


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


def test_halves_follow_the_rule_and_are_equally_large() -> None:
    entries = catalogue()
    assert {entry.id: entry.half for entry in entries} == halves(entries)
    for pdf in (True, False):
        count = Counter(entry.half for entry in entries if (entry.format == "pdf") is pdf)
        assert count["tuning"] == count["held-out"]
