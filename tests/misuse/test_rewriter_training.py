"""Mistakes in the training of rewriters: one line that says what to type, an exit code, and nothing left behind."""

import json
import shutil
from pathlib import Path

import pytest

from common.records import Passage
from harness.retrievers.bm25 import build_bm25
from tests.helpers.commands import command, refused
from tests.helpers.rewrite_runs import gold_of, prepare, write_gold

USAGE, BAD_DATA, MISSING = 2, 65, 66


@pytest.fixture
def workplace(tmp_path: Path, checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with data and a config for a tiny run."""
    return prepare(tmp_path, checkpoints["t5"], monkeypatch)


@pytest.mark.parametrize(
    ("options", "code", "parts"),
    [
        (
            ("--data.train", "[{layout: rrr2, path: rewrites.jsonl}]"),
            USAGE,
            ("layout 'rrr2' is unknown; allowed: rrr, qrecc, canard, rewrites",),
        ),
        (
            ("--data.train", "[{layout: rewrites, path: rewrites.jsonl, strategy: gqr}]"),
            USAGE,
            ("strategy gqr is given for a file in the layout rewrites", "omit it"),
        ),
        (("--data.train", "[{layout: rrr, path: rewrites.jsonl}]"), USAGE, ("not named NAME.source",)),
        (("--data.train", "[{layout: rrr, path: a.source}]"), MISSING, ("a.source does not exist",)),
        (("--data.train", "[{layout: canard, path: rewrites.jsonl}]"), BAD_DATA, ("line 1", "use layout rewrites")),
        (("--model.pretrained", "BERT"), USAGE, ("generates no text", "google/flan-t5-base")),
        (("--model.pretrained", "no/such-model"), MISSING, ("not in the Hugging Face cache",)),
        (("--model.pool", "none.yaml"), MISSING, ("none.yaml does not exist",)),
        (("--model.lora_rank", "0"), USAGE, ("lora_rank must be at least 1, or null to train all weights",)),
        (("--model.base_bits", "4", "--model.lora_rank", "null"), USAGE, ("model.base_bits 4 needs LoRA",)),
        (("--model.adapters", "per_strategy", "--model.lora_rank", "null"), USAGE, ("per_strategy needs LoRA",)),
        (("--model.merged", "float16"), USAGE, ("float16", "bfloat16")),
        (("--model.learning_rate", "0"), USAGE, ("learning_rate must be above 0",)),
    ],
)
def test_one_line_and_nothing_left(
    workplace: Path,
    checkpoints: dict[str, Path],
    options: tuple[str, ...],
    code: int,
    parts: tuple[str, ...],
) -> None:
    given = [str(checkpoints["bert"]) if option == "BERT" else option for option in options]
    before = sorted(workplace.rglob("*"))
    refused(command(workplace, "train.py", "fit", "--config", "config.yaml", *given), code, *parts)
    after = [path for path in sorted(workplace.rglob("*")) if path.suffix != ".lock"]
    assert [path for path in after if path not in before and path.is_file()] == []


GOLD = ("--data.gold_questions", "[{layout: hotpotqa, path: gold.json}]")
BM25 = ("--data.retriever", "harness.retrievers.bm25.Bm25Retriever", "--data.retriever.index", "index")


@pytest.mark.parametrize(
    ("options", "code", "parts"),
    [
        (GOLD, USAGE, ("data.gold_questions is given without data.retriever",)),
        (BM25, USAGE, ("data.retriever is given without data.gold_questions",)),
        ((*BM25[:3], "no-index", *GOLD), MISSING, ("no-index",)),
        (
            (*BM25, "--data.gold_questions", "[{layout: hotpotqa, path: none.json}]"),
            MISSING,
            ("none.json does not exist",),
        ),
        (
            (*BM25, "--data.gold_questions", "[{layout: hotpotqa, path: other.json}]"),
            BAD_DATA,
            ("none of the 13 validation questions", "in data.gold_questions ['other.json']"),
        ),
        ((*BM25, *GOLD, "--data.recall_k", "0"), USAGE, ("recall_k must be at least 1",)),
        ((*BM25, *GOLD), BAD_DATA, ("data.retriever finds none of", "build its index from the passages of data.gold")),
        (("--checkpoint.monitor", "val/recall_at_10"), USAGE, ("val/recall_at_10", "type --checkpoint.monitor val/f1")),
    ],
    ids=str,
)
def test_recall_on_validation_is_checked_before_training(
    workplace: Path,
    options: tuple[str, ...],
    code: int,
    parts: tuple[str, ...],
) -> None:
    write_gold(workplace)
    (workplace / "other.json").write_text(json.dumps([gold_of({"question": "is name3"})]))
    shutil.rmtree(workplace / "index")
    build_bm25([Passage.of("name1", "another corpus")], workplace / "index")
    refused(command(workplace, "train.py", "fit", "--config", "config.yaml", *options), code, *parts)
    assert not (workplace / "checkpoints/tiny/last.ckpt").exists()
