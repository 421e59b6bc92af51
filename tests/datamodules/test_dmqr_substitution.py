"""Word substitution: the same words in question and rewrite, misspelt ones too, the strategy untouched, ranks alike."""

import json
import random
from pathlib import Path

import pytest

from datamodules.dmqr import RewriteData, RewriteDataFile
from datamodules.dmqr_substitution import WordSubstitution
from models.dmqr.rewrite_tokenizer import RewriteEncoder, RewriteTask
from models.loading import save_network
from models.lora import Lora
from models.t5.from_scratch import T5Sizes, random_t5
from models.t5.tokenizer_training import train_tokenizer
from tests.helpers.rewrite_runs import rows
from tests.helpers.tiny_runs import set_up
from trainers.dmqr import RewriterTrainer

TEXTS = [
    "who directed the film Copper Winter", "where does Felix Southett live", "hey what is the name", "Saltine Union"
]  # fmt: skip


@pytest.fixture(scope="module")
def encode() -> RewriteEncoder:
    tokenizer = train_tokenizer(TEXTS * 20, 600)
    return RewriteEncoder(tokenizer, "seq2seq", 64, [tokenizer.eos_token_id])


def substituted(encode: RewriteEncoder, question: str, rewrite: str, share: float, seed: int) -> tuple[str, str]:
    (ids,), (target,) = encode([RewriteTask(question, "Copy who directed")]), encode.targets([rewrite])
    made = WordSubstitution(encode, 60)(ids, target, question, share, random.Random(seed))
    assert all(ids[-1] == encode.tokenizer.eos_token_id for ids in made)
    before, asked = encode.decoded(made[0]).split("question: ")
    assert before == "strategy: Copy who directed "  # the same words elsewhere stay
    return asked, encode.decoded(made[1])


def test_shared_words_become_the_same_random_ones(encode: RewriteEncoder) -> None:
    question, rewrite = "hey who directed Copper Winter, Copper?", "who directed Copper Winter"
    seen = set()
    for seed in range(20):
        asked, written = substituted(encode, question, rewrite, 1.0, seed)
        new = written.split()
        assert len(new) == 4
        assert asked == f"hey {new[0]} {new[1]} {new[2]} {new[3]}, {new[2]}?"  # hey is not shared and stays
        seen.add(written)
    assert len(seen) == 20
    assert substituted(encode, question, rewrite, 0.0, 1) == (question, rewrite)
    half = [substituted(encode, question, rewrite, 0.5, seed)[1].split() for seed in range(200)]
    kept = sum(word in rewrite.split() for words in half for word in words) / 800
    assert 0.4 < kept < 0.6


def test_a_misspelt_word_becomes_what_the_rewrite_gets(encode: RewriteEncoder) -> None:
    for seed in range(10):
        asked, written = substituted(encode, "wat is Saltnie Union", "what is Saltine Union", 1.0, seed)
        assert asked.split()[2:] == written.split()[2:]
        assert "Saltine Union" not in written
    asked, written = substituted(encode, "what is the name", "what is Felix", 1.0, 0)
    assert (asked.split()[2:], written.split()[2:]) == (
        ["the", "name"],
        ["Felix"],
    )  # nothing in the question is like it


def data_of(module: RewriterTrainer, path: Path, share: float, rank: int = 0, ranks: int = 1) -> RewriteData:
    data = RewriteData([RewriteDataFile(str(path), "rewrites")], rewrites_per_step=12, substitution=share)
    return set_up(data, module, rank, ranks)


def test_batches_have_other_words_each_epoch_and_ranks_agree(encode: RewriteEncoder, tmp_path: Path) -> None:
    encode.tokenizer.save_pretrained(tmp_path / "t5")
    save_network(random_t5(encode.tokenizer, T5Sizes(16, 1, heads=2, d_ff=16)), tmp_path / "t5")
    module = RewriterTrainer(str(tmp_path / "t5"), 160, 60, lora=Lora(4, dropout=0.05)).load()
    path = tmp_path / "rewrites.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(40)))
    whole, plain = data_of(module, path, 1.0), data_of(module, path, 0.0)
    decoded = module.rewriter.encode.decoded
    changed = 0
    for row, each in enumerate(whole.training):
        prefix = decoded(each.input).split("question:")[0]
        first, again, later = (whole._varied(epoch, row) for epoch in (0, 0, 1))
        assert first == again
        assert decoded(first.input).startswith(prefix)
        assert whole.training[row] == plain.training[row] == plain._varied(0, row)
        changed += first.input != later.input
    assert changed > 0.8 * len(whole.training)
    (step, *_) = whole.train_dataloader()
    halves = [next(iter(data_of(module, path, 1.0, rank, 2).train_dataloader())) for rank in range(2)]
    assert {half.step_tokens for half in halves} == {step.step_tokens}
    assert sum(int((half.labels_PA != -100).sum(dim=1) @ half.weights_P.long()) for half in halves) == step.step_tokens
