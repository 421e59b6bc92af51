"""Training on chains of documents: both losses learn, the export says what it reads, a resumed run is exact."""

from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch

from common.records import Passage
from models.drrag.triple_classifier import TripleClassifier
from models.drrag.triple_tokenizer import CHAIN_FORMAT
from tests.helpers.tiny_runs import TRAINER, assert_resumes_exactly, fit, metrics, refused, use
from trainers.drrag_teacher import Teacher

CONFIG = """
name: tiny
seed_everything: 0
model:
  class_path: trainers.drrag.DrRagTrainer
  init_args: {{pretrained: {model}, max_tokens: 96, dropout: 0.0, learning_rate: 2.0e-3, head_learning_rate: 2.0e-3}}
data:
  class_path: datamodules.drrag.DrRagData
  init_args:
    train: [{{layout: hotpotqa, path: {data}}}]
    validation_fraction: 0.3
    tokens_per_step: 700
    chains: {{most_documents: 3, candidates: 2}}
checkpoint: {{monitor: val/auc}}
"""


@pytest.fixture
def workplace(tmp_path: Path, checkpoints: dict[str, Path], hotpot_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with config.yaml for a tiny run."""
    config = CONFIG.format(model=checkpoints["bert"], data=hotpot_file) + TRAINER
    (tmp_path / "config.yaml").write_text(config)
    return use(tmp_path, monkeypatch)


@pytest.mark.parametrize(("loss", "epochs"), [pytest.param("binary", 12, marks=pytest.mark.whole_run), ("listwise", 5)])
def test_a_run_on_chains_learns_and_exports_a_classifier_of_chains(
    workplace: Path, loss: str, epochs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    run = fit("learns", "--model.loss", loss, "--trainer.max_epochs", str(epochs), "--early_stopping.patience", "null")
    validations = [row for row in metrics(run) if "val/auc" in row]
    assert max(row["val/auc"] for row in validations) > 0.75  # chance is 0.5
    assert max(row["val/hits_at_1"] for row in validations) > validations[0]["val/hits_at_1"]
    trained = [row["train/loss_nats"] for row in metrics(run) if "train/loss_nats" in row]
    assert sum(trained[-10:]) < 0.8 * sum(trained[:10])
    assert "drrag_beam.DrRagBeam" in capsys.readouterr().out
    served = TripleClassifier.load(run / "serving", device="cpu")
    assert served.most_documents == 3
    card = (run / "serving/README.md").read_text()
    assert CHAIN_FORMAT in card
    assert "Trained on chains of 1 to 3 documents" in card


@pytest.mark.whole_run
def test_a_resumed_listwise_run_ends_where_a_whole_one_does(workplace: Path) -> None:
    assert_resumes_exactly(workplace, [2, 5], "--model.loss", "listwise", "--data.tokens_per_step", "2000")


def test_listwise_training_on_triples_is_refused(workplace: Path) -> None:
    refused(
        ["--model.loss", "listwise", "--data.chains", "null"], r"set data\.chains, such as --data\.chains\.most_doc"
    )
    refused(["--checkpoint.monitor", "val/hits_at_1", "--data.chains", "null"], "does not measure: type")


@pytest.mark.whole_run
def test_a_student_learns_what_its_teacher_says_with_another_tokenizer(
    workplace: Path, checkpoints: dict[str, Path]
) -> None:
    train = ("--early_stopping.patience", "null", "--trainer.max_epochs")
    fit("teacher", "--model.pretrained", str(checkpoints["roberta"]), *train, "4")
    taught = ("--model.teacher", "checkpoints/teacher/serving", "--model.teacher_weight", "1")
    for loss in ("binary", "listwise"):
        run = fit(loss, *taught, "--model.loss", loss, *train, "4")
        rows = [row for row in metrics(run) if "train/teacher_nats" in row]
        for row in rows:  # the labels have no share
            assert row["train/loss_nats"] == pytest.approx(row["train/teacher_nats"])
        assert rows[0]["train/gold_nats"] != rows[0]["train/teacher_nats"]
        assert sum(row["train/teacher_nats"] for row in rows[-5:]) < sum(row["train/teacher_nats"] for row in rows[:5])
        card = (run / "serving/README.md").read_text()
        assert "Taught by `checkpoints/teacher/serving`, whose probabilities are 1 of the loss" in card
        weights = torch.load(run / "last.ckpt", weights_only=False)["state_dict"]
        assert not any("teacher" in name for name in weights)


@pytest.mark.parametrize("loss", ["binary", "listwise"])
def test_a_student_that_is_its_teacher_has_nothing_to_learn(workplace: Path, loss: str) -> None:
    fit("teacher", "--trainer.max_epochs", "1", "--model.loss", loss)
    again = (
        "--model.pretrained",
        "checkpoints/teacher/serving/classifier",
        "--model.loss",
        loss,
        "--trainer.max_epochs",
        "1",
    )
    taught = ("--model.teacher", "checkpoints/teacher/serving", "--model.teacher_weight")
    norms = []
    for weight in ("0", "0.5", "1"):
        run = fit(f"again-{weight}", *again, *taught, weight)
        norms.append(next(row["train/grad_norm"] for row in metrics(run) if "train/grad_norm" in row))
    assert norms[1] == pytest.approx(norms[0] / 2, rel=1e-3)  # half of the labels' gradient
    assert norms[2] < 1e-4 * norms[0]


def test_a_teacher_gives_each_text_its_own_score(workplace: Path) -> None:
    fit("teacher", "--trainer.max_epochs", "1")
    serving = Path("checkpoints/teacher/serving")
    documents = [Passage.of(f"title {n}", "a river joins " * (1 + 7 * n % 5)) for n in range(9)]
    texts = [("which river", *documents[n : n + 1 + n % 2]) for n in range(8)]  # scored longest first
    expected = TripleClassifier.load(serving, device="cpu", precision="fp32")
    alone_P = [expected.chain_log_odds([each])[0] for each in texts]
    found_P = Teacher(serving, pl.Trainer(accelerator="cpu", logger=False), 3).log_odds(texts).tolist()
    # hardly trained, its scores differ by little: by more than rounding does
    assert len({round(score, 6) for score in alone_P}) > 4
    assert found_P == pytest.approx(alone_P, abs=4e-7)


@pytest.mark.whole_run
def test_a_resumed_taught_run_ends_where_a_whole_one_does(workplace: Path) -> None:
    fit("teacher", "--trainer.max_epochs", "1")
    taught = ("--model.teacher", "checkpoints/teacher/serving", "--data.tokens_per_step", "2000")
    assert_resumes_exactly(workplace, [2, 5], "--model.loss", "listwise", *taught)


def test_a_teacher_that_cannot_teach_is_refused(workplace: Path) -> None:
    refused(["--model.teacher", "checkpoints/none/serving"], r"checkpoints/none/serving")
    refused(["--model.teacher_weight", "1.5"], r"teacher_weight")
    fit("pairs", "--data.chains", "null", "--trainer.max_epochs", "1")
    refused(["--model.teacher", "checkpoints/pairs/serving"], r"at most 2 documents, and this training has chains of 3")
