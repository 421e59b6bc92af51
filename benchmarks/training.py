"""Speed of a training step of RE-RAG's two kinds of model beside the same models as transformers computes them.

    python -m benchmarks.training [--rows 32] [--tokens 80] [--layers 3] [--precision bf16] [--repeats 12]

Each step is a forward and a backward pass over one batch of random tokens, on all of torch's threads; no optimizer. The
variants run in turns, and the median of each is printed with transformers' divided by ours. The classifier is MiniLM's
first layers with a new head, the T5 the size of the world's reader, from random weights.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, PreTrainedModel, T5Config, T5ForConditionalGeneration

from models.devices import bf16_flags
from models.first_token import compute_first_token
from models.full_precision import keep_heads_in_fp32
from models.pretrained import MINILM, resolve
from models.sdpa import train_fast_on_cpu

ANSWER_TOKENS, VOCABULARY = 8, 4053  # of the world's reader

Step = Callable[[], None]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=32)
    options.add_argument("--tokens", type=int, default=80)
    options.add_argument("--layers", type=int, default=3, help="of the classifier")
    options.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    options.add_argument("--repeats", type=int, default=12)
    return options


def classifier(layers: int, ours: bool) -> PreTrainedModel:
    """A sequence classifier of one label."""
    network = AutoModelForSequenceClassification.from_pretrained(
        resolve(MINILM), num_labels=1, num_hidden_layers=layers, dtype=torch.float32
    )
    keep_heads_in_fp32(network)
    if ours:
        train_fast_on_cpu(network)
        compute_first_token(network)
    return network.train()


def t5(ours: bool) -> PreTrainedModel:
    """A T5 of two layers."""
    config = T5Config(
        vocab_size=VOCABULARY, d_model=128, d_kv=32, d_ff=512, num_layers=2, num_heads=4, dropout_rate=0.0,
        decoder_start_token_id=0,
    )  # fmt: skip
    network = T5ForConditionalGeneration(config)
    keep_heads_in_fp32(network)
    if ours:
        train_fast_on_cpu(network)
    return network.train()


def step_of(network: PreTrainedModel, options: argparse.Namespace) -> Step:
    """A step on batches that are the same for every network."""
    random = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 4000, (options.rows, options.tokens), generator=random)
    lengths = torch.randint(options.tokens // 2, options.tokens + 1, (options.rows, 1), generator=random)
    batch = {"input_ids": ids, "attention_mask": (torch.arange(options.tokens) < lengths).long()}
    if network.config.is_encoder_decoder:
        batch["labels"] = torch.randint(5, 4000, (options.rows, ANSWER_TOKENS), generator=random)
    else:
        batch["labels"] = torch.zeros(options.rows, 1)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
            loss = network(**batch).loss
        loss.backward()
        network.zero_grad()

    return step


def wait() -> None:
    """Wait until a GPU, where there is one, has computed what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def medians(steps: dict[str, Step], repeats: int) -> dict[str, float]:
    """Median seconds of each step; they run in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(repeats + 2):
        for name, step in steps.items():
            wait()
            started = time.perf_counter()
            step()
            wait()
            if number >= 2:  # the first ones compile kernels
                seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(each) for name, each in seconds.items()}


def main() -> None:
    """Measure and print."""
    options = parser().parse_args()
    print(
        f"{options.rows} rows of at most {options.tokens} tokens, {options.precision}, {torch.get_num_threads()} "
        f"threads; bf16 instructions: {' '.join(bf16_flags()) or 'none'}"
    )
    models: dict[str, Callable[[bool], PreTrainedModel]] = {
        f"classifier, {Path(MINILM).name}, {options.layers} layers": lambda ours: classifier(options.layers, ours),
        "T5, 2 layers": t5,
    }
    for name, build in models.items():
        found = medians(
            {kind: step_of(build(kind == "ours"), options) for kind in ("ours", "transformers")}, options.repeats
        )
        print(
            f"{name}: ours {1000 * found['ours']:.0f} ms, transformers {1000 * found['transformers']:.0f} ms, "
            f"{found['transformers'] / found['ours']:.2f} times ours"
        )


if __name__ == "__main__":
    main()
