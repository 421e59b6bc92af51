"""Words of the relevance labels on the command line, with an mT5 whose vocabulary splits "false"."""

import json
from pathlib import Path

import pytest

from models.rerag.model import ReRagModel
from tests.helpers.mt5 import save_mt5
from tests.helpers.runs import fit_here
from tests.trainers.test_rerag_training import write_config

FIT = ("fit", "--config", "config.yaml")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an mT5 and a config that trains it as estimator and generator."""
    place = tmp_path_factory.mktemp("label_words")
    write_config(place, save_mt5(place / "mt5"))
    return place


def test_an_mt5_trains_as_estimator_and_generator_and_is_served(place: Path) -> None:
    """The end of `fit` compares the export's scores with the trained module's."""
    config = place / "config.yaml"
    words = 'max_answer_tokens: 4, true_word: "yes", false_word: "no"'
    config.write_text(config.read_text().replace("max_answer_tokens: 4", words))
    fit_here(place, "--trainer.max_epochs", "1", "--model.loss.label_weight", "1")
    serving = place / "checkpoints/tiny/serving"
    part = json.loads((serving / "serving.json").read_text())["parts"]["estimator"]
    assert part["label_words"] == {"true": "yes", "false": "no"}
    assert 'logit("yes") - logit("no")' in (serving / "README.md").read_text()
    served = ReRagModel.load(serving, "cpu")
    assert served.estimator.label_words == ("yes", "no")
    for part in (served.estimator, served.generator):
        assert part.network.config.model_type == "mt5"
        assert not part.network.lm_head.weight.equal(part.network.shared.weight)
