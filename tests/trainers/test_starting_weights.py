"""What a trainer starts from: the serving folder, its part or a checkpoint of another run; all else begins anew."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from jsonargparse import Namespace
from pytorch_lightning.cli import instantiate_module
from torch import Tensor

from common.errors import ArtifactError, MissingInputError, UserError
from common.files import digests
from models.serving_manifest import write_manifest
from tests.helpers.every_trainer import PREPARE
from tests.helpers.tiny_runs import checkpoint_of, fit, served
from trainers.dmqr import RewriterTrainer
from trainers.dmqr_extractive import ExtractiveTrainer
from trainers.drrag import DrRagTrainer
from trainers.rerag import ReRagTrainer
from trainers.run.durable_checkpoints import DurableCheckpointIO
from trainers.run.module import RunModule

TRAINERS: dict[str, tuple[type[RunModule], tuple[str, ...]]] = {  # class, parts of its serving folder
    "drrag": (DrRagTrainer, ("classifier",)),
    "rerag": (ReRagTrainer, ("estimator", "generator")),
    "extractive": (ExtractiveTrainer, ("selector",)),
    "rewriter": (RewriterTrainer, ("rewriter",)),
}
SHORT = ("--trainer.max_steps", "4", "--trainer.val_check_interval", "2", "--trainer.limit_val_batches", "1.0")
FAST = ("extractive",)


def started(name: str, run: Path, source: str, **changed: Any) -> RunModule:
    """A trainer with the options of a run, which starts from something of that run."""
    given = checkpoint_of(run)["hyper_parameters"]
    options = {key: value for key, value in given.items() if not key.startswith("_")}
    trainer, parts = TRAINERS[name]
    for option in trainer.starts:
        options[option] = str(run / source.format(part=option if name == "rerag" else parts[0]))
    return instantiate_module(trainer, Namespace({**options, **changed})).load()


def exported(module: RunModule, folder: Path) -> dict[str, Tensor]:
    """The weights that a trainer would export, by part and name."""
    if isinstance(module, ReRagTrainer):
        module.model().save(folder)
    elif isinstance(module, RewriterTrainer):
        module.rewriter.save(folder, [], {})
    else:
        getattr(module, module.starts["pretrained"].part).save(folder)
    return served(folder)


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.whole_run) for name in TRAINERS]
)
def test_a_trainer_starts_from_all_that_a_run_leaves_with_its_weights(name, place, tmp_path) -> None:
    PREPARE[name](place)
    run = fit("first", *SHORT)
    before, best = digests(run), served(run / "serving")
    for number, source in enumerate(("serving", "serving/{part}", "best.ckpt")):
        module = started(name, run, source)
        ours = exported(module, tmp_path / f"export-{number}")
        assert ours.keys() == best.keys()
        for weight, value in ours.items():
            torch.testing.assert_close(value, best[weight], rtol=0, atol=0, msg=f"{source}: {weight}")
        if isinstance(module, DrRagTrainer):
            assert not module.classifier.new_head  # nothing is centered
        if source == "best.ckpt":  # with its adapter, and not merged
            state = checkpoint_of(run)["state_dict"]
            assert module.state_dict().keys() == state.keys()
            assert all(torch.equal(value, state[key]) for key, value in module.state_dict().items())
    options = [f"--model.{option}={run / 'best.ckpt'}" for option in TRAINERS[name][0].starts]
    second = fit("second", *options, *SHORT)  # whose export is compared with what it trained
    made = checkpoint_of(second, "last.ckpt")
    assert {int(state["step"]) for state in made["optimizer_states"][0]["state"].values()} == {4}
    assert (made["global_step"], made["lr_schedulers"][0]["last_epoch"]) == (4, 4)
    assert "first/best.ckpt" in (second / "serving/README.md").read_text()
    assert "base_model" not in (second / "serving/README.md").read_text()
    fit("second", *options, *SHORT, "--trainer.max_steps", "5", "--resume", "auto")
    assert checkpoint_of(second, "last.ckpt")["global_step"] == 5
    assert digests(run) == before


@pytest.mark.whole_run
def test_what_is_not_the_trainer_s_is_refused_in_one_line(place) -> None:
    PREPARE["rewriter"](place)
    own = fit("own", *SHORT, "--model.adapters", "per_strategy")
    rewriter = fit("rewriter", *SHORT)
    PREPARE["extractive"](place)
    words = fit("words", *SHORT)
    (place.folder / "notes.txt").write_text("no model")
    cut = Path(shutil.copytree(rewriter, place.folder / "cut"))
    (cut / "serving/rewriter/config.json").write_text("{}")
    (cut / "best.ckpt").write_bytes((cut / "best.ckpt").read_bytes()[:-9])
    other = Path(shutil.copytree(words / "serving/selector", place.folder / "other"))
    named = {"id2label": {"0": "name", "1": "place"}, "label2id": {"name": 0, "place": 1}}
    (other / "config.json").write_text(json.dumps(json.loads((other / "config.json").read_text()) | named))
    older = Path(shutil.copytree(rewriter, place.folder / "older"))
    saved = checkpoint_of(older)
    saved["hyper_parameters"]["lower_case"] = True  # of an earlier release
    DurableCheckpointIO().save_checkpoint(saved, older / "best.ckpt")
    lora = {"lora": {"rank": None, "alpha": 32, "dropout": 0.0, "targets": None}}
    cases: list[tuple[str, dict[str, Any], type[Exception], str]] = [
        ("rewriter", {"pretrained": f"{words}/serving"}, ArtifactError, "holds a 'dmqr_.*'; allowed: dmqr_rewriter"),
        ("rewriter", {"pretrained": f"{words}/best.ckpt"}, ArtifactError, "holds selector, not rewriter"),
        ("rewriter", {"pretrained": f"{rewriter}"}, UserError, f"is the folder of a run: give {rewriter}/serving"),
        ("rewriter", {"pretrained": "notes.txt"}, UserError, "is a file: give a folder"),
        ("rewriter", {"pretrained": f"{rewriter}/none.ckpt"}, MissingInputError, "checkpoints in that folder: .*best"),
        ("rewriter", {"pretrained": "cut/serving"}, ArtifactError, "config.json is corrupt"),
        ("rewriter", {"pretrained": "cut/best.ckpt"}, ArtifactError, "best.ckpt is corrupt"),
        ("rewriter", {"pretrained": "older/best.ckpt"}, UserError, "trained with lower_case, .* the serving folder"),
        ("rewriter", {"pretrained": f"{own}/serving"}, UserError, "is the base model of adapters for each strategy"),
        ("rewriter", {"pretrained": f"{rewriter}/best.ckpt", **lora}, UserError, "holds an adapter: give model.lora"),
        ("rewriter", {"pretrained": f"{own}/best.ckpt"}, UserError, "adapters per_strategy: set model.adapters to it"),
        ("extractive", {"pretrained": "other"}, UserError, "was trained for .*'name', 'place'.* not for .*'stays'"),
        ("extractive", {"pretrained": f"{rewriter}/best.ckpt"}, ArtifactError, "holds rewriter, not selector"),
    ]  # fmt: skip
    runs = {"rewriter": rewriter, "extractive": words}
    for name, changed, error, message in cases:
        with pytest.raises(error, match=message) as caught:
            started(name, runs[name], "best.ckpt", **changed)
        assert "\n" not in str(caught.value)
    with pytest.raises(ArtifactError, match="holds rewriter, not generator"):
        ReRagTrainer(estimator=None, generator=f"{rewriter}/best.ckpt", max_tokens=24).load()


def test_a_t5_of_an_earlier_release_is_refused_with_what_to_give(place) -> None:
    """Its serving folder, of span corruption; the plain folder in it is a T5 like any other."""
    serving = Path("serving")
    shutil.copytree(place.model("t5"), serving / "t5")
    write_manifest(serving, "t5", "title. text, passages joined, spans as <extra_id_n>; nfkc, single blanks; v1", 64)
    line = r"serving holds a 't5', .* give the folder t5 in it, or a T5 of `python -m trainers\.t5_from_scratch`\."
    for start in (lambda folder: ReRagTrainer(None, folder, max_tokens=24), lambda folder: RewriterTrainer(folder, 40)):
        with pytest.raises(ArtifactError, match=line):
            start("serving").load()
        start("serving/t5").load()
