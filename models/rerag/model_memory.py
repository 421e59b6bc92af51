"""Memory of RE-RAG's estimator and generator at inference, from a serving folder's manifest and `config.json` files.

Shape legend: P contexts, T tokens, A answer tokens.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification, AutoTokenizer

from models.live_memory import Compute, PartMemory, batch_size, empty_network, forward_memory
from models.rerag.context_tokenizer import ContextEncoder
from models.rerag.estimator import TOKENS_PER_BATCH, RelevanceEstimator
from models.rerag.generator import Generator
from models.rerag.marginal_reader import TOKENS_PER_GROUP
from models.rerag.model import ESTIMATOR, GENERATOR, input_of, label_words_of, read_model_manifest
from models.seq2seq_memory import decode_last

_STATE_BYTES = 4  # encoder states are fp32 in both precisions


def model_memory(
    serving: Path,
    compute: Compute,
    questions: int,
    scored_passages: int = 0,
    read: int = 0,
    scored: bool = False,
    needs: tuple[str, ...] = (),
    unneeded: tuple[str, ...] = (),
) -> dict[str, PartMemory]:
    """Memory of the parts of a serving folder by name, with inputs of the maximum length.

    A part that is loaded and not used has no activations.

    Args:
        serving: Folder that training exported; no weights are read.
        compute: Precision and device.
        questions: Questions at once.
        scored_passages: Passages of a question that the estimator scores.
        read: Inputs of a question that the generator reads.
        scored: Whether answers are scored, under every context of their question.
        needs: Parts that the folder must hold: ESTIMATOR, GENERATOR.
        unneeded: Parts that are not loaded.

    Raises:
        MissingInputError: If the folder does not exist.
        ArtifactError: If its manifest is corrupt or of another kind or text format, or it lacks a part.
    """
    manifest = read_model_manifest(serving, needs, check_files=False)
    parts = {name: part for name, part in manifest["parts"].items() if name not in unneeded}
    counted = {}
    if ESTIMATOR in parts:
        network, encode, weights = _empty_part(serving, ESTIMATOR, parts)
        estimator = RelevanceEstimator(network, encode, label_words_of(serving, parts[ESTIMATOR]))
        counted[ESTIMATOR] = scoring_memory(estimator, weights, questions * scored_passages, compute)
    if GENERATOR in parts:
        network, encode, weights = _empty_part(serving, GENERATOR, parts)
        counted[GENERATOR] = PartMemory(weights)
        if read:
            generator = Generator(network, encode, manifest["answer_prefix"])
            counted[GENERATOR] = _reading_memory(
                generator, weights, questions, read, manifest["max_answer_tokens"], scored, compute
            )
    return counted


def scoring_memory(estimator: RelevanceEstimator, weights: int, pairs: int, compute: Compute) -> PartMemory:
    """Memory of scoring that many (question, passage) pairs at once.

    Args:
        estimator: With a network without weights.
        weights: Bytes of the weights.
        pairs: Without any, the estimator has no activations.
        compute: Precision and device.
    """
    if not pairs:
        return PartMemory(weights)
    tokens = estimator.encode.max_tokens
    rows, at_once = batch_size(pairs, tokens, TOKENS_PER_BATCH[compute.device], compute)
    return forward_memory(estimator.network, weights, estimator, (rows, tokens), at_once, compute)


def _reading_memory(
    generator: Generator, weights: int, questions: int, read: int, answer_tokens: int, scored: bool, compute: Compute
) -> PartMemory:
    """Memory of generating answers, and of scoring them; arguments as in `model_memory`."""
    tokens = generator.encode.max_tokens
    rows, _ = batch_size(questions * read, tokens, TOKENS_PER_BATCH[compute.device], compute)

    def answers(ids_PT: Tensor, attention_PT: Tensor) -> None:
        encoded = generator.encode_contexts(ids_PT, attention_PT)
        decode_last(generator.network, encoded.states_PTH, attention_PT, answer_tokens)
        if scored:
            every_P = torch.arange(len(ids_PT), device=ids_PT.device)
            labels_PA = torch.ones(len(ids_PT), answer_tokens, dtype=torch.long, device=ids_PT.device)
            generator.answer_logp(encoded.rows(every_P), labels_PA)

    memory = forward_memory(generator.network, weights, answers, (rows, tokens), 1, compute)
    if generator.encode.packed:
        return memory
    held = min(questions * read * tokens, max(TOKENS_PER_GROUP, read * tokens))  # states of a group of questions
    kept = (held - rows * tokens) * (generator.network.config.d_model * _STATE_BYTES + torch.long.itemsize)
    return PartMemory(memory.weights, memory.copies, memory.batch, kept=kept)


def _empty_part(serving: Path, name: str, parts: dict[str, Any]) -> tuple[Any, ContextEncoder, int]:
    """A part's network without weights, its tokenizer, and the bytes of its weights."""
    folder = serving / name
    config = AutoConfig.from_pretrained(str(folder))
    options = {"attention_type": "original_full"} if config.model_type == "big_bird" else {}
    family = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForSequenceClassification
    network, weights = empty_network(family, folder, **options)
    return network, ContextEncoder(AutoTokenizer.from_pretrained(str(folder)), *input_of(serving, parts[name])), weights
