"""The same ids, scores and answers on a GPU as on the CPU: encoder, dense search, classifier, estimator, generator.

In fp32 they agree within rounding, in bf16 within bf16's.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.dense import DenseRetriever, build_dense
from models.drrag.triple_classifier import TripleClassifier
from models.rerag.generator import Generator
from models.rerag.marginal_reader import MarginalReader
from tests.helpers.devices import cpu_and_gpu
from tests.helpers.rerag_world import CROWD, PAIRS, estimator, generator, reading_batch
from tests.helpers.small_world import WORDS, corpus
from tests.helpers.tolerances import decide, model_tolerance

QUERIES = ["amber fjord", "kiln", "lagoon lagoon meadow", *WORDS]
TRIPLES = [(question, passage, CROWD[-row - 1]) for row, (question, passage) in enumerate(PAIRS)]
BF16_ROUNDING = 2.0**-9


def assert_scores(here: Sequence[float], there: Sequence[float], tolerance: float, order: bool = True) -> None:
    """Scores agree, and the tolerance could not hide another order."""
    np.testing.assert_allclose(here, there, rtol=0, atol=tolerance)
    if order:
        assert min(b - a for a, b in itertools.pairwise(sorted(there))) > tolerance
        assert np.argsort(here).tolist() == np.argsort(there).tolist()


def model_tolerance_of(scores: Sequence[float]) -> float:
    return model_tolerance(max(map(abs, scores)))


def bf16_tolerance(scores: Sequence[float]) -> float:
    """Sums of a thousand terms err by sqrt(1000) roundings."""
    return 32 * BF16_ROUNDING * max(map(abs, scores))


def moved(batch: tuple[Tensor, Tensor], device: str) -> tuple[Tensor, Tensor]:
    return batch[0].to(device), batch[1].to(device)


@cpu_and_gpu("equal embeddings of the sentence encoder on CPU and GPU")
def test_embeddings(encoder_folder: str, encoder: SentenceEncoder, device: str) -> None:
    there = encoder.encode_queries(QUERIES)  # of length 1
    for precision, tolerance in (("fp32", model_tolerance()), ("bf16", 32 * BF16_ROUNDING)):
        here = SentenceEncoder(encoder_folder, device, precision=precision).encode_queries(QUERIES)  # type: ignore[arg-type]
        np.testing.assert_allclose(here, there, rtol=0, atol=tolerance)
        assert np.abs(there[0] - there[1]).max() > tolerance


@cpu_and_gpu("equal ids of dense retrieval on CPU and GPU")
def test_ids_of_dense_retrieval(tmp_path: Path, encoder_folder: str, encoder: SentenceEncoder, device: str) -> None:
    build_dense(corpus(70), tmp_path / "index", encoder, chunk_passages=16)
    on_cpu = DenseRetriever(tmp_path / "index", "cpu", index_device="cpu")  # `auto` would be FAISS's GPU in both
    there = DenseRetriever(tmp_path / "index", device)
    vectors = on_cpu.encoder.encode_queries(QUERIES)  # of one device: the search must not add a difference
    ours, theirs = on_cpu.search_vectors(vectors, 10), there.search_vectors(vectors, 10)
    assert [[(hit.passage.id, hit.score) for hit in found] for found in ours] == [
        [(hit.passage.id, hit.score) for hit in found] for found in theirs
    ]


@cpu_and_gpu("equal log-odds of the classifier on CPU and GPU")
@pytest.mark.parametrize("attention", ["fused", "full", "block_sparse"])
def test_log_odds_of_the_classifier(checkpoints: dict[str, Path], attention: str, device: str) -> None:
    torch.manual_seed(0)
    classifier = TripleClassifier.build(str(checkpoints["bert"]), 96, attention).eval()  # type: ignore[arg-type]
    decide(classifier.network)
    batch = classifier.pad([classifier.encode(*triple) for triple in TRIPLES])
    with torch.inference_mode():
        there = classifier(*batch).tolist()
        classifier.to(device)
        here = classifier(*moved(batch, device)).tolist()
    assert_scores(here, there, model_tolerance_of(there))
    classifier.inference_dtype = torch.bfloat16
    served = classifier.probabilities(TRIPLES)
    odds = np.log(np.array(served)) - np.log1p(-np.array(served))
    assert_scores(odds.tolist(), there, bf16_tolerance(there), order=False)


@cpu_and_gpu("equal relevance logits of the estimator on CPU and GPU")
@pytest.mark.parametrize("family", ["t5", "bert", "big_bird", "roberta"])
def test_relevance_logits_of_the_estimator(checkpoints: dict[str, Path], family: str, device: str) -> None:
    re = estimator(checkpoints, family)
    batch = re.encode.pad(re.encode([(question, [passage]) for question, passage in PAIRS]))
    with torch.inference_mode():
        there = re(*batch).score_P.tolist()
        re.to(device)
        here = re(*moved(batch, device)).score_P.tolist()
    assert_scores(here, there, model_tolerance_of(there))
    re.inference_dtype = torch.bfloat16
    assert_scores(re.scores(PAIRS), there, bf16_tolerance(there), order=False)


def margins(reader: Generator, tokens: int) -> float:
    """The smallest difference between the best and the second-best next token of greedy answers on the CPU."""
    ids, attention = reading_batch(reader)
    written = reader.network.generate(
        input_ids=ids, attention_mask=attention, max_new_tokens=tokens, do_sample=False, output_logits=True,
        return_dict_in_generate=True,
    )  # fmt: skip
    best = torch.stack(written.logits).topk(2).values
    return float((best[..., 0] - best[..., 1]).min())


@cpu_and_gpu("equal answers and answer probabilities of the generator on CPU and GPU")
def test_answers_of_the_generator(checkpoints: dict[str, Path], device: str) -> None:
    reader, tokens = generator(checkpoints), 2
    decide(reader.network)
    labels = reader.labels(["name3", "the city of name4", "", "no"] * 3)
    with torch.inference_mode():
        there = reader(*reading_batch(reader), labels).tolist()
        assert margins(reader, tokens) > model_tolerance_of(there)  # or rounding may choose another token
        written = reader.write(reader.encode_contexts(*reading_batch(reader)), tokens)
        reader.to(device)
        batch = moved(reading_batch(reader), device)
        here = reader(*batch, labels.to(device)).tolist()
        assert reader.write(reader.encode_contexts(*batch), tokens) == written
    assert len(set(written)) > 1
    assert_scores(here, there, model_tolerance_of(there), order=False)


@cpu_and_gpu("marginalized answers on a GPU")
def test_readings_marginalize_on_the_device(checkpoints: dict[str, Path], device: str) -> None:
    reader = generator(checkpoints).to(device)
    reader.inference_dtype = torch.bfloat16
    questions = [PAIRS[0][0], PAIRS[1][0]]
    contexts = [[passage for _, passage in PAIRS[:5]], [passage for _, passage in PAIRS[5:8]]]
    for matrix, passages in zip(MarginalReader(reader).matrices(questions, contexts), contexts, strict=True):
        assert len(matrix.written) == len(passages)
        assert matrix.answer_logp_AN is not None
        assert matrix.answer_logp_AN.dtype == torch.float32
        assert matrix.answer_logp_AN.isfinite().all()
        assert (matrix.answer_logp_AN <= 0).all()
    batched = reader.answers([(question, passages[:1]) for question, passages in zip(questions, contexts, strict=True)])
    assert len(batched) == 2
