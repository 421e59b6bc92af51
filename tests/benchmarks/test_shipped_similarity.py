"""The first shipped passages by cosine: against the encoder's own cosines, and the command's figures by hand."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.shipped_similarity import first_by_cosine, main
from common.errors import UserError
from common.records import Passage, Question
from harness.indexing.passage_store import indexed_text
from harness.indexing.sentence_encoder import SentenceEncoder

PASSAGES = [Passage.of(f"title {n}", text) for n, text in enumerate(("river", "alba joins", "ocean ends", "brune"))]


def test_passages_come_by_their_cosine_each_once(encoder: SentenceEncoder) -> None:
    question = Question("q", "alba river", passages=(*PASSAGES, PASSAGES[0]))
    ((first, second, third),) = first_by_cosine([question], encoder, 3)
    vectors_PD = np.array(encoder.encode_passages([indexed_text(p) for p in PASSAGES]), dtype=float)
    (query_D,) = np.array(encoder.encode_queries(["alba river"]), dtype=float)
    cosine_P = vectors_PD @ query_D / np.linalg.norm(vectors_PD, axis=1) / np.linalg.norm(query_D)
    order = [PASSAGES[place].id for place in np.argsort(-cosine_P)]
    assert [first.passage.id, second.passage.id, third.passage.id] == order[:3]


def test_the_command_prints_recall_em_and_f1(
    encoder_folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {
        "_id": "q", "question": "alba river", "answer": "brune", "type": "bridge", "level": "hard",
        "context": [["Alba", ["alba joins"]], ["Brune", ["ocean ends"]]],
        "supporting_facts": [["Alba", 0], ["Brune", 0]],
    }  # fmt: skip
    file = tmp_path / "dev.json.gz"
    file.write_bytes(gzip.compress(json.dumps([row]).encode()))
    for k, recall, em, f1 in (("2", 100.0, 100.0, 100.0), ("1", 50.0, 0.0, 66.7)):  # both passages are gold
        main([str(file), "--encoder", encoder_folder, "--k", k])
        shown = capsys.readouterr().out
        figures = [float(line.split()[1]) for line in shown.splitlines()[1:]]
        assert figures == [recall, em, f1]
    with pytest.raises(UserError, match="k must be at least 1, got 0"):
        main([str(file), "--encoder", encoder_folder, "--k", "0"])
