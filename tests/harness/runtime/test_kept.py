"""Kept work: answers and matrices as JSON, and how a system is known again."""

import importlib
import json
import shutil
import sys
from copy import copy
from dataclasses import make_dataclass
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from common.records import Answer, Passage, Question, Ranked
from harness.evaluation.serialization import pack_answer, unpack_answer
from harness.readers.read_once import packed, unpacked
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.fusion import FusedRetriever
from harness.runtime.provenance import configuration, construct, reusing
from models.rerag.marginal_reader import AnswerMatrix
from tests.helpers.rerag_world import corpus

PASSAGES = tuple(corpus(4))
ROW = st.lists(st.floats(width=32), min_size=3, max_size=3)
HITS = st.lists(st.tuples(st.sampled_from(PASSAGES), st.floats(allow_nan=False)))


@settings(max_examples=25)
@given(st.lists(ROW, max_size=2), st.booleans())
def test_matrices_survive_to_the_last_bit(rows: list[list[float]], scored: bool) -> None:
    logp_AN = torch.tensor(rows, dtype=torch.float32).reshape(len(rows), 3) if scored else None
    failed = tuple("" if place < len(rows) else "down" for place in range(3))
    matrix = AnswerMatrix.of(("é\u2028", "b", "c"), logp_AN, failed)
    back = unpacked(json.loads(json.dumps(packed("xyz", matrix))))
    assert (back.written, back.candidates) == (matrix.written, matrix.candidates)
    assert (back.failed, back.answer_logp_AN is None) == (matrix.failed, logp_AN is None)
    if logp_AN is not None:
        torch.testing.assert_close(back.answer_logp_AN, logp_AN, rtol=0, atol=0, equal_nan=True)


@given(st.text(max_size=5), HITS, st.none() | st.floats(max_value=0))
def test_answers_survive(text: str, hits: list[tuple[Passage, float]], logprob: float | None) -> None:
    question = Question("q", "?", passages=(*PASSAGES[:2], PASSAGES[0]))  # the others come from elsewhere
    answer = Answer("q", text, tuple(Ranked(*hit) for hit in hits), logprob, {"calls": 0.1}, {"of": [text, None]})
    assert unpack_answer(question, json.loads(json.dumps(pack_answer(question, answer)))) == answer


Frozen = make_dataclass("Frozen", ["name"], frozen=True)


Slotted = make_dataclass("Slotted", ["name"], slots=True, namespace={"reply": lambda self: None})


def test_parts_of_any_class_are_built_and_a_frozen_one_is_known() -> None:
    """Of one with slots and without a hash nothing can be kept: it is not known, and not shared."""
    built = construct(Frozen, name="a")
    assert configuration(built) == {**configuration(built), "name": "a"}  # type: ignore[dict-item]
    assert configuration(copy(built)) is None
    build = reusing()
    assert build(Slotted, name="b") is not build(Slotted, name="b")
    assert configuration(build(Slotted, name="b")) is None


def test_a_system_is_known_by_what_it_was_built_from(tmp_path: Path) -> None:
    def fused(index: Path, weight: float = 1.0, known: bool = True) -> FusedRetriever:
        inner = construct(Bm25Retriever, index=index) if known else Bm25Retriever(index)
        return construct(FusedRetriever, retrievers=[inner], weights=[weight])

    index = tmp_path / "index"
    build_bm25(corpus(4), index)
    reference = configuration(fused(index))
    assert json.loads(json.dumps(reference)) == reference
    moved = shutil.copytree(index, tmp_path / "moved")
    assert configuration(fused(moved)) == reference
    build_bm25(corpus(5), tmp_path / "other")
    assert configuration(fused(tmp_path / "other")) != reference
    assert configuration(fused(index, 2.0)) != reference
    assert configuration(fused(index, known=False)) is None
    assert configuration(Bm25Retriever(index)) is None


def test_a_class_from_outside_is_known_by_its_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its author repairs it after a failed run: what the old code answered must not be reused."""
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "outside_system.py"
    file.write_text("class System:\n    pass\n")
    system = construct(importlib.import_module("outside_system").System)
    before = configuration(system)
    assert before == configuration(system)
    file.write_text("class System:\n    repaired = True\n")
    after = configuration(system)
    assert before.keys() == after.keys() == {"class", "file"}
    assert after != before
    del sys.modules["outside_system"]
