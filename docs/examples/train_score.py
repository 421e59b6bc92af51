"""Trains a reranker with plain Lightning, and scores passages with CrossEncoder, transformers and ONNX Runtime.

    python -m docs.examples.train_score --questions data/world/fid_train.json --out checkpoints/train-score

`python -m datamodules.world --out data/world` writes these questions. The libraries must give our log-odds (nats).
"""

from pathlib import Path

import numpy as np
import onnxruntime
import pytorch_lightning as pl
from jsonargparse import auto_cli
from pytorch_lightning.callbacks import ModelCheckpoint
from sentence_transformers import CrossEncoder
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from common.records import nfkc, passage_text
from datamodules.examples.data_files import QuestionDataFile
from datamodules.formats.reading import read_questions
from datamodules.rerag import ReRagData
from harness.serving.onnx_export import export_onnx
from models.cross_encoder import load_scorer
from trainers.rerag import ReRagTrainer
from trainers.rerag_options import Loss
from trainers.run.callbacks import ServingExport

TOLERANCE_NATS = 1e-4


def main(questions: Path, out: Path, model: str = "sentence-transformers/all-MiniLM-L6-v2", epochs: int = 1) -> None:
    """Train, write OUT/serving and OUT/onnx, and score the first question's passages by each library."""
    module = ReRagTrainer(estimator=model, generator=None, max_tokens=128, loss=Loss(label_weight=1.0))
    data = ReRagData([QuestionDataFile(str(questions), "fid")], context_sampling="sampled", questions_per_step=16)
    callbacks = [ModelCheckpoint(out, monitor="val/recall_1", mode="max"), ServingExport()]  # the best checkpoint
    pl.Trainer(max_epochs=epochs, default_root_dir=out, logger=False, callbacks=callbacks).fit(module, datamodule=data)
    serving, part = out / "serving", str(out / "serving/estimator")
    export_onnx(serving, out / "onnx")

    question = next(read_questions("fid", str(questions), limit=1))
    ours = load_scorer(serving, "cpu", "fp32").scores([(question.text, passage) for passage in question.passages])
    texts = [nfkc(passage_text(passage)) for passage in question.passages]
    pairs = [nfkc(question.text)] * len(texts), texts
    batch = AutoTokenizer.from_pretrained(part)(*pairs, truncation=True, padding=True, return_tensors="pt")
    arrays = AutoTokenizer.from_pretrained(out / "onnx")(*pairs, truncation=True, padding=True, return_tensors="np")
    network = AutoModelForSequenceClassification.from_pretrained(part)
    scores = {
        "CrossEncoder": CrossEncoder(part, device="cpu").predict(list(zip(*pairs, strict=True))),
        "transformers": network.eval()(**batch).logits[:, 0].detach().numpy(),
        "ONNX Runtime": onnxruntime.InferenceSession(out / "onnx/model.onnx").run(None, dict(arrays))[0],
    }
    for library, theirs in scores.items():
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=TOLERANCE_NATS, err_msg=library)
        print(f"{library:<12}", " ".join(f"{score:.4f}" for score in theirs))


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
