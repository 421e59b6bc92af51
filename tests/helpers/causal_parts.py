"""RE-RAG's estimator and generator as adapters of one small causal LM, and questions and passages for them."""

from collections.abc import Sequence
from pathlib import Path

import torch

from common.records import Passage
from models.causal_lm import CausalLanguageModel
from models.causal_part import load_causal
from models.cross_encoder import RelevanceEstimator
from models.lora import Lora
from models.rerag.causal_generator import CausalGenerator
from tests.helpers.tiny_lm import PLACES, VALUES, document
from tests.helpers.tolerances import move_adapters

QUESTIONS = [f"What is the stone of {place} ?" for place in PLACES[:4]]
PASSAGES = [Passage.of("" if n % 3 else place, document("stone", place, VALUES[n]) + " The end ." * (n % 4))
            for n, place in enumerate(PLACES[:7])]  # fmt: skip
ROWS = [(QUESTIONS[n % 4], [passage]) for n, passage in enumerate(PASSAGES)]
LABEL_WORDS = ("gold", "jade")  # single tokens of the tiny vocabularies


def pair(folder: Path, checkpointing: bool = False) -> tuple[RelevanceEstimator, CausalGenerator]:
    """Two parts on one base model, whose adapters are random."""
    parts = ("estimator", "generator")
    torch.manual_seed(2)
    lm = load_causal(str(folder), "generator", None, checkpointing, Lora(4), parts)
    move_adapters(lm.network, 0.2)
    return RelevanceEstimator.of_lm(lm, 64, LABEL_WORDS), CausalGenerator(lm, 64)


def alone(model: CausalLanguageModel | CausalGenerator, prompt: Sequence[int], reply: Sequence[int]) -> float:
    """log P of a reply, one token at a time without padding; every end token is the end."""
    total, ids = 0.0, list(prompt)
    for token in reply:
        logp_V = model.network(input_ids=torch.tensor([ids])).logits[0, -1].double().log_softmax(0)
        total += float(logp_V[model.end_ids].logsumexp(0) if token in model.end_ids else logp_V[token])
        ids.append(token)
    return total
