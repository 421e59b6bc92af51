"""Tiny causal LMs, trained in a few seconds to answer from the document in the prompt.

With a chat template, and without.

The task, as the text of a chat's user message, and the reply: the value in the last document, or "unknown" without one.

    <passage>
    The stone of lima is opal .
    </passage> Question: What is the stone of lima ?    opal
    Question: What is the stone of lima ?               unknown
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from models.length_batching import IGNORE, pad
from models.loading import save_network

ATTRIBUTES = ("river", "stone")
PLACES = tuple(
    ["alfa", "bravo", "delta", "echo", "hotel", "india", "kilo", "lima", "oscar", "papa", "quebec", "romeo", "sierra",
    "tango", "victor", "zulu"]
)  # fmt: skip
VALUES = tuple(
    ["amber", "azure", "coral", "ebony", "gold", "green", "ivory", "jade", "lilac", "olive", "opal", "pearl", "ruby",
    "silver", "teal", "topaz"]
)  # fmt: skip
UNKNOWN = "unknown"
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CONTEXT = 2048  # tokens that the chat model reads and writes together; the model without template: PLAIN_CONTEXT
PLAIN_CONTEXT = 128
STEPS, BATCH, LEARNING_RATE = 120, 16, 4e-3

Case = tuple[str, str]  # text of the user message, and the reply


def document(attribute: str, place: str, value: str) -> str:
    """A document of the task."""
    return f"The {attribute} of {place} is {value} ."


def question(attribute: str, place: str) -> str:
    """A question of the task."""
    return f"What is the {attribute} of {place} ?"


def cases(count: int, seed: int = 0, documents: int | None = None) -> list[Case]:
    """User messages with `documents` documents, at most 16 (0 to 3 when None), and their replies; as the seed says."""
    rng, made = random.Random(seed), []
    for _ in range(count):
        shown = rng.randint(0, 3) if documents is None else documents
        pairs = zip(rng.sample(PLACES, shown), rng.sample(VALUES, shown), strict=True)
        facts = [(rng.choice(ATTRIBUTES), *pair) for pair in pairs]
        attribute, place, reply = facts[-1] if facts else (rng.choice(ATTRIBUTES), rng.choice(PLACES), UNKNOWN)
        framed = "\n\n".join(f"<passage>\n{document(*fact)}\n</passage>" for fact in facts)  # as prompts show documents
        made.append((f"{framed} Question: {question(attribute, place)}".strip(), reply))
    return made


def byte_pairs(texts: Sequence[str], specials: Sequence[str], vocabulary: int) -> dict[str, Any]:
    """Vocabulary and merges of a byte-level BPE, which has tokens for any text, as arguments of a tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=list(specials), show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(pair) for pair in model["merges"]]}


def save_chat_lm(folder: Path) -> Path:
    """A Qwen2 of two layers with ChatML's template; a reply ends with <|im_end|> or <|endoftext|>."""
    known = cases(2000, seed=1)
    texts = [f"user\n{user}\nassistant\n{reply} {reply}\nsystem\n" for user, reply in known]
    tokenizer = transformers.Qwen2Tokenizer(
        **byte_pairs(texts, SPECIALS, 640), pad_token=SPECIALS[0], eos_token=SPECIALS[2],
        extra_special_tokens=[SPECIALS[1]], chat_template=CHATML, model_max_length=CONTEXT,
    )  # fmt: skip
    pad_id, _, end_id = tokenizer.convert_tokens_to_ids(list(SPECIALS))
    torch.manual_seed(0)
    network = transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(
            vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=CONTEXT, tie_word_embeddings=True,
            initializer_range=0.05, pad_token_id=pad_id, eos_token_id=end_id, bos_token_id=None,
        )
    )  # fmt: skip
    asked = [[{"role": "user", "content": user}] for user, _ in known]
    prompts = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
    replies = [f"{reply}{SPECIALS[2]}" for _, reply in known]
    rows = list(zip(*(tokenizer(texts)["input_ids"] for texts in (prompts, replies)), strict=True))
    train(network, rows, pad_id)
    network.generation_config = transformers.GenerationConfig(eos_token_id=[end_id, pad_id], pad_token_id=pad_id)
    save_network(network, folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_plain_lm(folder: Path) -> Path:
    """A GPT-2 of two layers without chat template and without padding token.

    The reply follows the text of the message and a line break; it ends with <|endoftext|>.
    """
    known = cases(2000, seed=2)
    end = SPECIALS[0]
    pairs = byte_pairs([f"{user}\n{reply} {reply}" for user, reply in known], [end], 512)
    tokenizer = transformers.GPT2Tokenizer(**pairs, model_max_length=PLAIN_CONTEXT)
    end_id = tokenizer.eos_token_id
    torch.manual_seed(0)
    network = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=len(tokenizer), n_embd=64, n_layer=2, n_head=4, n_positions=PLAIN_CONTEXT,
            initializer_range=0.05, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=end_id,
            eos_token_id=end_id,
        )
    )  # fmt: skip
    parts = [f"{user}\n" for user, _ in known], [f"{reply}{end}" for _, reply in known]
    rows = list(zip(*(tokenizer(texts)["input_ids"] for texts in parts), strict=True))
    train(network, rows, end_id, 2 * BATCH)
    save_network(network, folder)
    tokenizer.save_pretrained(folder)
    return folder


def train(network: transformers.PreTrainedModel, rows: Sequence[tuple], pad_id: int, batch: int = BATCH) -> None:
    """Train on the replies of (prompt ids, reply ids), in place; the network is in evaluation mode afterwards."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=STEPS, pct_start=0.2)
    network.train()
    rng = random.Random(0)
    for _ in range(STEPS):
        chosen = rng.sample(rows, min(batch, len(rows)))
        ids_PT, attention_PT = pad([prompt + reply for prompt, reply in chosen], pad_id, 10**6)
        labels_PT = ids_PT.masked_fill(attention_PT == 0, IGNORE)
        for row, (prompt, _) in enumerate(chosen):
            labels_PT[row, : len(prompt)] = IGNORE
        network(input_ids=ids_PT, attention_mask=attention_PT, labels=labels_PT).loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    network.eval()
