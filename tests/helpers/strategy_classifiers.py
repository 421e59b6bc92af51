"""A choosing model that is not trained.

It chooses each strategy for about half of the questions, by chance, but always alike.
"""

import random
from pathlib import Path

import torch

from models.dmqr.strategy_classifier import KIND, TEXT_FORMAT, StrategyClassifier
from models.serving_manifest import write_manifest
from tests.conftest import NAMES, WORDS


def save_classifier(bert: Path, folder: Path, strategies: tuple[str, ...], threshold: float = 0.5) -> Path:
    """The serving folder of a classifier.

    Args:
        bert: Folder of an encoder.
        folder: To write.
        strategies: To choose from.
        threshold: Of its manifest.
    """
    torch.manual_seed(1)
    classifier = StrategyClassifier.build(str(bert), strategies, 24)
    rng = random.Random(0)
    samples = classifier.eval().encode([(" ".join(rng.sample([*WORDS, *NAMES], 4)), ()) for _ in range(200)])
    with torch.no_grad():
        logits_PS = classifier(*classifier.encode.pad([each for each in samples if each]))
        spread_S, middle_S = logits_PS.std(0), logits_PS.median(0).values
        head = classifier.network.get_submodule("classifier")
        head.weight.div_(spread_S[:, None])
        head.bias.sub_(middle_S).div_(spread_S)
    classifier.save(folder)
    write_manifest(folder, KIND, TEXT_FORMAT, 24, strategies=list(strategies), threshold=threshold)
    return folder
