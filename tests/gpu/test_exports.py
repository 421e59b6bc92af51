"""An epoch in bf16 and the export of every trainer: whole, with LoRA, and from each family of models.

What they learn is tested elsewhere, `tests/trainers/test_bf16.py` also compares three of them with fp32.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.helpers import choice_runs, dpo_runs, rewrite_runs
from tests.helpers.devices import cpu_and_gpu, training_options
from tests.helpers.runs import fit_here, metrics
from tests.trainers import test_dmqr_words, test_drrag, test_rerag_training, test_t5

Options = list[str]
LORA = ["--model.lora.rank", "4"]


class Place:
    """Where a trainer's tiny run is prepared, with what the preparations need."""

    def __init__(self, folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch, self.made = folder, monkeypatch, request.getfixturevalue

    def model(self, family: str) -> Path:
        return self.made("checkpoints")[family]


def drrag(place: Place) -> Options:
    test_drrag.write_config(place.folder, place.model("big_bird"), place.made("hotpot_file"))
    return []


def rerag(place: Place) -> Options:
    test_rerag_training.write_config(place.folder, place.model("t5"))
    return []


def encoder_estimator(place: Place) -> Options:
    return [*rerag(place), "--model.estimator", str(place.model("bert"))]


def rewriter(model: str | Path) -> Callable[[Place], Options]:
    def prepare(place: Place) -> Options:
        rewrite_runs.prepare(place.folder, model if isinstance(model, Path) else place.model(model), place.monkeypatch)
        return []

    return prepare


def causal_rewriter(place: Place) -> Options:
    rewriter(place.made("chat_lm"))(place)
    return ["--model.dropout", "null", "--model.max_tokens", "64", "--model.optimizer.warmup_steps", "0"]


def words(place: Place) -> Options:
    test_dmqr_words.write(place.folder / "labels.jsonl", test_dmqr_words.labels(60))
    config = test_dmqr_words.CONFIG.format(model=place.model("bert"), data=place.folder / "labels.jsonl")
    (place.folder / "config.yaml").write_text(config + rewrite_runs.TRAINER)
    return []


def choice(place: Place) -> Options:
    choice_runs.prepare(place.folder, place.model("bert"), place.monkeypatch)
    return []


def dpo(place: Place) -> Options:
    dpo_runs.prepare(place.folder, place.made("rewrite_toy"), place.monkeypatch)
    return []


def t5(place: Place) -> Options:
    test_t5.write_corpus(place.folder / "corpus.jsonl")
    test_t5.write_config(place.folder, place.model("t5"))
    return []


TRAINERS: dict[str, tuple[Callable[[Place], Options], Options]] = {
    "drrag": (drrag, []),
    "drrag-lora": (drrag, LORA),
    "rerag": (rerag, []),
    "rerag-encoder": (encoder_estimator, []),
    "rewriter-t5": (rewriter("t5"), []),
    "rewriter-causal": (causal_rewriter, []),
    "words": (words, []),
    "choice": (choice, []),
    "dpo": (dpo, []),
    "t5": (t5, []),
}


@cpu_and_gpu("bf16 training and export of every trainer", pytest.mark.whole_run)
@pytest.mark.parametrize("name", TRAINERS)
def test_it_trains_in_bf16_and_exports(
    name: str,
    device: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prepare, options = TRAINERS[name]
    options = [*prepare(Place(tmp_path, request, monkeypatch)), *options, *training_options(device)]
    fit_here(tmp_path, "--trainer.precision", "bf16-mixed", "--trainer.max_epochs", "1", *options)
    (said,) = [line for line in capsys.readouterr().out.splitlines() if "largest difference to the module" in line]
    assert float(said.rsplit("module", 1)[1].split()[0].strip(" :,")) < 1e-4, said
    folder = tmp_path / "checkpoints/tiny"
    losses = [row[key] for row in metrics(tmp_path) for key in row if key.startswith("train/loss")]
    assert len(losses) > 1
    assert all(map(math.isfinite, losses))
    assert yaml.safe_load((folder / "config.yaml").read_text())["trainer"]["precision"] == "bf16-mixed"
    assert json.loads((folder / "serving/serving.json").read_text())["sha256"]
