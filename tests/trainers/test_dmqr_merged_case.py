"""A run with merged case and without repetitions.

What is served reads both cases alike, and the model card writes the same.
"""

from pathlib import Path

import pytest

from common.records import Question
from harness.rewriters.trained import TrainedRewriter
from models.dmqr.rewriter import read_rewriter_manifest
from models.loading import save_network
from models.t5.from_scratch import Sizes, random_t5
from models.t5.tokenizer_training import train_tokenizer
from tests.helpers.rewrite_runs import prepare
from tests.helpers.tiny_runs import fit, run_card

TEXTS = ["strategy: General Search Rewriting question: Who is Name1 of the Film Name2", "Name3 Name4 Name5 in the City"]


def test_the_served_rewriter_reads_both_cases_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = train_tokenizer(TEXTS * 20, 600)
    save_network(random_t5(tokenizer, Sizes(16, 1, heads=2, d_ff=16)), tmp_path / "t5")
    tokenizer.save_pretrained(tmp_path / "t5")
    prepare(tmp_path, tmp_path / "t5", monkeypatch)
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
    _, found = run_card(folder / "serving", monkeypatch)
    (alone,) = rewriter.model.encode([rewriter.model.task(found["question"], "gqr")])
    assert rewriter.model.encode.decoded(found["ids"][0]) == rewriter.model.write([alone])[0]
