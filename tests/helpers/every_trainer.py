"""The tiny run of every trainer: what it needs in its folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import rewrite_runs
from tests.helpers.tiny_runs import use
from tests.trainers import test_dmqr_extractive, test_drrag, test_rerag_training


class Place:
    """Where a tiny run is prepared; it becomes the present folder."""

    def __init__(self, folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.made, self.monkeypatch = folder, request.getfixturevalue, monkeypatch
        use(folder, monkeypatch)

    def model(self, family: str) -> Path:
        """A folder of the fixture `checkpoints`."""
        return self.made("checkpoints")[family]


def drrag(place: Place, family: str = "bert") -> None:
    """Writes config.yaml and its data, as all that follow."""
    test_drrag.write_config(place.folder, place.model(family), place.made("hotpot_file"))


def rerag_of_causal_lm(place: Place) -> None:
    """An estimator and a generator that are adapters of one causal LM, with words of its small vocabulary."""
    model = place.made("plain_lm")
    test_rerag_training.write_config(place.folder, model, None, true_word="gold", false_word="jade")


def rewriter(place: Place) -> None:
    """A T5 with an adapter."""
    rewrite_runs.write_rewrites(place.folder, rewrite_runs.rows(60))
    rewrite_runs.write_config(place.folder, place.model("t5"))


PREPARE: dict[str, Callable[[Place], None]] = {
    "drrag": drrag,
    "rerag": lambda place: test_rerag_training.write_config(place.folder, place.model("t5")),
    "rerag_lm": rerag_of_causal_lm,
    "rewriter": rewriter,
    "extractive": lambda place: test_dmqr_extractive.write_run(place.folder, place.model("bert")),
}
