"""What bf16 costs and gains DR-RAG's classifier.

Pairs per second, change of P, and AUC, in fp32 and bf16 on the same triples.

    python -m benchmarks.precision --serving checkpoints/drrag-world/serving --questions data/world/validation.json

Triples of a question: two gold passages are positive; a gold and another passage, in the file's order, negative.
"""

import argparse
import time
from itertools import permutations
from pathlib import Path

import numpy as np
import torch

from common.records import Passage
from datamodules.formats.reading import read_questions
from models.devices import bf16_flags
from models.drrag.triple_classifier import TripleClassifier
from models.metrics import auroc

NEGATIVES = 4  # per question


def labelled_triples(layout: str, file: str, limit: int) -> tuple[list[tuple[str, Passage, Passage]], list[bool]]:
    """Triples of the first `limit` questions and whether each is positive."""
    triples, labels = [], []
    for question in read_questions(layout, file, limit=limit):
        others = [passage for passage in question.passages if passage.id not in question.support]
        positive = list(permutations(question.gold, 2))
        negative = [(gold, other) for gold in question.gold[:1] for other in others[:NEGATIVES]]
        triples += [(question.text, *pair) for pair in [*positive, *negative]]
        labels += [True] * len(positive) + [False] * len(negative)
    return triples, labels


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serving", type=Path, required=True)
    parser.add_argument("--questions", required=True)
    parser.add_argument("--layout", default="hotpotqa")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    triples, labels = labelled_triples(options.layout, options.questions, options.limit)
    classifier = TripleClassifier.load(options.serving, options.device)
    probabilities: dict[torch.dtype, np.ndarray] = {}
    print(
        f"{len(triples)} triples, {sum(labels)} positive; {torch.get_num_threads()} threads; bf16: "
        f"{' '.join(bf16_flags())}"
    )
    for dtype in (torch.float32, torch.bfloat16):
        classifier.inference_dtype = dtype
        classifier.probabilities(triples[:32])  # warm-up
        started = time.perf_counter()
        probabilities[dtype] = np.array(classifier.probabilities(triples))
        seconds = time.perf_counter() - started
        area = auroc(probabilities[dtype], np.array(labels))
        print(f"{str(dtype).removeprefix('torch.'):<9} {len(triples) / seconds:6.1f} triples/s   AUC {area:.4f}")
    change = np.abs(probabilities[torch.bfloat16] - probabilities[torch.float32])
    print(
        f"change of P: median {np.median(change):.5f}, 95th percentile {np.quantile(change, 0.95):.5f}, largest "
        f"{change.max():.5f}"
    )


if __name__ == "__main__":
    main()
