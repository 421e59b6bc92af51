"""Loggers of train.py that cannot work as asked.

W&B without a key or a server, missing packages, refused and stopped runs.
"""

import json
import os
import re
import socket
import time
from collections.abc import Iterator
from csv import DictReader
from pathlib import Path

import pytest
import wandb
import yaml
from wandb.sdk.lib import wbauth

from tests.conftest import hotpot_rows
from tests.helpers.commands import Ended, command
from tests.helpers.fake_server import answer, web_server
from tests.helpers.runs import metrics
from tests.helpers.signal_at import signal_at
from tests.helpers.wandb_files import described, logged_rows
from tests.trainers.test_drrag import write_config
from trainers.run.loggers import WORDS

WANDB = ("--trainer.logger", "wandb")
KEY = "0123456789abcdef0123456789abcdef01234567"  # in the form of a key; W&B checks the form


@pytest.fixture
def workplace(tmp_path, checkpoints, monkeypatch) -> Iterator[Path]:
    """A folder to run in, with a tiny config, and W&B without mode, key, or the user's own files."""
    (tmp_path / "hotpot.json").write_text(json.dumps(hotpot_rows(40)))
    write_config(tmp_path, checkpoints["bert"], tmp_path / "hotpot.json")
    for name in [name for name in os.environ if name.startswith("WANDB_")] + ["NETRC"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WANDB_HTTP_TIMEOUT", "2")  # seconds that W&B waits for an answer, 10 by default
    (tmp_path / "home").mkdir()
    wandb.teardown()  # it reads the environment once
    yield tmp_path
    wandb.teardown()


def fit(folder: Path, *extra: str, code: int = 0, config: str = "config.yaml") -> Ended:
    """A run of the config as a shell would see it, which ends with the code."""
    ended = command(folder, "train.py", "fit", "--config", config, *extra)
    assert ended.code == code, ended.err[-2000:]
    return ended


def sent(*files: Path) -> list[int]:
    """The steps of the lines that W&B's files hold."""
    wandb.teardown()  # as at the end of a process: wandb's own process has written everything
    return [row["trainer/global_step"] for file in files for row in logged_rows(file)]


@pytest.fixture
def server(request, workplace, monkeypatch) -> Iterator[str]:
    """The address of a W&B server that is down, accepts connections and never answers, or refuses every key."""
    with socket.socket() as listener, web_server(dict.fromkeys(("/", "/graphql"), answer(b"", 401))) as refusing:
        url = refusing.url
        if request.param != "refusing":
            listener.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        if request.param == "silent":
            listener.listen(100)
        monkeypatch.setenv("WANDB_BASE_URL", url)
        yield url


@pytest.mark.parametrize(
    ("server", "place"),
    [("closed", "netrc"), ("silent", "environment"), ("refusing", "environment")],
    indirect=["server"],
)
def test_a_run_whose_wandb_server_does_not_answer_goes_on_offline(place, workplace, server, monkeypatch) -> None:
    if place == "environment":
        monkeypatch.setenv("WANDB_API_KEY", KEY)
    else:
        monkeypatch.setenv("NETRC", str(workplace / "keys"))
        wbauth.write_netrc_auth(host=server, api_key=KEY)  # as `wandb login` saves it
    began = time.monotonic()
    ended = fit(workplace, *WANDB, "--trainer.max_steps", "3", "--trainer.limit_val_batches", "0")
    assert time.monotonic() - began < 30
    (line,) = [line for line in ended.err.splitlines() if line.startswith("W&B offline")]
    assert server in line  # so the key was found
    assert "later `wandb sync checkpoints/tiny/wandb/offline-run-*`" in line
    assert len(list((workplace / "checkpoints/tiny/wandb").glob("offline-run-*"))) == 1
    assert [row["step"] for row in metrics(workplace) if "train/loss_nats" in row] == [0, 1, 2]


def test_a_run_without_a_key_goes_on_offline_and_is_resumed_with_its_id_and_the_classes_of_its_words(workplace) -> None:
    config = yaml.safe_load((workplace / "config.yaml").read_text())
    config["trainer"] |= {"logger": ["wandb", "csv"], "max_epochs": 1}
    (workplace / "config.yaml").write_text(yaml.safe_dump(config))
    run, again = workplace / "checkpoints/tiny", ("--resume", "auto", "--trainer.max_epochs", "2")
    for options, file in ((), "config.yaml"), (again, "checkpoints/tiny/config.yaml"):
        assert fit(workplace, *options, config=file).err.count("W&B offline (no key set)") == 1
        wandb.teardown()
        time.sleep(0.5)  # W&B names the folder of a run after the second it started in
    saved = yaml.safe_load((run / "config.yaml").read_text())["trainer"]["logger"]
    assert [each["class_path"] for each in saved] == [WORDS["wandb"], WORDS["csv"]]
    assert saved[0]["init_args"]["project"] == "lightning-rag"
    name, steps = (run / "wandb_run_id").read_text(), [row["step"] for row in metrics(workplace)]
    folders = sorted((run / "wandb").glob("offline-run-*"))
    assert [folder.name.rpartition("-")[2] for folder in folders] == [name, name]
    assert sent(*(folder / f"run-{name}.wandb" for folder in folders)) == steps
    tables = [*workplace.rglob("metrics.csv")]
    assert all(file.is_relative_to(run) for file in tables)
    assert {int(row["step"]) for file in tables for row in DictReader(file.open())} == {*steps}


@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 75), ("SIGINT", 130)])
def test_a_run_that_is_stopped_leaves_every_step_in_wandb(number, code, workplace) -> None:
    fit(workplace, *WANDB, *signal_at(hook="on_train_batch_start", step=2, name=number), code=code)
    assert wandb.run is None  # finished
    found = sent(*(workplace / "checkpoints/tiny/wandb").glob("offline-run-*/*.wandb"))
    assert found == [row["step"] for row in metrics(workplace)]
    assert set(found) == {0, 1, 2}


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        (("--data.train", "[{layout: hotpotqa, path: nowhere.json}]"), 66),
        (("--data.train", "[{layout: fid, path: hotpot.json}]"), 65),
        (("--checkpoint.monitor", "val/other_auc"), 2),  # a control, which chooses no checkpoint
    ],
)
def test_a_refused_run_leaves_no_logs(extra, code, workplace) -> None:
    fit(workplace, "--trainer.logger", "[wandb, csv]", *extra, code=code)
    left = {path.name for path in (workplace / "checkpoints").rglob("*")}
    assert not left & {"wandb", "wandb_run_id", "lightning_logs", "metrics.jsonl"}, left
    assert not (workplace / "wandb").exists()


def test_a_trial_of_a_sweep_has_a_folder_and_the_id_that_the_agent_gave(workplace, monkeypatch) -> None:
    monkeypatch.setenv("WANDB_SWEEP_ID", "sweep1")
    monkeypatch.setenv("WANDB_RUN_ID", "trial1")
    fit(workplace, *WANDB, "--trainer.max_epochs", "1", "--model.init_args.optimizer.learning_rate=1e-05")
    wandb.teardown()
    trial = workplace / "checkpoints/tiny/trial1"
    rate = yaml.safe_load((trial / "config.yaml").read_text())["model"]["init_args"]["optimizer"]["learning_rate"]
    assert rate == 1e-05
    (file,) = trial.glob("wandb/offline-run-*/run-trial1.wandb")
    assert any("val/auc" in row for row in logged_rows(file))  # what a sweep improves
    summaries, artifacts = described(file)
    assert summaries["val/auc"] == "max,last"  # what the table of runs shows
    assert artifacts >= {"dataset", "model"}


def test_tensorboard_logs_into_the_folder_of_the_run_and_a_validation_of_its_own_as_no_step_of_it(workplace) -> None:
    pytest.importorskip("tensorboard")
    fit(workplace, "--trainer.logger", "tensorboard", "--trainer.max_steps", "2")
    (file,) = workplace.rglob("events.out.tfevents.*")
    assert file.is_relative_to(workplace / "checkpoints/tiny")
    assert b"train/learning_rate" in file.read_bytes()
    before, last = metrics(workplace), ("--ckpt_path", "checkpoints/tiny/last.ckpt")
    ended = command(workplace, "train.py", "validate", "--config", "config.yaml", *WANDB, *last)
    assert ended.code == 0, ended.err[-2000:]
    assert "val/auc" in ended.out  # Lightning's table
    assert metrics(workplace) == before
    assert not (workplace / "checkpoints/tiny/wandb").exists()


def test_validate_with_a_runs_own_config_measures_its_best_checkpoint(workplace) -> None:
    fit(workplace, "--trainer.max_epochs", "1")
    (measured,) = {row["val/auc"] for row in metrics(workplace) if "val/auc" in row}
    own = ("train.py", "validate", "--config", "checkpoints/tiny/config.yaml")
    ended = command(workplace, *own)
    assert ended.code == 0, ended.err[-2000:]
    assert "validating checkpoints/tiny/best.ckpt" in ended.out
    (printed,) = re.findall(r"val/auc +([0-9.]+)", ended.out)
    assert float(printed) == pytest.approx(measured, abs=1e-4)  # a new random head has another one
    (workplace / "checkpoints/tiny/best.ckpt").unlink()
    refused = command(workplace, *own)
    assert refused.code == 66
    assert "best.ckpt does not exist" in refused.err
