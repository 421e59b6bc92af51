"""What a resumed run may change, of every trainer, without training: the command line is stopped before it loads."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import train
from common.errors import MissingInputError, UserError
from common.files import digests, sha256
from tests.helpers.every_trainer import PREPARE, Place
from trainers.run.cli import TrainCLI
from trainers.run.resumed_options import input_digests, plain, refuse_changed_files

ALLOWED = {
    "trainer.max_epochs": 9, "trainer.max_steps": 90, "trainer.val_check_interval": 2,
    "trainer.check_val_every_n_epoch": 3, "trainer.log_every_n_steps": 7, "trainer.devices": 1,
    "trainer.strategy": "ddp", "trainer.enable_progress_bar": "true", "trainer.max_time": "00:01:00:00",
    "checkpoint.every_minutes": 1, "early_stopping.patience": 2, "card.license": "mit",
}  # fmt: skip
REFUSED: dict[str, dict[str, Any]] = {  # trainer -> option -> its new value
    "drrag": {"model.max_tokens": 95, "data.sampling.mixed_share": 0.25, "data.train.0.limit": 5},
    "rerag": {"model.loss.kl_weight": 0.5, "model.text.max_answer_tokens": 3, "data.contexts": 3},
    "rewriter": {"model.lora.rank": 5, "model.adapters": "per_strategy", "data.rewrites_per_step": 11},
    "extractive": {"model.stays_weight": 0.3, "data.passages": 2},
}
ALWAYS = {"model.optimizer.learning_rate": 9e-4, "seed_everything": 1, "trainer.accumulate_grad_batches": 2}


class ReachedError(Exception):
    """A start that would load now."""


@pytest.fixture
def place(tmp_path, request, monkeypatch) -> Place:
    """A folder in which every start ends before something is loaded."""
    made = Place(tmp_path, request, monkeypatch)
    made.started = []

    def stop(cli: TrainCLI) -> None:
        made.started.append(cli)
        raise ReachedError

    monkeypatch.setattr(TrainCLI, "instantiate_classes", stop)
    return made


def typed(values: dict[str, Any]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]


def start(extra: Sequence[str] = ()) -> None:
    with pytest.raises(ReachedError):
        train.main(["fit", "--config", "config.yaml", *extra])


def refuse(extra: Sequence[str], *parts: str, error: type[Exception] = UserError) -> str:
    """The one line of a start that is refused and writes nothing; the parts are in it."""
    before = digests(Path())
    with pytest.raises(error) as caught:
        train.main(["fit", "--config", "config.yaml", "--resume", "auto", *extra])
    assert digests(Path()) == before
    line = str(caught.value)
    assert "\n" not in line
    assert all(part in line for part in parts), line
    return line


def begin(place: Place, name: str) -> Path:
    """What a run of a trainer leaves that has made four steps."""
    PREPARE[name](place)
    start()
    (cli,) = place.started
    folder = Path("checkpoints/tiny")
    folder.mkdir(parents=True, exist_ok=True)
    values = plain(cli._parser("fit"), cli.config["fit"])
    (folder / "config.yaml").write_text(yaml.safe_dump(values))
    (folder / "env.json").write_text(json.dumps({"format": 1, "data": {}, "inputs": input_digests(values)}))
    epochs = {"fit_loop": {"epoch_progress": {"current": {"completed": 1}}}}
    torch.save({"global_step": 4, "state_dict": {}, "loops": epochs, "optimizer_states": []}, folder / "last.ckpt")
    return folder


@pytest.mark.parametrize(
    "name", [n if n in ("drrag", "rewriter") else pytest.param(n, marks=pytest.mark.whole_run) for n in REFUSED]
)
def test_a_run_goes_on_with_its_options_and_names_every_one_that_differs(name, place) -> None:
    begin(place, name)
    start(["--resume", "auto", *typed(ALLOWED)])
    changed = REFUSED[name] | ALWAYS
    given = [each for each in typed(changed) if ".0." not in each]
    if name == "drrag":
        entry = yaml.safe_load(Path("config.yaml").read_text())["data"]["init_args"]["train"][0]
        given.append(f"--data.train={json.dumps([{**entry, 'limit': 5}])}")
    line = refuse(given)
    for key, value in changed.items():
        assert re.search(rf"[ ;]{re.escape(key)} is .*{str(value)[:4].strip('[]')}", line), (key, line)
    assert line.count(" and was ") == len(changed)


def test_a_run_of_an_earlier_release_is_told_the_commit_that_resumes_it(place) -> None:
    folder = begin(place, "drrag")
    config, record = folder / "config.yaml", json.loads((folder / "env.json").read_text())
    del record["format"]
    (folder / "env.json").write_text(json.dumps(record))
    refuse([], "9f903089")
    own = ["fit", "--config", str(config), "--resume", "auto"]
    with pytest.raises(SystemExit):  # of another name the run is no earlier one: the option is what is wrong
        train.main([*own, "--name", "new", "--odd", "1"])
    config.write_text(f"{config.read_text()}an_option: that has left\n")
    with pytest.raises(UserError, match="9f903089"):
        train.main(own)


def test_files_are_compared_by_their_content(place) -> None:
    folder = begin(place, "rewriter")
    rows, model = place.folder / "rewrites.jsonl", place.folder / "model"
    entry = {"layout": "rewrites", "path": str(place.folder / "moved.jsonl")}
    shutil.copytree(place.model("t5"), model)
    moved = [f"--data.train={json.dumps([entry])}", f"--model.pretrained={model}"]
    shutil.copy(rows, entry["path"])
    start(["--resume", "auto", *moved])
    (model / "README.md").write_text("about it")  # not read by a program
    start(["--resume", "auto", *moved])
    config = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps({**config, "model_max_length": 9}))
    Path(entry["path"]).write_text(rows.read_text() + "\n")
    refuse(moved, "model.pretrained is ", "; data.train.0.path is ")  # a long path is cut
    rows.write_text(rows.read_text() + "\n")
    refuse([], f"data.train.0.path: {rows} has changed")
    (folder / "env.json").unlink()  # as of a release that recorded no digest: names are compared
    start(["--resume", "auto"])
    refuse(moved, "model.pretrained is")


def test_only_what_a_run_reads_counts_as_its_inputs(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, file in (("data", "big.json"), ("model", "config.json"), ("index", "index.json")):
        Path(folder).mkdir()
        Path(folder, file).write_text("{}")
    texts = {"prefix": "", "word": "data", "long": "x" * 5000, "nul": "\0", "null": None, "number": 3, "id": "no/model"}
    assert input_digests({"model": texts, "data": {"cache": "model"}, "card": {"license": "model"}}) == {}
    data = {"init_args": {"train": [{"path": "data/big.json:dev"}, {"path": "data/big.json"}], "index": "index"}}
    named = input_digests({"model": {"init_args": {"pretrained": "model"}}, "data": data})
    assert named.keys() == {"model", "index", "data/big.json", "data/big.json:dev"}
    assert named["data/big.json"] == named["data/big.json:dev"] == sha256(Path("data/big.json"))
    Path("index/vectors").write_text("what index.json has the digest of")
    Path("model/README.md").write_text("about it")
    assert input_digests({"model": {"a": "model", "b": "index"}}) == {name: named[name] for name in ("model", "index")}
    Path("model/tokenizer.json").write_text("{}")
    assert input_digests({"model": {"a": "model"}}) != {"model": named["model"]}
    Path("env.json").write_text(json.dumps({"data": {"a.source": named["data/big.json"], "hub": "hub"}}))
    refuse_changed_files(Path(), {"b.source": named["data/big.json"], "other": "hub"})
    with pytest.raises(UserError, match=r"b\.target has changed since the run began"):
        refuse_changed_files(Path(), {"b.source": named["data/big.json"], "b.target": "another"})


def test_an_earlier_end_and_a_config_of_another_release_or_without_a_file_are_told_in_one_line(place) -> None:
    folder = begin(place, "extractive")
    refuse(["--trainer.max_steps=3"], "trainer.max_steps is 3", "last.ckpt has made 4 steps")
    start(["--resume", "auto", "--trainer.max_steps=4"])
    config = folder / "config.yaml"
    values = yaml.safe_load(config.read_text())
    del values["model"]["init_args"]["gradient_checkpointing"]  # new since the run's release: it has its default
    config.write_text(yaml.safe_dump(values))
    start(["--resume", "auto"])
    refuse(["--model.gradient_checkpointing", "true"], "model.gradient_checkpointing is true and was false")
    values["model"]["init_args"]["learning_rate"] = 1e-3
    config.write_text(yaml.safe_dump(values))
    refuse([], "checkpoints/tiny/config.yaml", "learning_rate")
    config.unlink()
    refuse([], "checkpoints/tiny/config.yaml", error=MissingInputError)


def test_a_run_is_not_another_trainer_s(place) -> None:
    begin(place, "extractive")
    Path("config.yaml").unlink()
    PREPARE["rewriter"](place)
    model = 'model is "trainers.dmqr.RewriterTrainer" and was "trainers.dmqr_extractive.ExtractiveTrainer"'
    refuse([], model, 'data is "datamodules.dmqr.RewriteData"')
