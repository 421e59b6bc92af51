"""RE-RAG's training by the real command line: learning, resume, DDP, accumulation, single parts, export."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

import train
from common.errors import UserError, exit_code
from common.records import Passage
from models.rerag.model import ReRagModel
from tests.helpers.recorder import HARDLY, RECORDED, assert_same_steps
from tests.helpers.rerag_data import fid_rows
from tests.helpers.runs import assert_repeated, assert_same_logs, done, fit, fit_here, metrics, weights
from tests.helpers.tolerances import model_close

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


@pytest.mark.numeric
@pytest.mark.whole_run
def test_resume_in_the_middle_of_an_epoch_is_exact(workplace: Path) -> None:
    fit_here(workplace, "--name", "whole")
    fit_here(workplace, "--name", "cut", "--checkpoint.every_n_train_steps", "1", "--checkpoint.save_top_k=-1",
             "--checkpoint.filename", "{step}", "--checkpoint.monitor", "train/loss")  # fmt: skip
    kept = workplace / "kept.ckpt"
    shutil.copy(workplace / "checkpoints/cut/step=2.ckpt", kept)
    done(fit(workplace, "--name", "resumed", "--ckpt_path", str(kept)))
    assert_repeated(weights(workplace, "resumed"), weights(workplace, "whole"))


@pytest.mark.numeric
@pytest.mark.whole_run
def test_two_processes_and_accumulation_train_as_one(tmp_path: Path, checkpoints: dict[str, Path]) -> None:
    write_config(tmp_path, checkpoints["t5"], dropout=0.0)
    options = (*RECORDED, "--model.optimizer.learning_rate", HARDLY, "--model.optimizer.schedule", "linear",
               "--model.optimizer.warmup_steps", "2",
               "--model.loss.label_weight", "0.5")  # fmt: skip
    fit_here(tmp_path, "--name", "one", *options)
    done(fit(tmp_path, "--name", "two", *options, torchrun=2))
    fit_here(tmp_path, "--name", "accumulated", *options, "--trainer.accumulate_grad_batches", "3")
    for name in ("two", "accumulated"):
        assert_same_logs(metrics(tmp_path, name), metrics(tmp_path, "one"))
        assert_same_steps(tmp_path / "checkpoints" / name, tmp_path / "checkpoints/one", rows=8 * 4)
        for key in ("val/questions", "val/em", "val/gen_nats", "val/recall_1"):  # each question once
            ours, theirs = ([row[key] for row in metrics(tmp_path, run) if key in row] for run in (name, "one"))
            assert ours == model_close(theirs), (name, key)


def test_frozen_embeddings_stay_and_all_else_learns(workplace: Path, checkpoints: dict[str, Path]) -> None:
    fit_here(workplace, "--model.freeze_embeddings", "true", "--trainer.max_epochs", "1")
    start, after = AutoModelForSeq2SeqLM.from_pretrained(checkpoints["t5"]).state_dict(), weights(workplace, "tiny")
    embeddings = {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}
    for part in ("estimator", "generator"):
        same = {name for name, value in start.items() if torch.equal(after[f"{part}.network.{name}"], value)}
        assert same == embeddings, part  # T5's output layer is its embedding


def test_word_swaps_without_words_to_swap_are_refused(workplace: Path, checkpoints: dict[str, Path]) -> None:
    with pytest.raises(UserError, match=r"set data\.word_swaps to 0"):
        fit_here(workplace, "--model.generator", "null", "--model.loss.label_weight", "1", "--data.word_swaps", "0.5",
                 "--model.estimator", str(checkpoints["bert"]))  # fmt: skip


def test_the_estimator_learns_at_its_own_rate(workplace: Path, checkpoints: dict[str, Path]) -> None:
    fit_here(workplace, "--model.optimizer.estimator_learning_rate", "0", "--trainer.max_epochs", "1")
    start, after = AutoModelForSeq2SeqLM.from_pretrained(checkpoints["t5"]).state_dict(), weights(workplace, "tiny")
    moved = {
        part: any(not torch.equal(after[f"{part}.network.{name}"], value) for name, value in start.items())
        for part in ("estimator", "generator")
    }
    assert moved == {"estimator": False, "generator": True}


def test_a_packed_reader_trains_alone(workplace: Path) -> None:
    fit_here(workplace, "--model.estimator", "null", "--model.text.format", "packed", "--model.max_tokens", "128",
             "--trainer.max_epochs", "1")  # fmt: skip
    served = ReRagModel.load(workplace / "checkpoints/tiny/serving", "cpu")
    assert served.estimator is None
    assert served.generator.encode.format == "packed"
    assert served.relevance_temperature == 1  # there is nothing to weigh


def test_a_run_without_a_validation_says_why_nothing_is_served(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit_here(workplace, "--trainer.max_steps", "1")
    assert not (workplace / "checkpoints/tiny/serving").exists()
    assert "serving: not written, because no validation has chosen a checkpoint" in capsys.readouterr().out


def test_a_validation_of_one_kind_exports_no_refusal_threshold(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (workplace / "fid.json").write_text(json.dumps(fid_rows(40)))  # every question has a relevant context
    fit_here(
        workplace, "--model.generator", "null", "--model.loss.label_weight", "1", "--checkpoint.monitor", "val/recall_1"
    )
    line = (
        "refusal threshold: not fitted, because every validation question has a relevant context among its best 25: "
        "name files with both kinds in data.validation.\n"
    )
    assert capsys.readouterr().out.count(line) == 1  # of two validations
    folder = workplace / "checkpoints/tiny/serving"
    manifest = json.loads((folder / "serving.json").read_text())
    assert (manifest["refusal_threshold"], manifest["refusal_contexts"]) == (None, None)
    assert manifest["calibration"] != {"scale": 1.0, "offset": 0.0}
    assert "No refusal threshold: validation had questions of one kind only." in (folder / "README.md").read_text()


@pytest.mark.parametrize("form", ["listwise", "vocabulary"])
def test_an_estimator_trains_alone_on_labels(workplace: Path, form: str) -> None:
    fit_here(workplace, "--model.generator", "null", "--model.loss.label_weight", "1", "--model.loss.label_form", form,
             "--checkpoint.monitor", "val/recall_1", "--trainer.max_epochs", "1")  # fmt: skip
    assert ReRagModel.load(workplace / "checkpoints/tiny/serving", "cpu").generator is None


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--model.text.format", "packed"], "set estimator null"),
        (["--model.estimator", "null", "--model.generator", "null"], "name at least one"),
        (["--model.generator", "null"], "label_weight"),
        (["--model.generator", "null", "--model.loss.label_weight", "1"], "type --checkpoint.monitor val/recall_1"),
        (["--model.estimator", "null", "--checkpoint.monitor", "val/mrr"], "type --checkpoint.monitor val/em"),
        (["--data.pick", "best"], "pick"),
        (["--data.crop_growth_words", "3"], "needs crop_words"),
    ],
)
def test_a_mistake_is_one_line(
    workplace: Path, extra: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workplace)
    try:
        code = exit_code("train.py", lambda: train.main(["fit", "--config", "config.yaml", *extra]))
    except SystemExit as stop:
        code = int(stop.code or 0)
    error = capsys.readouterr().err
    assert code == 2, error[-2000:]
    assert message in next(line for line in error.splitlines() if line.startswith("train.py: "))
