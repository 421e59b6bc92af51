"""The sweep's file has W&B's form, and train.py takes the command of a trial as W&B's agent writes it."""

from typing import Any

import pytest
import yaml
from wandb.sdk.launch.sweeps import utils

from tests.docs.documents import ROOT, SWEEPS, parser_of, trial_of

KEYS = {  # of https://docs.wandb.ai/models/sweeps/sweep-config-keys
    *("program", "entity", "project", "description", "name", "method", "metric", "parameters"),
    *("early_terminate", "command", "run_cap"),
}


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("file", SWEEPS, ids=lambda file: file.stem)
def test_a_sweep_has_the_form_that_wandb_documents(file: Any) -> None:
    sweep = utils.load_sweep_config(str(file))
    assert {"program", "method", "metric", "parameters"} <= set(sweep) <= KEYS
    assert sweep["method"] == "bayes"
    assert sweep["metric"].keys() == {"name", "goal"}
    assert isinstance(sweep["run_cap"], int)  # without it a sweep by bayes does not end
    assert (ROOT / sweep["program"]).is_file()
    for bounds in sweep["parameters"].values():
        assert bounds.keys() == {"distribution", "min", "max"}
        assert bounds["distribution"] == "log_uniform_values"
        assert 0 < bounds["min"] < bounds["max"]  # numbers: YAML reads 1e-5 as a text


@pytest.mark.parametrize("rate", [0.0001, 1e-05, 3.1622776601683795e-05])
def test_train_takes_what_an_agent_gives_and_monitors_what_the_sweep_improves(rate: float) -> None:
    (file,) = SWEEPS
    sweep = yaml.safe_load(file.read_text())
    fit = parser_of("train").parse_args(trial_of(file, rate)).fit
    assert fit.model.init_args.optimizer.learning_rate == rate
    assert fit.trainer.logger.class_path == "trainers.run.loggers.RunWandbLogger"
    assert fit.checkpoint.monitor == sweep["metric"]["name"]
    assert {"max": "maximize", "min": "minimize"}[fit.checkpoint.mode] == sweep["metric"]["goal"]
