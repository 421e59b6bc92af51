"""What is kept of the trainings: losses of the first steps, weights after the last one, scores of the exported model.

Every run is a command line of train.py: 20 steps in fp32 on one thread.
"""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import infer
import train
from tests.exactness import probes

STEPS, SHOWN_STEPS, ENTRIES = 20, 5, 8
RATES = {"optimizer": {"learning_rate": 2e-4}}
HEADS = {"optimizer": {"learning_rate": 2e-4, "head_learning_rate": 2e-4}}
UNTRAINED = "key.bias"  # softmax is the same for any of it: its gradient is nothing but rounding
TIMES = ("per_second", "seconds", "flops", "memory", "learning_rate", "epoch")  # logged, and determined by no loss


def _source(layout: str, path: str, **limit: int) -> list[dict[str, Any]]:
    return [{"layout": layout, "path": path, **limit}]


def _drrag(model: str, **options: Any) -> dict[str, Any]:
    return {
        "model": (
            "trainers.drrag.DrRagTrainer", {"pretrained": f"models/{model}", "max_tokens": 128, **HEADS, **options},
        ),
        "data": (
            "datamodules.drrag.DrRagData",
            {
                "train": _source("hotpotqa", "world/train.json"),
                "validation": _source("hotpotqa", "world/validation.json"),
                "hard_negatives": ["mined.jsonl"], "tokens_per_step": 1500,
            },
        ),
        "monitor": "val/auc",
    }  # fmt: skip


def _rerag(estimator: str | None, model: dict[str, Any], **data: Any) -> dict[str, Any]:
    return {
        "model": (
            "trainers.rerag.ReRagTrainer",
            {
                "estimator": estimator and f"models/{estimator}", "generator": "models/t5", "max_tokens": 96,
                "validation": {"contexts": 3}, **RATES, **model,
                "text": {"max_answer_tokens": 6, **model.get("text", {})},
            },
        ),
        "data": (
            "datamodules.rerag.ReRagData",
            {
                "train": _source("fid", "world/fid_train.json"),
                "validation": _source("fid", "world/fid_validation.json", limit=12),
                "contexts": 4, "context_sampling": "sampled", "questions_per_step": 6, "tokens_per_bucket": 700, **data,
            },
        ),
        "monitor": "val/em",
    }  # fmt: skip


def _rewriter(model: str, **options: Any) -> dict[str, Any]:
    return {
        "model": (
            "trainers.dmqr.RewriterTrainer",
            {"pretrained": f"models/{model}", "max_tokens": 192, "max_rewrite_tokens": 40, **RATES, **options},
        ),
        "data": (
            "datamodules.dmqr.RewriteData",
            {
                "train": _source("rewrites", "world/rewrites_train.jsonl"),
                "validation": _source("rewrites", "world/rewrites_validation.jsonl"),
                "rewrites_per_step": 8, "generated_rewrites": 8,
            },
        ),
        "monitor": "val/loss_nats", "mode": "min",
    }  # fmt: skip


RUNS: dict[str, dict[str, Any]] = {
    "drrag_pairs": _drrag("big_bird", dropout=0.1),
    "drrag_lora": _drrag("bert", dropout=0.0, lora={"rank": 4}),
    **{
        f"rerag_{preset}_{family}": _rerag(
            estimator,
            {"preset": preset, "dropout": 0.1 if preset == "ours" else 0.0, "loss": {"label_weight": 0.5}},
            labels="gold" if preset == "paper" else "has_answer",
        )
        for preset in ("ours", "released", "paper")
        for family, estimator in (("t5", "t5"), ("encoder", "bert"))
    },
    "reader": _rerag(
        None, {"freeze_embeddings": True}, contexts=1, context_sampling="gold", substitution=0.5, word_swaps=0.3,
        crop_words=12,
        validation_contexts=1, validation_context_sampling="gold",
    ),
    "reader_packed": _rerag(None, {"text": {"format": "packed"}, "max_tokens": 256}, contexts=3),
    "rewriter": _rewriter("t5", lora={"rank": None}, dropout=0.1),
    "rewriter_causal_lora": _rewriter("qwen", lora={"rank": 4, "dropout": 0.05}),
    "extractive_rewriter": {
        "model": (
            "trainers.dmqr_extractive.ExtractiveTrainer",
            {"pretrained": "models/bert", "max_tokens": 160, "dropout": 0.0, **HEADS},
        ),
        "data": (
            "datamodules.dmqr_extractive.ExtractiveData",
            {"train": _source("word_labels", "labels.jsonl"), "validation_fraction": 0.2, "tokens_per_step": 900},
        ),
        "monitor": "val/stays_auc",
    },
}  # fmt: skip


def write_training_files() -> None:
    """Write `mined.jsonl` and `labels.jsonl` with the commands that make them, from an index of the world's corpus."""
    bm25 = ["harness.retrievers.bm25.Bm25Retriever", "--retriever.index", "indexes/bm25"]
    infer.main(["index", "--corpus", "world/corpus.jsonl", "--kind", "bm25", "--out", "indexes/bm25"])
    infer.main(
        [
            "mine",
            "--retriever",
            *bm25,
            "--questions",
            "[world/train.json,world/validation.json]",
            "--out",
            "mined.jsonl",
        ]
    )
    infer.main(
        ["label", "--retriever", *bm25, "--questions", "world/rephrased_train.json", "--out", "labels.jsonl",
         "--passages", "2", "--limit", "60"]
    )  # fmt: skip


def fit(name: str) -> Path:
    """Train; the run's folder."""
    run = RUNS[name]
    parts = {
        part: {"class_path": class_path, "init_args": options}
        for part in ("model", "data")
        for class_path, options in [run[part]]
    }
    mode = {"mode": run.get("mode", "max")}
    config = {
        "name": name, "seed_everything": 0, **parts,
        "trainer": {
            "accelerator": "cpu", "max_steps": STEPS, "val_check_interval": STEPS, "check_val_every_n_epoch": None,
            "log_every_n_steps": 1, "enable_progress_bar": False, "num_sanity_val_steps": 0,
        },
        "checkpoint": {"monitor": run["monitor"], **mode}, "early_stopping": {"patience": None, **mode},
    }  # fmt: skip
    file = Path(f"{name}.yaml")
    file.write_text(json.dumps(config))
    train.main(["fit", "--config", str(file)])
    return Path("checkpoints", name)


def measure(name: str) -> dict[str, Any]:
    """Train, and return the values that are kept."""
    folder = fit(name)
    logged = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in logged if "train/grad_norm" in row]
    weights = torch.load(folder / "last.ckpt", weights_only=True)["state_dict"]
    return {
        "steps": [
            {key: number(row[key]) for key in sorted(row) if _is_loss(key)} for row in steps[:SHOWN_STEPS]
        ],
        "weights": {key: summary(key, value) for key, value in weights.items() if not key.endswith(UNTRAINED)},
        "sha256": digest(weights),
        "probes": [number(score) for score in probes.scores(name, folder / "serving")],
    }  # fmt: skip


def _is_loss(key: str) -> bool:
    return key.startswith("train/") and not any(each in key for each in TIMES)


def number(value: float) -> float:
    """To seven digits: what fp32 holds."""
    return float(f"{value:.7g}")


def summary(name: str, value: Tensor) -> list[float]:
    """Norm, sum, and eight entries at places that the name determines."""
    flat = value.double().flatten()
    places = np.random.default_rng(zlib.crc32(name.encode())).integers(len(flat), size=ENTRIES)
    return [number(each) for each in (flat.norm().item(), flat.sum().item(), *flat[places].tolist())]


def digest(weights: dict[str, Tensor]) -> str:
    """SHA-256 of names and bytes of all weights, the untrained ones too."""
    found = hashlib.sha256()
    for name, value in sorted(weights.items()):
        found.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        found.update(value.contiguous().numpy().tobytes())
    return found.hexdigest()
