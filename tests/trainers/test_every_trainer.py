"""What every trainer does: trains on two processes as on one, goes on where it was stopped, starts from another run."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from jsonargparse import Namespace
from pytorch_lightning.cli import instantiate_module
from torch import Tensor

from common.errors import ArtifactError, MissingInputError, UserError
from common.files import digests
from models.cross_encoder import RelevanceEstimator
from models.drrag.triple_classifier import TripleClassifier
from models.serving_manifest import write_manifest
from tests.helpers import runs
from tests.helpers.commands import command, refused
from tests.helpers.every_trainer import PREPARE
from tests.helpers.recorder import HARDLY, RECORDED, assert_same_steps
from tests.helpers.rewrite_runs import write_gold
from tests.helpers.runs import assert_repeated, assert_same_logs, fit_here, fit_in_turn, largest_difference, weights
from tests.helpers.signal_at import signal_at
from tests.helpers.tiny_runs import checkpoint_of, fit, metrics, served
from tests.helpers.tolerances import model_close
from tests.trainers import test_drrag, test_rerag_training
from trainers.dmqr import RewriterTrainer
from trainers.dmqr_extractive import ExtractiveTrainer
from trainers.drrag import DrRagTrainer
from trainers.rerag import ReRagTrainer
from trainers.run.durable_checkpoints import DurableCheckpointIO
from trainers.run.module import RunModule

WITHOUT_DROPOUT = ("--model.dropout", "0")
PER_STRATEGY = ("--model.adapters", "per_strategy")


def hardly_moving(*heads: str) -> list[str]:
    """Options of three steps whose gradients can be compared: no rate, those of `heads` too, moves the weights."""
    rates = [part for name in ("learning_rate", *heads) for part in (f"--model.optimizer.{name}", HARDLY)]
    return [*rates, "--trainer.max_steps", "3"]


@dataclass(frozen=True)
class Case:
    """How a trainer's gradients are compared: rows of a step at most, learning rates beside the first, options."""

    rows: int
    heads: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    measure: str = ""  # of validation: its rows are compared
    relative: float = 1e-6
    variants: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"two": ()})


CASES = {
    "drrag": Case(500 // 20, ("head_learning_rate",), WITHOUT_DROPOUT, "val/loss_nats"),
    "rerag": Case(8 * 4, (), (*WITHOUT_DROPOUT, "--model.loss.label_weight", "0.5"), "val/gen_nats"),
    "rerag_lm": Case(8 * 4, (), ("--model.lora.dropout", "0"), "val/gen_nats"),
    "extractive": Case(8, ("head_learning_rate",)),
    "rewriter": Case(12, (), ("--model.lora.dropout", "0"), "val/f1", variants={
        "two": (), "whole": ("--model.lora.rank", "null"),
        "own": (*PER_STRATEGY, "--data.rewrites_per_step", "3", "--trainer.max_steps", "8"),  # steps without a strategy
    }),
}  # fmt: skip


@pytest.mark.numeric
@pytest.mark.whole_run
@pytest.mark.parametrize("name", CASES)
def test_two_processes_and_accumulation_train_as_one(name, place) -> None:
    """Their optimizers get the gradients of one process, and they log and validate alike."""
    PREPARE[name](place)
    case, gold = CASES[name], write_gold(place.folder) if name == "rewriter" else ()
    options = [*RECORDED, *hardly_moving(*case.heads), *case.options, *gold]
    validated = [*options, *(("--trainer.val_check_interval", "1") if case.measure else ())]
    fit_in_turn(place.folder, [["--name", run, *validated, *extra] for run, extra in case.variants.items()])
    pairs = [
        (Path("checkpoints", run), fit(f"{run}-alone", *validated, *extra)) for run, extra in case.variants.items()
    ]
    for two, one in pairs:
        ours, theirs = ([row for row in metrics(each) if case.measure in row] for each in (two, one))
        assert bool(case.measure) == bool(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert mine == model_close(other)
    pairs.append((fit("in-four", *options, "--trainer.accumulate_grad_batches", "4"), pairs[0][1]))
    for several, one in pairs:
        assert_same_steps(several, one, case.rows)
        assert_same_logs(metrics(several), metrics(one), case.relative)


@pytest.mark.numeric
@pytest.mark.whole_run
@pytest.mark.parametrize(
    ("name", "step", "options"),
    [
        ("drrag", 2, ()), ("rerag", 2, ()), ("rerag_lm", 2, ()), ("extractive", 3, ()),
        ("rewriter", 2, ()), ("rewriter", 5, PER_STRATEGY),
    ],
)  # fmt: skip
def test_a_run_stopped_in_the_middle_of_an_epoch_goes_on_exactly(name, step, options, place) -> None:
    PREPARE[name](place)
    fit("whole", *options)
    given = ("fit", "--config", "config.yaml", "--name", "cut", *options)
    ended = command(place.folder, "train.py", *given, *signal_at(hook="on_train_batch_start", step=step))
    refused(ended, 75, f"last.ckpt holds step {step + 1}", "--resume auto")
    assert not Path("checkpoints/cut/serving").exists()
    fit("cut", *options, "--resume", "auto")
    assert_repeated(weights(place.folder, "cut"), weights(place.folder, "whole"))
    assert_repeated(weights(place.folder, "cut", "best.ckpt"), weights(place.folder, "whole", "best.ckpt"))
    assert runs.logged(place.folder, "cut") == runs.logged(place.folder, "whole")
    assert Path("checkpoints/cut/serving/serving.json").is_file()


@pytest.mark.whole_run
@pytest.mark.parametrize("name", CASES)
def test_a_run_that_does_not_learn_says_so_and_its_model_too(name, place, capsys) -> None:
    PREPARE[name](place)
    hardly = hardly_moving(*CASES[name].heads)
    folder = fit("tiny", *hardly, "--trainer.max_steps", "4", "--trainer.val_check_interval", "2")
    out = capsys.readouterr().out
    told = json.loads((folder / "serving/serving.json").read_text())["not_learned"]
    assert told
    assert out.count("warning: this run does not learn: ") == 1  # though two validations show it
    assert f"holds a model that has not learned: {'; '.join(told)}. Try " in out
    assert f"**This model has not learned:** {'; '.join(told)}" in (folder / "serving/README.md").read_text()
    for file in [each for each in (folder / "serving").rglob("*") if each.is_file()]:  # it goes to other machines
        content = file.read_bytes()
        assert not any(str(away).encode() in content for away in (place.folder, Path.home(), Path.cwd())), file


TRAINERS: dict[str, type[RunModule]] = {
    "drrag": DrRagTrainer,
    "rerag": ReRagTrainer,
    "extractive": ExtractiveTrainer,
    "rewriter": RewriterTrainer,
}
PARTS = {"drrag": "classifier", "extractive": "selector", "rewriter": "rewriter"}  # of a serving folder
SHORT = ("--trainer.max_steps", "4", "--trainer.val_check_interval", "2", "--trainer.limit_val_batches", "1.0")


def started(name: str, run: Path, source: str, **changed: Any) -> RunModule:
    """A trainer with the options of a run, which starts from something of that run."""
    given = checkpoint_of(run)["hyper_parameters"]
    options = {key: value for key, value in given.items() if not key.startswith("_")}
    starts = {option: str(run / source.format(part=PARTS.get(name, option))) for option in TRAINERS[name].starts}
    return instantiate_module(TRAINERS[name], Namespace({**options, **starts, **changed})).load()


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
    "name", [name if name == "extractive" else pytest.param(name, marks=pytest.mark.whole_run) for name in TRAINERS]
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
    options = [f"--model.{option}={run / 'best.ckpt'}" for option in TRAINERS[name].starts]
    second = fit("second", *options, *SHORT)  # whose export is compared with what it trained
    made = checkpoint_of(second, "last.ckpt")
    assert {int(state["step"]) for state in made["optimizer_states"][0]["state"].values()} == {4}
    assert (made["global_step"], made["lr_schedulers"][0]["last_epoch"]) == (4, 4)
    card = (second / "serving/README.md").read_text()
    assert "first/best.ckpt" in card
    assert "base_model" not in card
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


ESTIMATORS = ("t5", "bert", "big_bird", "roberta", "longformer")
CLASSIFIERS = ("bert", "roberta", "big_bird", "longformer")
THREE = ("--trainer.max_steps", "3", "--trainer.limit_val_batches", "0")
ALIKE = (*RECORDED, *THREE, "--model.optimizer.learning_rate", HARDLY)
CHECKPOINTING = ("none", "gradient_checkpointing", "bucket_checkpointing")


def untrained(network: torch.nn.Module, loss: Tensor) -> list[str]:
    """Parameters that are to be trained and get no gradient: DDP waits for it and fails at the second step."""
    loss.backward()
    return [name for name, p in network.named_parameters() if p.requires_grad and p.grad is None]


@pytest.mark.parametrize("family", ESTIMATORS)
def test_every_trained_parameter_gets_a_gradient(checkpoints, family) -> None:
    estimator = RelevanceEstimator.build(str(checkpoints[family]), 48).train()
    ids, ones = torch.full((2, 32), 6), torch.ones(2, 32, dtype=torch.long)
    assert untrained(estimator, estimator(ids, ones).score_P.sum()) == []
    # too few positions for block-sparse attention, or another kind of attention
    kinds = ("fused", "full") if family in ("big_bird", "longformer") else ("fused", "full", "block_sparse")
    for attention in kinds if family in CLASSIFIERS else ():
        classifier = TripleClassifier.build(str(checkpoints[family]), 48, attention).train()
        batch = classifier.pad([[6] * 32] * 2)
        assert untrained(classifier, classifier(*batch).sum()) == []


def same_as_one_process(folder: Path, several: dict[str, tuple[str, ...]], one: tuple[str, ...], rows: int) -> None:
    """Train in this process with the options of `one`, by two processes with those of `several` too, and compare."""
    fit_here(folder, "--name", "one", *one)
    fit_in_turn(folder, [["--name", name, *one, *options] for name, options in several.items()])
    for name in several:  # L_re is a small difference
        assert_same_logs(runs.metrics(folder, name), runs.metrics(folder, "one"), relative=1e-5)
        assert_same_steps(folder / "checkpoints" / name, folder / "checkpoints/one", rows)


def option(checkpointing: str) -> tuple[str, ...]:
    """The option of a trainer that recomputes activations."""
    return () if checkpointing == "none" else (f"--model.{checkpointing}", "true")


@pytest.mark.slow
@pytest.mark.parametrize("family", ESTIMATORS)
def test_estimators(tmp_path, checkpoints, family) -> None:
    test_rerag_training.write_config(tmp_path, checkpoints["t5"], dropout=0.0)
    one = (*ALIKE, "--model.estimator", str(checkpoints[family]))
    same_as_one_process(tmp_path, {each: option(each) for each in CHECKPOINTING}, one, rows=8 * 4)


@pytest.mark.slow
@pytest.mark.parametrize("family", CLASSIFIERS)
def test_classifiers(tmp_path, checkpoints, hotpot_file, family) -> None:
    test_drrag.write_config(tmp_path, checkpoints[family], hotpot_file, dropout=0.0)
    one = (*ALIKE, "--model.optimizer.head_learning_rate", HARDLY)
    same_as_one_process(tmp_path, {each: option(each) for each in CHECKPOINTING[:2]}, one, rows=500 // 20)


FSDP2 = ("--trainer.strategy", "fsdp2")
EVERY_STEP = (
    *("--checkpoint.every_n_train_steps", "1", "--checkpoint.save_top_k=-1", "--checkpoint.filename", "{step}"),
    *("--checkpoint.monitor", "train/loss_nats"),
)
VARIANTS = {
    "plain": (),
    "clipped": ("--trainer.gradient_clip_val", "0.05"),
    "accumulated": ("--trainer.accumulate_grad_batches", "2"),
    "recomputed": ("--model.gradient_checkpointing", "true"),
}


@pytest.mark.slow
@pytest.mark.parametrize("system", ["bert", "longformer"])
def test_it_trains_resumes_and_exports_as_ddp(tmp_path, checkpoints, hotpot_file, system) -> None:
    test_drrag.write_config(tmp_path, checkpoints[system], hotpot_file, dropout=0.0)
    common = ("--trainer.max_epochs", "1")
    listed = []
    for name, options in VARIANTS.items():
        listed += [["--name", f"ddp-{name}", *common, *options], ["--name", f"fsdp2-{name}", *common, *options, *FSDP2]]
    listed += [
        ["--name", "steps", *common, *FSDP2, *EVERY_STEP],
        ["--name", "resumed", *common, *FSDP2, "--ckpt_path", "checkpoints/steps/step=3.ckpt"],
        ["--name", "elsewhere", *common, "--ckpt_path", "checkpoints/fsdp2-plain/best.ckpt"],  # under DDP
        ["--name", "bf16", *common, *FSDP2, "--trainer.precision", "bf16-mixed"],
    ]
    fit_in_turn(tmp_path, listed)
    for name in VARIANTS:
        ours, ddp = (runs.metrics(tmp_path, f"{kind}-{name}") for kind in ("fsdp2", "ddp"))
        assert_same_logs(ours, ddp, relative=1e-4)
        assert largest_difference(weights(tmp_path, f"fsdp2-{name}"), weights(tmp_path, f"ddp-{name}")) <= 1e-5
    assert largest_difference(weights(tmp_path, "resumed"), weights(tmp_path, "fsdp2-plain")) <= 1e-5
    for name in ("fsdp2-plain", "resumed", "bf16"):
        serving, trained = tmp_path / "checkpoints" / name / "serving", weights(tmp_path, name, "best.ckpt")
        served = TripleClassifier.load(serving, "cpu").state_dict()
        for key, value in served.items():  # the head is exported with one label
            ours = trained[f"classifier.{key}"]
            assert torch.equal(value, ours) or value.shape != ours.shape, key


@pytest.mark.slow
def test_an_adapter_is_trained_and_merged_as_under_ddp(tmp_path, checkpoints, hotpot_file) -> None:
    test_drrag.write_config(tmp_path, checkpoints["bert"], hotpot_file, dropout=0.0)
    common = ("--trainer.max_epochs", "1", "--model.lora.rank", "2")
    fit_in_turn(tmp_path, [["--name", "ddp", *common], ["--name", "fsdp2", *common, *FSDP2]])
    assert largest_difference(weights(tmp_path, "fsdp2"), weights(tmp_path, "ddp")) <= 1e-5
    folders = [tmp_path / "checkpoints" / name / "serving" for name in ("ddp", "fsdp2")]
    ddp, fsdp2 = (TripleClassifier.load(folder, "cpu").state_dict() for folder in folders)
    assert largest_difference(fsdp2, ddp) <= 1e-5


@pytest.mark.slow
def test_two_processes_share_what_they_computed_with_a_frozen_generator(tmp_path, checkpoints) -> None:
    test_rerag_training.write_config(tmp_path, checkpoints["t5"])
    one = (*ALIKE, *test_rerag_training.FROZEN, "--trainer.max_steps", "6", "--model.dropout", "0")
    same_as_one_process(tmp_path, {"two": (), "again": ()}, one, rows=8 * 4)
