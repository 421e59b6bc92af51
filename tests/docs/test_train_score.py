"""The example that trains, exports and scores with other libraries runs whole, with a tiny model."""

import re
from pathlib import Path

import pytest
import pytorch_lightning as pl
from transformers import AutoTokenizer, BertConfig, BertModel

from datamodules.world.__main__ import main as make_world
from models.pretrained import resolve
from tests.conftest import SIZES
from tests.helpers.tolerances import decide

pytestmark = pytest.mark.whole_run

WORLD = ["--questions", "60", "--singles", "60", "--open_singles", "20", "--web_questions", "2", "--manuals", "1"]


def test_a_reranker_is_trained_exported_and_scored_alike_by_three_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    from docs.examples.train_score import main

    monkeypatch.chdir(tmp_path)
    make_world(["--out", "data/world", *WORLD])
    tokenizer = AutoTokenizer.from_pretrained(resolve("sentence-transformers/all-MiniLM-L6-v2"))
    tokenizer.save_pretrained("tiny")
    pl.seed_everything(0)
    encoder = BertModel(BertConfig(vocab_size=len(tokenizer), **SIZES))
    decide(encoder)
    encoder.save_pretrained("tiny")
    main(Path("data/world/fid_train.json"), Path("out"), "tiny", epochs=2)
    rows = re.findall(r"^(CrossEncoder|transformers|ONNX Runtime) +(.+)$", capsys.readouterr().out, re.MULTILINE)
    assert [library for library, _ in rows] == ["CrossEncoder", "transformers", "ONNX Runtime"]
    scores = [[float(score) for score in text.split()] for _, text in rows]
    assert max(scores[0]) - min(scores[0]) > 0.01  # the model tells passages apart
    assert all(theirs == pytest.approx(scores[0], rel=0, abs=2e-4) for theirs in scores)
    assert {"serving", "onnx"} <= {path.name for path in Path("out").iterdir()}
