"""Scoring triples by DR-RAG's classifier, and reranking passages by an estimator, beside CrossEncoder in bf16.

CrossEncoder scores the exported folders.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from sentence_transformers import CrossEncoder

from benchmarks.gpu_day.models import Texts, save_encoder
from benchmarks.gpu_day.sizes import BenchmarkSizes
from benchmarks.gpu_day.turns import OURS, Row, compared
from benchmarks.scoring import workload
from common.records import Passage, passage_text
from models.cross_encoder import RelevanceEstimator
from models.drrag.triple_classifier import PART, TripleClassifier

BATCH = 128  # rows of CrossEncoder
PADDED = "CrossEncoder, padded"
BF16 = {"dtype": torch.bfloat16}


def triples(folder: Path, sizes: BenchmarkSizes, device: torch.device) -> Iterator[Row]:
    """Rows of the classifier."""
    model = save_encoder(folder / "big_bird", "big_bird", sizes, device, attention_type="original_full", num_labels=2)
    classifier = TripleClassifier.build(model, 512).to(device).eval()
    classifier.inference_dtype = torch.bfloat16
    classifier.save(folder)
    cross = CrossEncoder(str(folder / PART), device=device.type, model_kwargs=BF16)
    asked = workload(sizes.triples // 126 + 1, 126, seed=0)[: sizes.triples]
    sep = classifier.encode.tokenizer.sep_token
    pairs = [(question, f"{passage_text(a)} {sep} {passage_text(b)}") for question, a, b in asked]

    def ours() -> None:
        classifier.encode._ids.clear()  # so that each repetition tokenizes again
        classifier.probabilities(asked)

    steps = {OURS: ours, PADDED: lambda: cross.predict(pairs, batch_size=BATCH, show_progress_bar=False)}
    yield from compared("scoring triples, BigBird-base", steps, len(asked), "triples", 2)


def passages(folder: Path, sizes: BenchmarkSizes, device: torch.device) -> Iterator[Row]:
    """Rows of reranking one question's passages: what a user waits for."""
    model = save_encoder(folder / "bert", "bert", sizes, device, num_labels=1)
    estimator = RelevanceEstimator.build(model, 512).to(device).eval()
    estimator.inference_dtype = torch.bfloat16
    estimator.save(folder / "estimator")
    texts = Texts(sizes.words)
    question, found = texts.words(0.1), [Passage.of(texts.words(0.03), texts.words(1.0)) for _ in range(sizes.passages)]
    asked = [(question, passage) for passage in found]
    pairs = [(question, passage_text(passage)) for passage in found]
    cross = CrossEncoder(str(folder / "estimator"), device=device.type, model_kwargs=BF16)

    def ours() -> None:
        estimator.encode._ids.clear()
        estimator.scores(asked)

    steps = {OURS: ours, PADDED: lambda: cross.predict(pairs, batch_size=BATCH, show_progress_bar=False)}
    yield from compared("reranking passages, BERT-base", steps, len(pairs), "passages", sizes.steps)


def measure(sizes: BenchmarkSizes, device: torch.device, peak_tflops: float | None) -> Iterator[Row]:
    """Rows of both."""
    for part in (triples, passages):
        with TemporaryDirectory() as folder:
            yield from part(Path(folder), sizes, device)
