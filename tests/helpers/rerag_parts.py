"""RE-RAG's estimator and generator with random weights, and questions and passages about invented names for them."""

from pathlib import Path

import torch

from common.records import Passage
from models.cross_encoder import RelevanceEstimator
from models.rerag.generator import Generator
from models.rerag.parts import load_generator
from tests.conftest import NAMES
from tests.helpers.tolerances import decide

QUESTION = "where was name1 born"
HAMLET = Passage.of("name1", "name1 was born in the city .")
LONDON = Passage.of("name2", "the director of name2 is name3 . " * 3)
CROWD = [
    Passage.of(name, f"{name} was born in {NAMES[-i]} . " + "the film . " * (i % 5)) for i, name in enumerate(NAMES)
]
PAIRS = [(f"where was {NAMES[i % 7]} born", passage) for i, passage in enumerate(CROWD[:12])]


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
