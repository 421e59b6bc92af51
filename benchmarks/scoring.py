"""Triples a second of DR-RAG's classifier against what a user would pick instead, on the same triples in one run.

    python -m benchmarks.scoring [--pretrained MODEL] [--questions 8] [--pairs 36] [--device auto]

Sides, taken in turn and repeated; the best time of each counts:
  ours           fused attention, texts tokenized once, length batches under a token budget
  eager          the same with transformers' own BigBird attention
  cross_encoder  sentence-transformers' CrossEncoder on the exported classifier/ folder: joined text, its own batching
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from sentence_transformers import CrossEncoder

from common.records import Passage
from models.devices import resolve_device
from models.drrag.triple_classifier import PART, TripleClassifier
from models.pretrained import MINILM
from models.text_formats import passage_text

Triples = list[tuple[str, Passage, Passage]]


def workload(questions: int, pairs: int, seed: int) -> Triples:
    """Per question so many (d_i, d') pairs out of three first-stage documents; texts of 40 to 140 words."""
    generator = torch.Generator().manual_seed(seed)
    words = [
        "river",
        "company",
        "film",
        "director",
        "born",
        "city",
        "founded",
        "album",
        "player",
        "team",
        "year",
        "season",
        "state",
        "house",
        "north",
    ]

    def text(low: int, high: int) -> str:
        length = int(torch.randint(low, high, (1,), generator=generator))
        return " ".join(words[i] for i in torch.randint(0, len(words), (length,), generator=generator).tolist())

    triples = []
    for _ in range(questions):
        question = text(10, 20)
        first = [Passage.of(text(1, 4), text(40, 140)) for _ in range(3)]
        second = [Passage.of(text(1, 4), text(40, 140)) for _ in range(pairs // 3)]
        triples += [(question, d_i, other) for d_i in first for other in second]
    return triples


def main() -> None:
    """Print triples per second of each side and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pretrained", default=MINILM)
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=36)
    parser.add_argument("--max_tokens", type=int, default=384)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    device = resolve_device(arguments.device)
    torch.manual_seed(0)
    classifier = TripleClassifier.build(arguments.pretrained, arguments.max_tokens, "fused").to(device).eval()
    eager = TripleClassifier.build(arguments.pretrained, arguments.max_tokens, "full").to(device).eval()
    eager.load_state_dict(classifier.state_dict())
    triples = workload(arguments.questions, arguments.pairs, seed=0)
    sep = classifier.encode.tokenizer.sep_token
    joined = [(q, f"{passage_text(a)} {sep} {passage_text(b)}") for q, a, b in triples]
    with tempfile.TemporaryDirectory() as folder:
        classifier.save(Path(folder))
        cross = CrossEncoder(str(Path(folder) / PART), max_length=arguments.max_tokens, device=device.type)

        def ours(model: TripleClassifier) -> None:
            model.encode._ids.clear()  # each repeat pays for its own tokenization
            model.probabilities(triples)

        sides: dict[str, Callable[[], object]] = {
            "ours": lambda: ours(classifier),
            "eager": lambda: ours(eager),
            "cross_encoder": lambda: cross.predict(joined, batch_size=32, show_progress_bar=False),
        }
        seconds = dict.fromkeys(sides, float("inf"))
        for _ in range(arguments.repeats + 1):
            for name, run in sides.items():
                started = time.perf_counter()
                run()
                seconds[name] = min(seconds[name], time.perf_counter() - started)
    print(f"{len(triples)} triples on {device}, {torch.get_num_threads()} threads, best of {arguments.repeats + 1}")
    for name, value in seconds.items():
        print(f"{name:14} {len(triples) / value:8.1f} triples/s   ours / it = {value / seconds['ours']:.2f}")


if __name__ == "__main__":
    main()
