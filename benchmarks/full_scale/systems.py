"""The stages of DR-RAG and RE-RAG at full size.

Files, mining, two ranks' training, a kill, a second start, resuming, export, evaluation.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.full_scale.stage import Training

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
RANKS = 2
STEPS = 12  # of a whole run: data are measured, not learning
KILL_AFTER = 5
CHECKPOINT_EVERY = 2
VALIDATION_BATCHES = 20  # of each rank: networks would take most of the time
EVALUATED = 20  # questions
SYSTEMS = ("drrag", "rerag")
RUNS = ("", "-second", "-mined")  # what the names of a system's trainings end with


@dataclass(frozen=True)
class Stage:
    """One command of a system.

    Args:
        name: What it does.
        command: Arguments of Python, run in the output folder.
        makes: What it writes, relative to the output folder: a stage whose file is there is not run again.
        training: For a training, what is watched.
    """

    name: str
    command: list[str]
    makes: str | None = None
    training: Training | None = None


def stages(system: str, share: float, out: Path) -> Iterator[Stage]:
    """The stages of a system, in order.

    Args:
        system: One of `SYSTEMS`.
        share: Of the data sets' sizes.
        out: Folder of this share.
    """
    data, layout = {"drrag": ("hotpotqa", "hotpotqa"), "rerag": ("nq", "fid")}[system]
    files = {split: f"data/{data}_{split}.json" for split in ("train", "dev")}
    for split, file in files.items():
        generate = ["-m", "benchmarks.full_scale.generate", "--data", data, "--split", split, "--share", str(share)]
        yield Stage(f"generate {split}", [*generate, "--out", file], makes=file)
    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
    model, mined = f"models/{system}", "data/mined.jsonl"
    if system == "drrag":
        index = ["infer.py", "index", "--kind", "bm25", "--corpus", files["train"], "--layout", layout]
        yield Stage("model", ["-m", "benchmarks.full_scale.tiny_bert", "--out", model], makes=model)
        yield Stage("index of the evaluation", [*index, "--out", "indexes/hotpotqa"], makes="indexes/hotpotqa")
        # one anchor, as in configs/infer/mine_world.yaml; no worker processes, since each rank takes a core
        mine = [*ranks, str(ROOT / "infer.py"), "mine", "--questions", files["train"], "--layout", layout, "--anchors",
                "1", "--retriever", "harness.retrievers.bm25.Bm25Retriever", "--retriever.init_args.index",
                "indexes/hotpotqa", "--retriever.init_args.workers", "1", "--out", mined]  # fmt: skip
        yield Stage("mining of the training questions", mine, makes=mined)
        models = ["--model.pretrained", model]
    else:
        sizes = ["--sizes.d_model", "32", "--sizes.layers", "1", "--sizes.heads", "2", "--sizes.d_ff", "64"]
        learn = ["-m", "trainers.t5_from_scratch", "--corpus", files["dev"], "--layout", layout, "--limit", "5000"]
        yield Stage("model", [*learn, *sizes, "--out", model], makes=model)
        models = ["--model.estimator", model, "--model.generator", model]
    fit = [
        *ranks,
        *(str(ROOT / "train.py"), "fit", "--config", str(HERE / f"{system}.yaml"), "--trainer.devices", str(RANKS)),
        *models,
        *(part for split, option in (("train", "train"), ("dev", "validation"))
          for part in (f"--data.{option}", f"[{{layout: {layout}, path: {files[split]}}}]")),
        *("--trainer.max_steps", str(STEPS), "--trainer.val_check_interval", str(STEPS)),
        *("--trainer.limit_val_batches", str(VALIDATION_BATCHES)),
        *("--checkpoint.every_n_train_steps", str(CHECKPOINT_EVERY)),
    ]  # fmt: skip
    run, again, with_mined = (Path("checkpoints", system + end) for end in RUNS)
    serving = run / "serving"
    yield Stage("first start, killed", [*fit, "--name", run.name], training=Training(out / run, KILL_AFTER))
    yield Stage("second start, killed", [*fit, "--name", again.name], training=Training(out / again, 1))
    yield Stage("resume to the export", [*fit, "--name", run.name, "--resume", "auto"], training=Training(out / run))
    if system == "drrag":
        more = ["--name", with_mined.name, "--data.mined", f"[{mined}]"]
        yield Stage("start with mined passages, killed", [*fit, *more], training=Training(out / with_mined, KILL_AFTER))
    evaluate = [
        "infer.py",
        "evaluate",
        "--layout",
        layout,
        "--questions",
        files["dev"],
        "--limit",
        str(EVALUATED),
        "--studies",
        "false",
    ]
    if system == "drrag":
        retriever = "--strategy.init_args.retriever"
        strategy = ["--strategy", "harness.strategies.drrag.DrRag", retriever, "harness.retrievers.bm25.Bm25Retriever",
                    f"{retriever}.init_args.index", "indexes/hotpotqa"]  # fmt: skip
    else:
        strategy = ["--strategy", "harness.strategies.rerag.ReRag"]
    strategy += ["--strategy.init_args.serving", str(serving)]
    yield Stage("evaluation", [*evaluate, *strategy, "--out", f"reports/{system}"])


def arguments(stage: Stage) -> list[str]:
    """What is started: this Python, with the project's programs by their full path."""
    first, *others = stage.command
    return [sys.executable, str(ROOT / first) if first.endswith(".py") else first, *others]
