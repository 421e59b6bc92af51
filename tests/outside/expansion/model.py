"""How likely a passage of the first search is a gold one, from the words that it shares with the question.

Shape legend: B passages, F features.
"""

from math import log
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from common.records import Passage, nfkc
from models.serving_manifest import read_manifest, write_manifest

KIND, TEXT_FORMAT = "title_model", "shared words 1"
WEIGHTS, FEATURES = "model.safetensors", 3


def features(question: str, passage: Passage) -> list[float]:
    """Shares of the question's words in the title and in the text, and the length of the text, (F,)."""
    words, title, text = ({*nfkc(each).lower().split()} for each in (question, passage.title, passage.text))
    return [len(words & title) / len(words), len(words & text) / len(words), log(1 + len(text)) / 10]


class TitleModel(nn.Module):
    """Logistic regression."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(FEATURES, 1)

    def forward(self, features_BF: Tensor) -> Tensor:
        """Logits, (B,)."""
        return self.linear(features_BF).squeeze(-1)

    def save(self, folder: Path, **facts: Any) -> None:
        """Write the weights and the manifest into a serving folder."""
        save_file(self.state_dict(), folder / WEIGHTS)
        write_manifest(folder, KIND, TEXT_FORMAT, 0, **facts)

    @classmethod
    def load(cls, folder: Path) -> "TitleModel":
        """The model of a serving folder.  Raises as `read_manifest`."""
        read_manifest(folder, KIND, TEXT_FORMAT)
        model = cls()
        model.load_state_dict(load_file(folder / WEIGHTS))
        return model.eval()

    @torch.inference_mode()
    def best(self, question: str, passages: list[Passage]) -> Passage:
        """The passage that is most likely gold."""
        logits_B = self(torch.tensor([features(question, passage) for passage in passages]))
        return passages[int(logits_B.argmax())]
