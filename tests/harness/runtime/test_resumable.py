"""Kept work: the file that finished batches lie in, what they are made of, and how a system is known again."""

import importlib
import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import ArtifactError, UserError
from common.records import Answer, Passage, Question, Ranked
from harness.evaluation.serialization import pack_answer, unpack_answer
from harness.readers.read_once import packed, unpacked
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.fusion import FusedRetriever
from harness.runtime.provenance import configuration, construct
from harness.runtime.resumable import ResumableBatches
from models.rerag.marginal_reader import AnswerMatrix
from tests.helpers.rerag_world import corpus

BATCHES = ["ab", "cd", "ef", "g"]


def doubled(file: Path | None, fails_at: str = "", depends_on: int = 0) -> tuple[list[str], list[str]]:
    """The results of work that doubles letters, and the batches it was done for."""
    done = []

    def work(batch: str) -> str:
        if batch == fails_at:
            raise KeyboardInterrupt
        done.append(batch)
        return 2 * batch

    return list(ResumableBatches(file, {"n": depends_on}).run(BATCHES, work, "doubling")), done


def interrupted_file(folder: Path) -> Path:
    with pytest.raises(KeyboardInterrupt):
        doubled(folder / "kept" / "work.jsonl", fails_at="ef")
    return folder / "kept" / "work.jsonl"


def test_a_file_cut_anywhere_resumes(tmp_path: Path) -> None:
    file = interrupted_file(tmp_path)
    whole = file.read_bytes()
    ends = [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")]
    assert len(ends) == 3
    near = {end + shift for end in ends for shift in (-2, -1, 0, 1)}
    for cut in sorted({*range(0, len(whole), 29), *near} - {len(whole) + 1}):
        file.write_bytes(whole[:cut])
        results, done = doubled(file)
        assert results == ["abab", "cdcd", "efef", "gg"]
        assert len(done) == 4 - max(0, sum(end <= cut for end in ends) - 1)
        results, done = doubled(file)  # and left a whole file behind
        assert (results, done) == (["abab", "cdcd", "efef", "gg"], [])


def test_a_change_costs_the_old_work_only_when_the_new_has_a_result(tmp_path: Path) -> None:
    file = interrupted_file(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        doubled(file, fails_at="ab", depends_on=1)
    assert doubled(file)[1] == ["ef", "g"]
    assert doubled(file, depends_on=1)[1] == BATCHES
    assert doubled(file, depends_on=1)[1] == []
    assert doubled(None)[1] == BATCHES


def test_a_file_in_the_way_is_no_full_disk(tmp_path: Path) -> None:
    (tmp_path / "partial").write_text("")
    with pytest.raises(ArtifactError, match="Choose another --out"):
        doubled(tmp_path / "partial" / "work.jsonl")


def test_two_runs_do_not_share_a_file(tmp_path: Path) -> None:
    file = tmp_path / "kept" / "work.jsonl"
    file.parent.mkdir()
    running = ResumableBatches(file).run(BATCHES, str.upper, "working")
    next(running)  # a batch is saved, and the run goes on
    with pytest.raises(
        UserError, match=r"work\.jsonl is in use by process \d+ on .+\. Wait for it, or choose another --out"
    ):
        doubled(file)
    assert list(running) == ["CD", "EF", "G"]
    assert [path.name for path in file.parent.iterdir()] == ["work.jsonl"]
    assert doubled(file)[1] == BATCHES


def test_a_run_that_saved_nothing_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        doubled(tmp_path / "kept" / "work.jsonl", fails_at="ab")
    assert not list(tmp_path.iterdir())


# --- what is kept, and for whom

PASSAGES = tuple(corpus(4))
TEXTS = st.text(max_size=5)
FLOATS = st.floats(width=32)


@settings(max_examples=25)
@given(st.lists(st.lists(FLOATS, min_size=3, max_size=3), max_size=2), st.booleans())
def test_matrices_survive_to_the_last_bit(rows: list[list[float]], scored: bool) -> None:
    logp_AN = torch.tensor(rows, dtype=torch.float32).reshape(len(rows), 3) if scored else None
    failed = tuple("" if place < len(rows) else "down" for place in range(3))
    matrix = AnswerMatrix.of(("é\u2028", "b", "c"), logp_AN, failed)
    back = unpacked(json.loads(json.dumps(packed("xyz", matrix))))
    assert (back.written, back.candidates) == (matrix.written, matrix.candidates)
    if logp_AN is None:
        assert back.answer_logp_AN is None
    else:
        assert back.answer_logp_AN.dtype == torch.float32
        assert torch.equal(back.answer_logp_AN.isnan(), logp_AN.isnan())
        assert torch.equal(back.answer_logp_AN.nan_to_num(), logp_AN.nan_to_num())
        assert back.answer_logp_AN.shape == logp_AN.shape
    assert back.failed == matrix.failed


@given(
    TEXTS,
    st.lists(st.tuples(st.sampled_from(PASSAGES), st.floats(allow_nan=False))),
    st.none() | st.floats(max_value=0),
)
def test_answers_survive(text: str, hits: list[tuple[Passage, float]], logprob: float | None) -> None:
    question = Question("q", "?", passages=(*PASSAGES[:2], PASSAGES[0]))  # the others come from elsewhere
    answer = Answer("q", text, tuple(Ranked(*hit) for hit in hits), logprob, {"calls": 0.1}, {"of": [text, None]})
    assert unpack_answer(question, json.loads(json.dumps(pack_answer(question, answer)))) == answer


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
    assert before is not None
    assert after is not None
    assert after != before
    assert after.keys() == before.keys() == {"class", "file"}
    del sys.modules["outside_system"]
