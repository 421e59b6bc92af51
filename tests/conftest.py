"""Models and data that tests share, made in memory: no downloads, no GPU."""

import json
import os
import random
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("WANDB_MODE", "offline")

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    BertModel,
    BigBirdConfig,
    BigBirdForSequenceClassification,
    LongformerConfig,
    LongformerForSequenceClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
)

NAMES = [f"name{i}" for i in range(60)]
WORDS = [
    *["who", "where", "is", "was", "born", "the", "director", "film", "city", "of", "in", "yes", "no", "SEP", "CLS"],
    *".[]",
]
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 128,
}

torch.set_num_threads(1)


def save_tokenizer(folder: Path) -> int:
    """A word-level BERT-like tokenizer; returns its vocabulary's size."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab = {word: i for i, word in enumerate([*specials, *WORDS, *NAMES])}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=128,
    ).save_pretrained(folder)  # fmt: skip
    return len(vocab)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with random models of some ten thousand parameters, by family."""
    root = tmp_path_factory.mktemp("pretrained")
    made = {}
    for family in ("big_bird", "bert", "roberta", "longformer"):
        folder = root / family
        folder.mkdir()
        vocabulary = save_tokenizer(folder)
        torch.manual_seed(0)
        if family == "big_bird":
            config = BigBirdConfig(vocab_size=vocabulary, attention_type="original_full", sep_token_id=3, **SIZES)
            BigBirdForSequenceClassification(config).save_pretrained(folder)
        elif family == "bert":
            BertModel(BertConfig(vocab_size=vocabulary, **SIZES)).save_pretrained(folder)
        elif family == "roberta":
            RobertaModel(RobertaConfig(vocab_size=vocabulary, pad_token_id=0, **SIZES)).save_pretrained(folder)
        else:
            config = LongformerConfig(
                vocab_size=vocabulary, pad_token_id=0, sep_token_id=3, attention_window=16,
                **{**SIZES, "max_position_embeddings": 130},
            )  # fmt: skip
            LongformerForSequenceClassification(config).save_pretrained(folder)
        made[family] = folder
    return made


def hotpot_rows(count: int, seed: int = 0) -> list[dict]:
    """Rows in HotpotQA's layout whose gold pair can be told from noise: both gold passages name the question's name."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        name, *others = rng.sample(NAMES, 8)
        context = [
            [f"{name} a{number}", [f"{name} was born in .", " the film ."]],
            [f"{name} b{number}", [f"{name} is the director ."]],
        ]
        context += [[f"{other} c{number}", [f"{other} was born in .", f" the director {other} ."]] for other in others]
        gold = [context[0][0], context[1][0]]
        rng.shuffle(context)
        rows.append(
            {
                "_id": f"q{seed}-{number}", "question": f"where was {name} born q {number}", "answer": name,
                "supporting_facts": [[title, 0] for title in gold], "context": context,
                "type": rng.choice(["bridge", "comparison"]), "level": "easy",
            }
        )  # fmt: skip
    return rows


@pytest.fixture
def hotpot_file(tmp_path: Path) -> Path:
    """Forty learnable questions in HotpotQA's layout."""
    path = tmp_path / "hotpot.json"
    path.write_text(json.dumps(hotpot_rows(40)))
    return path
