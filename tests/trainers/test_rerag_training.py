"""RE-RAG's training by the real command line: learning, resume, DDP, accumulation, single parts, export."""

import json
from pathlib import Path

import pytest

from common.records import Passage
from models.rerag.model import ReRagModel
from tests.helpers import tiny_runs
from tests.helpers.mt5 import save_mt5
from tests.helpers.rerag_data import fid_rows
from tests.helpers.runs import fit_here, metrics

TRAINER = "rerag"


def refusable_rows(count: int) -> list[dict]:
    """Questions of which every fourth has no relevant context, for the refusal threshold."""
    rows = fid_rows(count)
    for row in rows[::4]:
        row["ctxs"] = [context for context in row["ctxs"] if not context["isgold"]]
    return rows


def write_config(
    folder: Path, model: Path, dropout: float | None = 0.1, rows: list[dict] | None = None, **text: str
) -> None:
    """Data and the configuration of a tiny joint run; `text` are further options of the texts."""
    rows = rows or refusable_rows(40)
    (folder / "fid.json").write_text(json.dumps(rows))
    options = {
        "estimator": str(model), "generator": str(model), "max_tokens": 48, "text": {"max_answer_tokens": 4, **text},
        "dropout": dropout, "optimizer": {"learning_rate": 3e-3},
    }  # fmt: skip
    data = {
        "train": [{"layout": "fid", "path": str(folder / "fid.json")}], "validation_fraction": 0.3, "contexts": 4,
        "context_sampling": "sampled", "labels": "gold", "questions_per_step": 8, "tokens_per_bucket": 300,
    }  # fmt: skip
    tiny_runs.write_config(folder, "rerag.ReRagTrainer", options, "rerag.ReRagData", data, "val/em")


def test_a_run_learns_to_rank_and_exports(workplace, capsys) -> None:
    fit_here(workplace, "--trainer.max_epochs", "20", "--model.dropout", "0", "--model.loss.label_weight", "1",
             "--trainer.check_val_every_n_epoch", "10")  # fmt: skip
    assert "\nrelevant contexts " in capsys.readouterr().out
    assert max(row["val/recall_1"] for row in metrics(workplace) if "val/recall_1" in row) > 0.6  # chance is below 0.3
    folder = workplace / "checkpoints/tiny/serving"
    manifest = json.loads((folder / "serving.json").read_text())
    assert manifest["calibration"]["scale"] > 0
    assert manifest["refusal_threshold"] in (0.5, 0.6, 0.7, 0.8, 0.9)
    assert (manifest["refusal_contexts"], manifest["refusal_cost"]) == (25, None)
    served = ReRagModel.load(folder, "cpu")
    gold = Passage.of("name1", "the director of name1 is name2 .")
    noise = Passage.of("name3", "name3 was born in the city of name4 .")
    question = "who is the director of name1"
    assert served.estimator.scores([(question, gold)]) > served.estimator.scores([(question, noise)])


def test_a_packed_reader_trains_alone(workplace) -> None:
    fit_here(workplace, "--model.estimator", "null", "--model.text.format", "packed", "--model.max_tokens", "128",
             "--trainer.max_epochs", "1")  # fmt: skip
    served = ReRagModel.load(workplace / "checkpoints/tiny/serving", "cpu")
    assert served.estimator is None
    assert served.generator.encode.format == "packed"
    assert served.relevance_temperature == 1  # there is nothing to weigh


@pytest.mark.parametrize("form", ["listwise", "vocabulary"])
def test_an_estimator_trains_alone_on_labels(workplace, form) -> None:
    fit_here(workplace, "--model.generator", "null", "--model.loss.label_weight", "1", "--model.loss.label_form", form,
             "--checkpoint.monitor", "val/recall_1", "--trainer.max_epochs", "1")  # fmt: skip
    assert ReRagModel.load(workplace / "checkpoints/tiny/serving", "cpu").generator is None


def test_an_mt5_with_words_of_its_own_trains_as_estimator_and_generator_and_is_served(tmp_path) -> None:
    """The end of `fit` compares the export's scores with the trained module's."""
    write_config(tmp_path, save_mt5(tmp_path / "mt5"), true_word="yes", false_word="no")
    fit_here(tmp_path, "--trainer.max_epochs", "1", "--model.loss.label_weight", "1")
    serving = tmp_path / "checkpoints/tiny/serving"
    part = json.loads((serving / "serving.json").read_text())["parts"]["estimator"]
    assert part["label_words"] == {"true": "yes", "false": "no"}
    assert 'logit("yes") - logit("no")' in (serving / "README.md").read_text()
    served = ReRagModel.load(serving, "cpu")
    assert served.estimator.label_words == ("yes", "no")
    for part in (served.estimator, served.generator):
        assert part.network.config.model_type == "mt5"
        assert not part.network.lm_head.weight.equal(part.network.shared.weight)
