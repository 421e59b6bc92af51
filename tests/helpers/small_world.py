"""The small world of the tests: passages of invented words and a random sentence encoder of some 3,000 parameters.

And the sizes of a generated world that is small enough to be written in every test file that looks at one.
"""

import json
import random
from dataclasses import replace
from pathlib import Path

from common.records import Passage
from datamodules.world.world import WorldConfig

SMALL = WorldConfig(
    seed=3, questions=400, singles=200, open_singles=100, web_questions=30, manuals=3, rephrased=0, msrag=0
)
REPHRASED = replace(SMALL, rephrased=240)
WORDS = [
    *("amber", "basin", "cedar", "delta", "ember", "fjord", "glade", "harbour"),
    *("island", "jetty", "kiln", "lagoon", "meadow", "north", "orchard"),
]
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def corpus(count: int, seed: int = 0, longest: int = 20) -> list[Passage]:
    """Distinct passages of random words, of 1 to `longest` words each."""
    rng, passages = random.Random(seed), {}
    while len(passages) < count:
        passage = Passage.of(rng.choice(WORDS), " ".join(rng.choices(WORDS, k=rng.randint(1, longest))))
        passages[passage.id] = passage
    return list(passages.values())


def write_jsonl(path: Path, passages: list[Passage]) -> Path:
    """The corpus as a jsonl file."""
    rows = ({"id": p.id, "title": p.title, "text": p.text} for p in passages)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_encoder(
    folder: Path, seed=0, pooling="mean", normalize=True, prompts=None, max_tokens=16, similarity="cosine"
) -> str:
    """A folder with a random BERT in sentence-transformers' layout."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    torch.manual_seed(seed)
    vocabulary = {word: i for i, word in enumerate([*SPECIALS, *WORDS, "query", ":"])}
    BertTokenizer(vocab=vocabulary, mask_token=None).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=len(vocabulary), max_position_embeddings=32, initializer_range=0.5, **sizes)
    BertModel(config).save_pretrained(folder)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", **({"2_Normalize": "Normalize"} if normalize else {})}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "1_Pooling").mkdir()
    modes = {f"pooling_mode_{mode}": mode.startswith(pooling) for mode in ("cls_token", "mean_tokens", "max_tokens")}
    for name, value in {
        "modules.json": modules,
        "1_Pooling/config.json": {"word_embedding_dimension": 16, **modes},
        "sentence_bert_config.json": {"max_seq_length": max_tokens, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": prompts or {}, "similarity_fn_name": similarity},
    }.items():
        (folder / name).write_text(json.dumps(value), encoding="utf-8")
    return str(folder)
