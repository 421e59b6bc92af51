"""Passages about invented names, questions on them, and RE-RAG's parts and serving folders with random weights."""

import random
from pathlib import Path

import torch
from transformers import PreTrainedModel

from common.records import Passage, Question
from models.calibration import Calibration
from models.cross_encoder import RelevanceEstimator
from models.rerag.generator import Generator
from models.rerag.model import ReRagModel
from models.rerag.parts import load_generator
from tests.conftest import NAMES
from tests.helpers.tolerances import decide

_RELATIONS = ["was born in the city of", "is the director of the film", "is in the film of", "was in the city of"]
QUESTION = "where was name1 born"
HAMLET = Passage.of("name1", "name1 was born in the city .")
LONDON = Passage.of("name2", "the director of name2 is name3 . " * 3)
CROWD = [
    Passage.of(name, f"{name} was born in {NAMES[-i]} . " + "the film . " * (i % 5)) for i, name in enumerate(NAMES)
]
PAIRS = [(f"where was {NAMES[i % 7]} born", passage) for i, passage in enumerate(CROWD[:12])]


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


def estimator(checkpoints: dict[str, Path], family: str = "t5", max_tokens: int = 64) -> RelevanceEstimator:
    """An estimator that starts from a random model of the family."""
    torch.manual_seed(3)  # the head of an encoder-only model is new
    made = RelevanceEstimator.build(str(checkpoints[family]), max_tokens).eval()
    if family != "t5":
        decide(made.network)
    return made


def generator(checkpoints: dict[str, Path], prefix: str = "", max_tokens: int = 64) -> Generator:
    """A generator that starts from the random T5."""
    return load_generator(str(checkpoints["t5"]), max_tokens, answer_prefix=prefix).eval()


def reading_batch(reader: Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """PAIRS as the generator reads them: token ids and attention mask."""
    return reader.encode.pad(reader.encode([(question, [passage]) for question, passage in PAIRS]))


def vary(network: PreTrainedModel, seed: int) -> None:
    """Make a random T5 decisive: a fresh one says nearly the same of everything."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.dim() == 2 and "relative" not in name:
                parameter.copy_(torch.randn_like(parameter) * (1.0 if "shared" in name else 0.3))
        network.get_input_embeddings().weight[network.config.eos_token_id] = 0  # or most answers are empty


def write_serving(
    pretrained: Path, folder: Path, estimator=True, generator="fid", calibration=None, threshold=None, max_tokens=64,
    temperature=1.0, retriever_temperature=None, seed=3, refusal_contexts=None,
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
