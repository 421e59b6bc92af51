"""Tiny models and tokenizers whose weights and vocabularies follow from names and counts, not from a library."""

import re
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import nn
from transformers import (
    BertConfig,
    BertModel,
    BigBirdConfig,
    BigBirdForSequenceClassification,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

POSITIONS = 256  # tokens that an encoder reads
WORDS = 900  # of a vocabulary
SENTINELS = [f"<extra_id_{number}>" for number in range(100)]
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CHAT_MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SIZES = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": POSITIONS,
}  # fmt: skip


def fill(network: nn.Module, gain: float = 1.0, noise: int | None = None) -> None:
    """Give every parameter values that its name and shape determine.

    Args:
        network: Changed in place.
        gain: Standard deviation of a matrix's entries, times the square root of its columns.
        noise: Seed of a change of every weight by about one part in ten thousand: a question whose answer changes with
            it has a decision that is too close to be compared between machines.
    """
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            chance = np.random.default_rng(zlib.crc32(name.encode()))
            values = chance.standard_normal(tuple(parameter.shape), dtype=np.float32)
            if "norm" in name.lower() and name.endswith("weight"):
                values = 1 + 0.1 * values
            elif parameter.dim() == 1:
                values *= 0.1
            elif "embed" in name or "shared" in name or "relative" in name:
                values *= 0.5
            else:
                values *= gain / parameter.shape[1] ** 0.5
            if noise is not None:
                shift = np.random.default_rng(noise).standard_normal(tuple(parameter.shape), dtype=np.float32)
                values *= 1 + 1e-4 * shift
            parameter.copy_(torch.from_numpy(np.asarray(values, dtype=np.float32)))


def common_words(texts: Iterable[str], count: int = WORDS) -> list[str]:
    """The most frequent words, lower and upper case apart; of equally frequent ones the first in alphabetical order."""
    counted = Counter(word for text in texts for word in re.findall(r"\w+", text))
    return sorted(counted, key=lambda word: (-counted[word], word))[:count]


def save_word_pieces(folder: Path, words: Iterable[str], segments: bool) -> int:
    """An uncased WordPiece tokenizer as BERT's: words, and single characters for what is no word; returns its size."""
    letters = [chr(code) for code in range(33, 127)]
    pieces = dict.fromkeys(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    )
    pieces |= dict.fromkeys(word.lower() for word in words)
    tokenizer = Tokenizer(models.WordPiece({piece: id_ for id_, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=POSITIONS,
        model_input_names=["input_ids", *["token_type_ids"] * segments, "attention_mask"],
    ).save_pretrained(folder)  # fmt: skip
    return len(pieces)


def save_unigram(folder: Path, words: Iterable[str]) -> int:
    """A Unigram tokenizer as T5's, with byte pieces and sentinels; returns its size."""
    specials = ["<pad>", "</s>", "<unk>"]
    scores = {f"▁{word}": -6.0 - 0.001 * place for place, word in enumerate(dict.fromkeys(["true", "false", *words]))}
    scores |= {letter: -9.0 for letter in ["▁", *(chr(code) for code in range(33, 127))]}
    scores |= {f"<0x{byte:02X}>": -20.0 for byte in range(256)}
    vocabulary = [*((special, 0.0) for special in specials), *scores.items()]
    tokenizer = Tokenizer(models.Unigram(vocabulary, specials.index("<unk>"), byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace("▁", prepend_scheme="always", split=True)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", specials.index("</s>"))]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        extra_special_tokens=SENTINELS, model_max_length=512, model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )  # fmt: skip
    fast.save_pretrained(folder)
    return len(fast)


def byte_pairs(words: Iterable[str], chat: bool) -> PreTrainedTokenizerFast:
    """A byte-level BPE as causal LMs have: a blank and a word are one token for each of the words."""
    merges: dict[tuple[str, str], None] = {}
    for word in words:
        if word.isascii():
            letters = f"Ġ{word}"
            merges |= dict.fromkeys((letters[:end], letters[end]) for end in range(1, len(letters)))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = dict.fromkeys([*CHAT_MARKS, *alphabet, *map("".join, merges)])
    tokenizer = Tokenizer(models.BPE({piece: id_ for id_, piece in enumerate(pieces)}, list(merges)))
    tokenizer.pre_tokenizer, tokenizer.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    end = CHAT_MARKS[2 if chat else 0]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=CHAT_MARKS[0], eos_token=end, extra_special_tokens=CHAT_MARKS,
        chat_template=CHATML if chat else None, model_max_length=1024, clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


def _save(network: PreTrainedModel, folder: Path, gain: float, noise: int | None) -> Path:
    fill(network, gain, noise)
    network.save_pretrained(folder)
    return folder


def save_bert(folder: Path, words: Iterable[str], gain: float = 1.0, noise: int | None = None) -> Path:
    """A BERT of two layers."""
    vocabulary = save_word_pieces(folder, words, segments=True)
    return _save(BertModel(BertConfig(vocab_size=vocabulary, **SIZES), add_pooling_layer=False), folder, gain, noise)


def save_big_bird(folder: Path, words: Iterable[str]) -> Path:
    """A BigBird of two layers."""
    vocabulary = save_word_pieces(folder, words, segments=False)
    config = BigBirdConfig(vocab_size=vocabulary, attention_type="original_full", sep_token_id=3, **SIZES)
    return _save(BigBirdForSequenceClassification(config), folder, 1.0, None)


def save_t5(folder: Path, words: Iterable[str], gain: float = 1.0, noise: int | None = None) -> Path:
    """A T5 of two layers."""
    config = T5Config(
        vocab_size=save_unigram(folder, words), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return _save(T5ForConditionalGeneration(config), folder, gain, noise)


def save_qwen(folder: Path, words: Iterable[str]) -> Path:
    """A Qwen2 of two layers with a chat template."""
    tokenizer = byte_pairs(words, chat=True)
    tokenizer.save_pretrained(folder)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=1024, tie_word_embeddings=True, pad_token_id=0, eos_token_id=2,
        bos_token_id=None,
    )  # fmt: skip
    network = Qwen2ForCausalLM(config)
    network.generation_config = GenerationConfig(eos_token_id=[2, 0], pad_token_id=0)
    return _save(network, folder, 1.0, None)
