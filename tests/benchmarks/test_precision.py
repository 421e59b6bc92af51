"""The benchmark of bf16 beside fp32: its triples, and its output on a tiny classifier."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import precision
from models.drrag.triple_classifier import KIND, TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT
from models.serving_manifest import write_manifest


def test_gold_pairs_are_positive_and_pairs_with_another_passage_negative(hotpot_file: Path) -> None:
    triples, labels = precision.labelled_triples("hotpotqa", str(hotpot_file), 5)
    rows = json.loads(hotpot_file.read_text())[:5]
    gold = {row["question"]: {title for title, _ in row["supporting_facts"]} for row in rows}
    for (question, one, other), label in zip(triples, labels, strict=True):
        assert one.title in gold[question]
        assert (other.title in gold[question]) is label
    assert {True, False} == set(labels)


def test_both_precisions_are_measured(
    hotpot_file: Path, checkpoints: dict[str, Path], tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    classifier = TripleClassifier.build(str(checkpoints["bert"]), 64)
    classifier.save(tmp_path)
    write_manifest(tmp_path, KIND, TEXT_FORMAT, 64, attention="auto", threshold=0.5)
    options = ["--serving", str(tmp_path), "--questions", str(hotpot_file), "--limit", "4", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["precision", *options])
    precision.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["float32", "bfloat16"]
    assert lines[3].startswith("change of P: median ")
