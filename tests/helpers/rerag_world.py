"""Passages about invented names, questions on them, and RE-RAG folders with random T5s, for the harness's tests."""

import random
from pathlib import Path

import torch
from transformers import PreTrainedModel

from common.records import Passage, Question
from models.calibration import Calibration
from models.context_tokenizer import ContextFormat
from models.cross_encoder import RelevanceEstimator
from models.rerag.model import ReRagModel
from models.rerag.parts import load_generator
from tests.conftest import NAMES

_RELATIONS = ["was born in the city of", "is the director of the film", "is in the film of", "was in the city of"]


def corpus(count: int = 24, seed: int = 0) -> list[Passage]:
    """Distinct passages of one to four facts each."""
    chance, passages = random.Random(seed), {}
    while len(passages) < count:
        facts = [
            f"{chance.choice(NAMES)} {chance.choice(_RELATIONS)} {chance.choice(NAMES)} ."
            for _ in range(chance.randint(1, 4))
        ]
        passage = Passage.of(chance.choice(NAMES), " ".join(facts))
        passages[passage.id] = passage
    return list(passages.values())


def questions(passages: list[Passage], count: int = 5, own: int = 6, seed: int = 1) -> list[Question]:
    """Questions that share words with the corpus, each shipping some of it."""
    chance = random.Random(seed)
    return [
        Question(f"q{number}", f"where was {chance.choice(NAMES)} born", passages=tuple(chance.sample(passages, own)))
        for number in range(count)
    ]


def vary(network: PreTrainedModel, seed: int) -> None:
    """Make a random T5 decisive: a fresh one says nearly the same of everything."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.dim() == 2 and "relative" not in name:
                parameter.copy_(torch.randn_like(parameter) * (1.0 if "shared" in name else 0.3))
        network.get_input_embeddings().weight[network.config.eos_token_id] = 0  # or most answers are empty


def write_serving(
    pretrained: Path, folder: Path, estimator: bool = True, generator: ContextFormat | None = "fid",
    calibration: Calibration | None = None, threshold: float | None = None, max_tokens: int = 64,
    temperature: float = 1.0, retriever_temperature: float | None = None, seed: int = 3,
    refusal_contexts: int | None = None
) -> Path:  # fmt: skip
    """A serving folder with the parts asked for; with `retriever_temperature` the generator counts as trained with the
    retriever's weights."""
    scores = RelevanceEstimator.build(str(pretrained), max_tokens) if estimator else None
    writes = load_generator(str(pretrained), max_tokens, generator) if generator else None
    for part_seed, part in enumerate((scores, writes), start=seed):
        if part is not None:
            vary(part.network, part_seed)
    folder.mkdir()
    relevance = "estimator" if estimator else None if retriever_temperature is None else "retriever"
    ReRagModel(
        scores, writes, calibration or Calibration(), threshold, 4, temperature, relevance=relevance,
        retriever_temperature=retriever_temperature, refusal_contexts=refusal_contexts,
    ).save(folder)  # fmt: skip
    return folder
