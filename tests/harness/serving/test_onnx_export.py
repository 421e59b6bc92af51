"""ONNX export answers as the serving folder does, at other batch sizes and lengths than those traced."""

from pathlib import Path

import pytest

from models.drrag.triple_classifier import TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT
from models.serving_manifest import write_manifest
from tests.helpers.tolerances import decide, model_tolerance

pytestmark = pytest.mark.numeric


@pytest.mark.whole_run
def test_onnx_answers_as_the_folder_it_comes_from(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    import onnxruntime

    from common.records import Passage
    from harness.serving.onnx_export import export_onnx

    serving, out = tmp_path / "serving", tmp_path / "onnx"
    classifier = TripleClassifier.build(str(checkpoints["bert"]), 96)
    decide(classifier.network)
    classifier.save(serving)
    write_manifest(serving, "triple_classifier", TEXT_FORMAT, 96, attention="auto", threshold=0.5)
    assert export_onnx(serving, out) < model_tolerance()
    served = TripleClassifier.load(serving, device="cpu")
    session = onnxruntime.InferenceSession(out / "model.onnx", providers=["CPUExecutionProvider"])
    triples = [(f"where is name{i}", Passage.of("", "name1 " * i), Passage.of("x", "name2")) for i in range(1, 9)]
    ids, attention = served.encode.pad([served.encode(*triple) for triple in triples])
    (log_odds,) = session.run(None, {"input_ids": ids.numpy(), "attention_mask": attention.numpy()})
    expected = served(ids, attention).detach().numpy()
    assert log_odds == pytest.approx(expected, rel=0, abs=model_tolerance(float(abs(expected).max())))
