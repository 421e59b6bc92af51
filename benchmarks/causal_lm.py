"""Speed of a local causal LM.

Replies per second of CausalLm and of transformers' text-generation pipeline, same batch size.

    python -m benchmarks.causal_lm [--model FOLDER] [--chats 200] [--batch 16] [--device cpu]

Without --model: a random Qwen2 of four layers with 256 hidden units. Both decode greedily in fp32; the lengths of the
chats are evenly spread from a tenth of --words to --words. What is compared is the batching, and what log-probabilities
cost.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2Tokenizer, pipeline
from transformers.utils import logging

from common.chat import Chat
from harness.llm.local import CausalLm
from models.loading import save_network

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n"
)
WORDS = [f"word{number}" for number in range(500)]
REPLY_TOKENS = 16


def random_model(folder: Path, **sizes: Any) -> str:
    """A random Qwen2, of four layers or these sizes, with a token for each word; its replies hardly ever end early."""
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    letters = sorted({*"".join(WORDS), "Ġ", "Ċ", *"userastn"})
    vocabulary = {text: number for number, text in enumerate([*specials, *letters])}
    merges = []
    for word in ["Ġ" + word for word in WORDS]:
        for end in range(2, len(word) + 1):
            if word[:end] not in vocabulary:
                vocabulary[word[:end]] = len(vocabulary)
                merges.append((word[: end - 1], word[end - 1]))
    tokenizer = Qwen2Tokenizer(vocabulary, merges, eos_token=specials[2], pad_token=specials[0], chat_template=TEMPLATE)
    torch.manual_seed(0)
    four_layers = {
        "vocab_size": len(tokenizer), "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 4,
        "num_attention_heads": 8, "num_key_value_heads": 4,
    }  # fmt: skip
    config = Qwen2Config(
        **{**four_layers, **sizes}, max_position_embeddings=2048, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
    )  # fmt: skip
    save_network(Qwen2ForCausalLM(config), folder, tokenizer)
    return str(folder)


def seconds(run: Callable[[], object]) -> float:
    """The time of the second of two runs."""
    run()
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--words", type=int, default=300)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    logging.set_verbosity_error()
    rng = random.Random(0)
    lengths = [options.words * (1 + row % 10) // 10 for row in range(options.chats)]
    rng.shuffle(lengths)
    texts = [" ".join(rng.choices(WORDS, k=length)) for length in lengths]
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or random_model(Path(folder) / "model")
        plain = pipeline("text-generation", model, device=options.device, dtype=torch.float32)
        if plain.tokenizer.pad_token_id is None:
            plain.tokenizer.pad_token = plain.tokenizer.eos_token
        plain.tokenizer.padding_side = "left"
        most = max(len(ids) for ids in plain.tokenizer(texts)["input_ids"]) + REPLY_TOKENS
        ours = CausalLm(model, options.device, "fp32", batch_tokens=options.batch * most)
        chats = [Chat.of(text, REPLY_TOKENS, logprobs=True) for text in texts]
        messages = [[{"role": "user", "content": text}] for text in texts]
        settings = {"max_new_tokens": REPLY_TOKENS, "do_sample": False, "batch_size": options.batch}
        replies = ours.reply(chats)
        theirs = [each[0]["generated_text"][-1]["content"] for each in plain(messages, **settings)]
        same = sum(reply.text == text for reply, text in zip(replies, theirs, strict=True))
        print(f"{len(chats)} chats, {torch.get_num_threads()} threads, {options.device}; equal replies: {same}")
        for name, run in (
            ("pipeline", lambda: plain(messages, **settings)),
            ("CausalLm", lambda: ours.reply(chats)),
        ):
            print(f"{name:<9} {len(chats) / seconds(run):6.1f} replies/s")


if __name__ == "__main__":
    main()
