"""RE-RAG's training by the real command line: learning, resume, DDP, accumulation, single parts, export."""

import json
from pathlib import Path

import pytest
import torch

from common.records import Passage
from models.rerag.model import ReRagModel
from tests.helpers.rerag_data import fid_rows
from tests.helpers.runs import done, fit, fit_here, metrics, weights

CONFIG = """
name: tiny
seed_everything: 0
model:
  class_path: trainers.rerag.ReRagTrainer
  init_args:
    estimator: {model}
    generator: {model}
    max_tokens: 48
    text: {{max_answer_tokens: 4}}
    dropout: {dropout}
    optimizer: {{learning_rate: 3.0e-3}}
data:
  class_path: datamodules.rerag.ReRagData
  init_args:
    train: [{{layout: fid, path: {data}}}]
    validation_fraction: 0.3
    contexts: 4
    pick: sampled
    labels: gold
    questions_per_step: 8
    tokens_per_bucket: 300
trainer:
  accelerator: cpu
  max_epochs: 2
  enable_progress_bar: false
  enable_model_summary: false
  log_every_n_steps: 1
checkpoint: {{monitor: val/em}}
"""


@pytest.fixture
def workplace(tmp_path: Path, checkpoints: dict[str, Path]) -> Path:
    """A folder to run in, with config.yaml for a tiny joint run."""
    write_config(tmp_path, checkpoints["t5"])
    return tmp_path


def write_config(folder: Path, model: Path, dropout: float = 0.1) -> None:
    rows = fid_rows(40)
    for row in rows[::4]:  # without a relevant context, for the refusal threshold
        row["ctxs"] = [context for context in row["ctxs"] if not context["isgold"]]
    (folder / "fid.json").write_text(json.dumps(rows))
    (folder / "config.yaml").write_text(CONFIG.format(model=model, data=folder / "fid.json", dropout=dropout))


def test_a_run_learns_to_read_to_rank_and_exports(workplace: Path) -> None:
    out = done(fit(workplace, "--trainer.max_epochs", "40", "--model.dropout", "0", "--model.loss.label_weight", "1",
                   "--early_stopping.patience", "40", "--trainer.check_val_every_n_epoch", "5"))  # fmt: skip
    assert "\nrelevant contexts " in out
    best = {key: max(row[key] for row in metrics(workplace) if key in row) for key in ("val/em", "val/recall_1")}
    assert best["val/recall_1"] > 60  # chance is below 30
    folder = workplace / "checkpoints/tiny/serving"
    manifest = json.loads((folder / "serving.json").read_text())
    assert manifest["calibration"]["scale"] > 0
    assert manifest["refusal_threshold"] in (0.5, 0.6, 0.7, 0.8, 0.9)
    assert (manifest["refusal_contexts"], manifest["refusal_cost"]) == (25, None)
    served = ReRagModel.load(folder, "cpu")
    state = weights(workplace, "tiny", "best.ckpt")
    for name, value in served.estimator.state_dict().items():
        torch.testing.assert_close(value, state[f"estimator.{name}"], rtol=0, atol=0)
    gold = Passage.of("name1", "the director of name1 is name2 .")
    noise = Passage.of("name3", "name3 was born in the city of name4 .")
    question = "who is the director of name1"
    assert served.estimator.scores([(question, gold)]) > served.estimator.scores([(question, noise)])


def test_a_packed_reader_trains_alone(workplace: Path) -> None:
    fit_here(workplace, "--model.estimator", "null", "--model.text.format", "packed", "--model.max_tokens", "128",
             "--trainer.max_epochs", "1")  # fmt: skip
    served = ReRagModel.load(workplace / "checkpoints/tiny/serving", "cpu")
    assert served.estimator is None
    assert served.generator.encode.format == "packed"
    assert served.relevance_temperature == 1  # there is nothing to weigh


@pytest.mark.parametrize("form", ["listwise", "vocabulary"])
def test_an_estimator_trains_alone_on_labels(workplace: Path, form: str) -> None:
    fit_here(workplace, "--model.generator", "null", "--model.loss.label_weight", "1", "--model.loss.label_form", form,
             "--checkpoint.monitor", "val/recall_1", "--trainer.max_epochs", "1")  # fmt: skip
    assert ReRagModel.load(workplace / "checkpoints/tiny/serving", "cpu").generator is None
