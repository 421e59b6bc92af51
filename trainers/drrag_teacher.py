"""The teacher of a DR-RAG classifier.

A trained one whose log-odds the student learns beside the labels (Hinton et al. 2015).
"""

from collections.abc import Sequence
from pathlib import Path

import pytorch_lightning as pl
import torch
from torch import Tensor

from common.errors import UserError
from models.drrag.triple_classifier import TripleClassifier, read_classifier_manifest
from models.drrag.triple_tokenizer import Chain


def check_teacher(serving: Path) -> None:
    """Raise MissingInputError or ArtifactError unless the folder is a classifier's.

    Its files are read when it is loaded.
    """
    read_classifier_manifest(serving, check_files=False)


class Teacher:
    """Scores a student's examples by their texts, so that its tokenizer, its length and its size may be others.

    It is no `torch.nn.Module`: checkpoints, the optimizer, and the gradients that processes share do not know it.

    Args:
        serving: Folder that training exported.
        trainer: Says device and precision.
        most_documents: That the student's examples have.

    Raises:
        UserError: If it was trained on chains of fewer documents than the student is.
        MissingInputError: If the folder does not exist.
        ArtifactError: If it is corrupt or of another kind.
    """

    def __init__(self, serving: Path, trainer: pl.Trainer, most_documents: int) -> None:
        half = str(trainer.precision).startswith("bf16")
        device = str(trainer.strategy.root_device)
        self._classifier = TripleClassifier.load(serving, device, precision="bf16" if half else "fp32")
        if most_documents > self._classifier.most_documents:
            raise UserError(
                f"model.teacher {serving} was trained on at most {self._classifier.most_documents} documents, and this "
                f"training has chains of {most_documents}: name a teacher trained with data.chains.most_documents "
                f"{most_documents}, or lower that."
            )

    def log_odds(self, texts: Sequence[Chain]) -> Tensor:
        """The teacher's log-odds (nats) of triples or chains, (P,), on the CPU."""
        scores_P = torch.empty(len(texts))
        for rows, scores in self._classifier.log_odds(texts):
            scores_P[rows] = torch.tensor(scores)
        return scores_P
