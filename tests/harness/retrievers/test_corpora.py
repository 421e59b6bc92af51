"""Gold passages that no index holds: of one retriever, and of a system that searches several corpora."""

from pathlib import Path
from types import SimpleNamespace

from common.records import Passage, Question
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.corpora import absent_gold, gold_of

TARN, FELL, GILL = (Passage.of(name, f"A {name} is in the hills.") for name in ("tarn", "fell", "gill"))


def test_gold_is_looked_up_in_every_corpus_of_a_system(tmp_path: Path) -> None:
    for name, passage in ("one", TARN), ("two", FELL):
        build_bm25([passage], tmp_path / name)
    first, second = (Bm25Retriever(tmp_path / name) for name in ("one", "two"))
    asked = [("1", (TARN, FELL)), ("2", (GILL,))]
    gold = gold_of([Question(id_, "?", passages=own, support=tuple(p.id for p in own)) for id_, own in asked])
    assert absent_gold(first, gold) == {FELL.id, GILL.id}
    assert absent_gold(SimpleNamespace(retriever=first), gold) == {FELL.id, GILL.id}
    assert absent_gold(SimpleNamespace(retrievers=[first, second], retriever=first), gold) == {GILL.id}
    assert absent_gold(SimpleNamespace(), gold) is None
    assert absent_gold(first, set()) is None
    assert absent_gold(first, {TARN.id}) == set()
