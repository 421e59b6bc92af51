"""Models of random weights and published sizes, and what they are trained on: nothing is downloaded.

A token is a word; the lengths are those of real data.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BigBirdConfig,
    BigBirdForSequenceClassification,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from benchmarks.causal_lm import WORDS, random_model
from benchmarks.gpu_day.sizes import BenchmarkSizes
from benchmarks.serving import WORDS as TRIPLE_WORDS
from models.loading import save_network

SPREAD = 0.5  # standard deviation of the logarithm of a passage's length


def _save_tokenizer(folder: Path, specials: dict[str, str], words: list[str], single: str, pair: str) -> None:
    vocabulary = [*specials.values(), *words, *TRIPLE_WORDS, *WORDS[:100], ".", ":"]
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, specials["unk_token"]))
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    backend.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(text, place) for place, text in enumerate(specials.values())]
    )
    PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=4096, **specials).save_pretrained(folder)


def save_encoder(folder: Path, family: str, sizes: BenchmarkSizes, device: torch.device, **options: Any) -> str:
    """A random `big_bird` or `bert` with a head of two labels, or of one; returns its folder."""
    specials = ("pad", "unk", "cls", "sep", "mask")
    _save_tokenizer(
        folder, {f"{name}_token": f"[{name.upper()}]" for name in specials}, [], "[CLS] $A [SEP]",
        "[CLS] $A [SEP] $B:1 [SEP]:1",
    )  # fmt: skip
    bert, big_bird = (BertConfig, BertForSequenceClassification), (BigBirdConfig, BigBirdForSequenceClassification)
    config, network = {"bert": bert, "big_bird": big_bird}[family]
    places = {"max_position_embeddings": 4096, "pad_token_id": 0, **options}
    with torch.device(device):
        torch.manual_seed(0)
        made = network(config(vocab_size=sizes.encoder_vocabulary, **sizes.encoder, **places))
    save_network(made, folder)
    return str(folder)


def save_t5(folder: Path, sizes: BenchmarkSizes, device: torch.device) -> str:
    """A random T5; returns its folder."""
    specials = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    labels = ["true", "false", "question", "context", "title"]
    _save_tokenizer(folder, specials, labels, "$A </s>", "$A </s> $B </s>")
    with torch.device(device):
        torch.manual_seed(0)
        config = T5Config(vocab_size=sizes.t5_vocabulary, decoder_start_token_id=0, **sizes.t5)
        made = T5ForConditionalGeneration(config)
    save_network(made, folder)
    return str(folder)


def save_causal(folder: Path, sizes: BenchmarkSizes, device: torch.device) -> str:
    """A random causal LM; returns its folder."""
    with torch.device(device):
        return random_model(folder, **sizes.causal)


class Texts:
    """Random texts of real lengths.

    Args:
        words: Median length of a passage, in tokens.
    """

    def __init__(self, words: int) -> None:
        self._words, self._rng = words, random.Random(0)

    def words(self, share: float, spread: float = SPREAD) -> str:
        """A text of `share` times the median length of a passage."""
        length = round(self._words * share * self._rng.lognormvariate(0, spread))
        return " ".join(self._rng.choices(WORDS[:100], k=min(max(2, length), 4 * self._words)))

    def hotpot(self, count: int) -> Iterator[dict[str, Any]]:
        """Questions with ten passages, two of them gold."""
        for number in range(count):
            titles = [f"{self.words(0.02)} {number} {place}" for place in range(10)]
            yield {
                "_id": str(number), "question": f"{self.words(0.2)} {number}", "answer": "yes",
                "supporting_facts": [[title, 0] for title in titles[:2]],
                "context": [[title, [self.words(1.0)]] for title in titles],
            }  # fmt: skip

    def fid(self, count: int, contexts: int) -> Iterator[dict[str, Any]]:
        """Questions with passages of a hundred words of Wikipedia each."""
        for number in range(count):
            passages = [{"title": self.words(0.03), "text": self.words(1.4, 0.1)} for _ in range(contexts)]
            yield {"id": str(number), "question": self.words(0.1), "answers": [self.words(0.04)], "ctxs": passages}

    def rewrites(self, count: int) -> Iterator[dict[str, Any]]:
        """Questions with a rewrite each."""
        for number in range(count):
            question, rewrite = f"{self.words(0.25)} {number}", self.words(0.15)
            yield {"question": question, "strategy": "gqr", "rewrite": rewrite}


def write_rows(path: Path, rows: Iterator[dict[str, Any]], lines: bool = False) -> str:
    """The rows as a list in JSON, or in lines; returns the path."""
    made = list(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in made) if lines else json.dumps(made))
    return str(path)
