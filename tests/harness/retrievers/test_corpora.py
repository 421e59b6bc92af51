"""Gold passages that no index holds: of one retriever, and of a system that searches several corpora."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from common.records import Passage, Question
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.corpora import absent_gold, gold_of

TARN, FELL, GILL = (Passage.of(name, f"A {name} is in the hills.") for name in ("tarn", "fell", "gill"))
ASKED = [
    Question("1", "?", passages=(TARN, FELL), support=(TARN.id, FELL.id)),
    Question("2", "?", passages=(GILL,), support=(GILL.id,)),
]


@pytest.fixture
def retrievers(tmp_path: Path) -> list[Bm25Retriever]:
    for name, passages in ("one", [TARN]), ("two", [FELL]):
        build_bm25(passages, tmp_path / name)
    return [Bm25Retriever(tmp_path / name) for name in ("one", "two")]


def test_gold_is_looked_up_in_every_corpus_of_a_system(retrievers: list[Bm25Retriever]) -> None:
    first, _ = retrievers
    gold = gold_of(ASKED)
    assert absent_gold(first, gold) == {FELL.id, GILL.id}
    assert absent_gold(SimpleNamespace(retriever=first), gold) == {FELL.id, GILL.id}
    assert absent_gold(SimpleNamespace(retrievers=retrievers, retriever=first), gold) == {GILL.id}
    assert absent_gold(SimpleNamespace(), gold) is None
    assert absent_gold(first, set()) is None
    assert absent_gold(first, {TARN.id}) == set()
