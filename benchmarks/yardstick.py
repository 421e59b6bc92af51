"""The speed of this machine: passages per second that MiniLM encodes in fp32.  Times of other machines compare by it.

python -m benchmarks.yardstick [--corpus data/world/corpus.jsonl] [--passages 512]
"""

import argparse
import json
import time
from itertools import islice
from pathlib import Path

import torch

from datamodules.formats.reading import read_passages
from harness.indexing.passage_store import indexed_text
from harness.indexing.sentence_encoder import SentenceEncoder
from models.devices import bf16_flags

WARM_UP = 64  # passages


def main() -> None:
    """Print the yardstick as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=Path("data/world/corpus.jsonl"))
    parser.add_argument("--passages", type=int, default=512)
    options = parser.parse_args()
    texts = [indexed_text(p) for p in islice(read_passages("jsonl", [str(options.corpus)]), options.passages)]
    encoder = SentenceEncoder(device="cpu", precision="fp32")
    encoder.encode_passages(texts[:WARM_UP])
    started = time.perf_counter()
    encoder.encode_passages(texts)
    per_second = len(texts) / (time.perf_counter() - started)
    print(
        json.dumps(
            {
                "minilm_passages_per_second": round(per_second, 1),
                "passages": len(texts),
                "threads": torch.get_num_threads(),
                "bf16": bf16_flags(),
            }
        )
    )


if __name__ == "__main__":
    main()
