"""Scoring speed of DR-RAG's classifier (triples per second) compared with two alternatives on the same triples.

    python -m benchmarks.scoring [--pretrained MODEL] [--questions 8] [--pairs 36] [--device auto]

Variants, run alternately several times; the median of each is printed:
  ours           fused attention, each text tokenized once, batches by length under a token budget
  eager          the same with the BigBird attention of transformers
  cross_encoder  CrossEncoder of sentence-transformers on the exported classifier/ folder, concatenated texts
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import CrossEncoder

from benchmarks.serving import WORDS
from benchmarks.training import medians
from common.records import Passage, passage_text
from models.devices import resolve_device
from models.drrag.triple_classifier import PART, TripleClassifier
from models.pretrained import MINILM

Triples = list[tuple[str, Passage, Passage]]


def workload(questions: int, pairs: int, seed: int) -> Triples:
    """Triples with `pairs` pairs (d_i, d') per question, of three first-stage documents d_i.

    Texts of 40 to 140 words.
    """
    generator = torch.Generator().manual_seed(seed)

    def text(low: int, high: int) -> str:
        length = int(torch.randint(low, high, (1,), generator=generator))
        return " ".join(WORDS[i] for i in torch.randint(0, len(WORDS), (length,), generator=generator).tolist())

    triples = []
    for _ in range(questions):
        question = text(10, 20)
        first = [Passage.of(text(1, 4), text(40, 140)) for _ in range(3)]
        second = [Passage.of(text(1, 4), text(40, 140)) for _ in range(pairs // 3)]
        triples += [(question, d_i, other) for d_i in first for other in second]
    return triples


def main() -> None:
    """Print each variant's triples per second and its time relative to ours."""
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
    concatenated = [(q, f"{passage_text(a)} {sep} {passage_text(b)}") for q, a, b in triples]
    with tempfile.TemporaryDirectory() as folder:
        classifier.save(Path(folder))
        cross = CrossEncoder(str(Path(folder) / PART), device=device.type)

        def ours(model: TripleClassifier) -> None:
            model.encode._ids.clear()  # so that each repetition tokenizes again
            model.probabilities(triples)

        variants: dict[str, Callable[[], Any]] = {
            "ours": lambda: ours(classifier),
            "eager": lambda: ours(eager),
            "cross_encoder": lambda: cross.predict(concatenated, batch_size=32, show_progress_bar=False),
        }
        seconds = medians(variants, arguments.repeats)
    print(f"{len(triples)} triples on {device}, {torch.get_num_threads()} threads, median of {arguments.repeats}")
    for name, value in seconds.items():
        print(f"{name:14} {len(triples) / value:8.1f} triples/s   time relative to ours {value / seconds['ours']:.2f}")


if __name__ == "__main__":
    main()
