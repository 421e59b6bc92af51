"""The speed of this machine: passages per second that MiniLM encodes in fp32.

Seconds of different machines compare by it.

    python -m benchmarks.yardstick [--corpus data/world/corpus.jsonl] [--passages 512] [--seconds 200]

With --seconds it also prints how long the same work takes on a machine that encodes 55 passages per second.
"""

import argparse
import time
from itertools import islice
from pathlib import Path

import torch
from transformers import AutoModel, AutoTokenizer

from datamodules.formats.reading import read_passages
from harness.indexing.passage_store import indexed_text
from models.devices import bf16_flags
from models.length_batching import length_batches
from models.loading import load_network
from models.pretrained import MINILM, resolve

SLOW = 55.0  # passages per second of the slowest machine that the quickstarts are meant for
WARM_UP = 64  # passages
TOKENS_PER_BATCH = 4096


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--corpus", type=Path, default=Path("data/world/corpus.jsonl"))
    options.add_argument("--passages", type=int, default=512)
    options.add_argument("--seconds", type=float)
    return options


@torch.inference_mode()
def passages_per_second(texts: list[str]) -> float:
    """Speed of MiniLM in fp32 on this machine's CPU.

    Plain transformers, one batch after another on all of torch's threads.

    Not with this project's encoder: the yardstick must not change when the project becomes faster.
    """
    folder = resolve(MINILM)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = load_network(AutoModel, folder, dtype=torch.float32).eval()

    def encode(some: list[str]) -> None:
        tokens = tokenizer(some, truncation=True, max_length=256)
        for rows in length_batches([len(ids) for ids in tokens["input_ids"]], TOKENS_PER_BATCH):
            network(
                **tokenizer.pad({key: [values[r] for r in rows] for key, values in tokens.items()}, return_tensors="pt")
            )

    encode(texts[:WARM_UP])
    started = time.perf_counter()
    encode(texts)
    return len(texts) / (time.perf_counter() - started)


def main() -> None:
    """Measure and print."""
    options = parser().parse_args()
    texts = [indexed_text(p) for p in islice(read_passages("jsonl", [str(options.corpus)]), options.passages)]
    speed = passages_per_second(texts)
    print(
        f"MiniLM, fp32, {torch.get_num_threads()} threads: {speed:.0f} passages per second; "
        f"bf16 instructions: {' '.join(bf16_flags()) or 'none'}"
    )
    if options.seconds is not None:
        print(f"on a machine with {SLOW:.0f} passages per second: {options.seconds * speed / SLOW:.0f} s")


if __name__ == "__main__":
    main()
