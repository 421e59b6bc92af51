"""RE-RAG's estimator and generator as adapters of one small causal LM, and questions and passages for them."""

from pathlib import Path

import torch

from common.records import Passage
from models.causal_part import load_causal
from models.cross_encoder import RelevanceEstimator
from models.lora import Lora
from models.rerag.causal_generator import CausalGenerator
from tests.helpers.tiny_lm import PLACES, VALUES, document

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
    with torch.no_grad():
        for name, weight in lm.network.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.2)
    return RelevanceEstimator.of_lm(lm, 64, LABEL_WORDS), CausalGenerator(lm, 64)
