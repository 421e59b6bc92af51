"""A run with merged case and without repetitions: what is served reads both cases alike, and the model card writes the same."""

import json
import re
from pathlib import Path

import pytest
from huggingface_hub import ModelCard

from common.records import Question
from harness.rewriters.trained import TrainedRewriter
from models.dmqr.rewriter import read_rewriter_manifest
from models.loading import save_network
from models.t5.from_scratch import Sizes, random_t5
from models.t5.tokenizer_training import train_tokenizer
from tests.trainers.test_dmqr import fit, rows, write_config

TEXTS = ["strategy: General Search Rewriting question: Who is Name1 of the Film Name2", "Name3 Name4 Name5 in the City"]


def test_the_served_rewriter_reads_both_cases_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = train_tokenizer(TEXTS * 20, 600)
    save_network(random_t5(tokenizer, Sizes(16, 1, heads=2, d_ff=16)), tmp_path / "t5")
    tokenizer.save_pretrained(tmp_path / "t5")
    (tmp_path / "rewrites.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(60)))
    write_config(tmp_path, tmp_path / "t5")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["train.py"])  # Lightning warns of others
    folder = fit(
        "merged", "--model.merge_case", "true", "--model.no_repeat_ngram", "2", "--model.max_tokens", "160",
        "--model.max_rewrite_tokens", "24", "--trainer.max_epochs", "1", "--data.substitution", "1",
    )  # fmt: skip
    assert read_rewriter_manifest(folder / "serving")["no_repeat_ngram"] == 2
    rewriter = TrainedRewriter(folder / "serving", "cpu", "fp32")
    title, lower = (
        rewriter.rewrite([Question("1", text)], ["gqr"])[0].queries
        for text in ("Who is Name1 of the Film Name2", "who is name1 of the film name2")
    )
    assert title == lower
    card = ModelCard.load(folder / "serving/README.md")
    (code,) = re.findall(r"```python\n(.*?)```", card.text, flags=re.DOTALL)
    monkeypatch.chdir(folder / "serving")
    exec(compile(code, "README.md", "exec"), found := {"__name__": "card"})
    (alone,) = rewriter.model.encode([rewriter.model.task(found["question"], "gqr")])
    assert rewriter.model.encode.decoded(found["ids"][0]) == rewriter.model.write([alone])[0]
