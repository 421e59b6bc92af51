"""The network of the extractive rewriter.

Predicts for a question and a passage of its first search which of the question's words stay in a query, and which of
the passage's words join it. An encoder with two logits per token: a token classifier of transformers.

Shape legend: P pairs, T tokens, L labels (0 stays, 1 joins).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn
from transformers import AutoModelForTokenClassification, PreTrainedModel

from common.ranges import Precision
from common.records import Passage
from common.words import Word
from models.devices import autocast, compute_dtype, resolve_device
from models.dmqr.word_tokenizer import TEXT_FORMAT, WordPair, WordPairEncoder
from models.encoders import is_trained, new_classifier
from models.full_precision import keep_heads_in_fp32
from models.length_batching import length_batches
from models.loading import load_network, load_tokenizer, save_network
from models.onnx_network import with_backend
from models.pair_export import pair_tokenizer
from models.parallel_batches import each_batch
from models.sdpa import train_fast_on_cpu
from models.serving_manifest import read_manifest
from models.token_count import CountsTokens

KIND = "dmqr_word_selector"
PART = "selector"
STAYS, JOINS = 0, 1
LABELS = {STAYS: "stays", JOINS: "joins"}
PRIOR = {STAYS: 0.5, JOINS: 0.05}  # shares of the words, from which an untrained head starts
TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65_536}


@dataclass(frozen=True, slots=True)
class ScoredWord:
    """A word with its log-odds (nats)."""

    word: Word
    log_odds: float


@dataclass(frozen=True, slots=True)
class WordScores:
    """The words of one (question, passage)."""

    stays: list[ScoredWord]  # every word of the question, in order
    joins: list[ScoredWord]  # every distinct word of the passage that the question lacks, at its best place, in order


class WordSelector(CountsTokens, nn.Module):
    """Scores the words of (question, passage) pairs.  Create it with `build` (training) or `load` (serving).

    Args:
        network: A token classifier with two labels, each of which is a decision by itself (sigmoid, not softmax).
        encode: Turns pairs into token ids.
    """

    network: PreTrainedModel
    inference_dtype: torch.dtype | None = None  # of `scores`; None: as the caller's autocast says

    def __init__(self, network: PreTrainedModel, encode: WordPairEncoder) -> None:
        super().__init__()
        self.network, self.encode = network, encode
        self.segments = getattr(network.config, "type_vocab_size", 0) > 1  # whether the encoder knows two segments
        keep_heads_in_fp32(network)
        train_fast_on_cpu(network)

    @classmethod
    def build(cls, pretrained: str, max_tokens: int = 256, dropout: float | None = None) -> Self:
        """A selector to train.

        Args:
            pretrained: Folder or hub id of an encoder such as MiniLM or a BERT, whose head starts anew, or of a
                selector.
            max_tokens: Maximum length of a pair, in tokens.
            dropout: Rate for hidden states and attention; the checkpoint's when None.

        Raises:
            MissingInputError: If the model is not on this machine.
            UserError: If it is no encoder, or max_tokens exceeds its positions.
        """
        network, tokenizer = new_classifier(AutoModelForTokenClassification, pretrained, LABELS, max_tokens, dropout)
        encode = WordPairEncoder(tokenizer, max_tokens)
        if not is_trained(pretrained, AutoModelForTokenClassification, LABELS):
            head = network.get_submodule("classifier")
            with torch.no_grad():  # an optimizer moves a bias by its learning rate per step: too slowly for rare words
                head.bias.copy_(torch.tensor([math.log(PRIOR[each] / (1 - PRIOR[each])) for each in LABELS]))
        return cls(network, encode)

    @classmethod
    def load(cls, serving: Path, device: str = "auto", precision: Precision = "auto") -> Self:
        """Load the selector of a serving folder, in evaluation mode; the files' checksums are verified.

        Args:
            serving: Folder that training exported, e.g. checkpoints/dmqr-extractive-hotpotqa/serving.
            device: auto, cpu, cuda or cuda:N.
            precision: Of `scores`: auto, fp32 or bf16; see `models.devices.compute_dtype`.

        Raises:
            MissingInputError: If the folder does not exist.
            UserError: If the device is not possible here, or the precision is unknown.
            ArtifactError: If it is corrupt, of another kind or text format.
        """
        where = resolve_device(device)
        dtype = compute_dtype(precision, where)
        manifest = read_manifest(Path(serving), KIND, TEXT_FORMAT)
        folder = str(Path(serving) / PART)
        network = load_network(AutoModelForTokenClassification, folder, dtype=torch.float32)
        encode = WordPairEncoder(load_tokenizer(folder), manifest["max_tokens"])
        selector = cls(network, encode)
        selector.inference_dtype = dtype
        return with_backend(selector.to(where).eval(), Path(serving))

    def save(self, folder: Path) -> None:
        """Write network and tokenizer to `folder/selector` for transformers' Auto classes.

        A pair gives this model's input.
        """
        save_network(self.network, folder / PART)
        tokenizer = pair_tokenizer(
            self.encode.tokenizer, self.encode.max_tokens, token_types=self.segments, separator_inside=not self.segments
        )
        tokenizer.save_pretrained(folder / PART)

    def forward(self, ids_PT: Tensor, types_PT: Tensor, attention_PT: Tensor) -> Tensor:
        """Log-odds of every token, (P, T, 2), nats, fp32; meaningful at the first token of a word."""
        segments = {"token_type_ids": types_PT} if self.segments else {}
        logits_PTL: Tensor = self.network(input_ids=ids_PT, attention_mask=attention_PT, **segments).logits
        return logits_PTL.float()

    def scores(self, pairs: Sequence[tuple[str, Passage]]) -> list[WordScores]:
        """The words of every pair, in order; batched by length."""
        inputs = self.encode(pairs)
        device = self.network.device
        self.tokens_read += sum(len(each.ids) for each in inputs)

        @torch.inference_mode()
        def score(rows: list[int]) -> list[WordScores]:
            chosen = [inputs[row] for row in rows]
            ids_PT, types_PT, attention_PT = (each.to(device, non_blocking=True) for each in self.encode.pad(chosen))
            with autocast(device, self.inference_dtype):
                logits_PTL = self(ids_PT, types_PT, attention_PT)
            return [scored_words(*pair) for pair in zip(chosen, logits_PTL.tolist(), strict=True)]

        found: dict[int, WordScores] = {}
        batches = length_batches([len(each.ids) for each in inputs], TOKENS_PER_BATCH[device.type])
        for rows, batch in each_batch(score, batches, device):
            found |= zip(rows, batch, strict=True)
        return [found[row] for row in range(len(pairs))]


def scored_words(pair: WordPair, logits_TL: list[list[float]]) -> WordScores:
    """The words of a pair with the log-odds of its tokens, as `WordSelector.forward` gives them."""
    own = {each.word.text for each in pair.question_words}
    best: dict[str, ScoredWord] = {}
    for placed in pair.passage_words:
        scored = ScoredWord(placed.word, logits_TL[placed.position][JOINS])
        text = placed.word.text
        if text not in own and (text not in best or scored.log_odds > best[text].log_odds):
            best[text] = scored
    stays = [ScoredWord(each.word, logits_TL[each.position][STAYS]) for each in pair.question_words]
    return WordScores(stays, sorted(best.values(), key=lambda each: each.word.start))
