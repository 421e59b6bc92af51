"""RE-RAG's serving folder: a served model does what the saved one did, and a damaged folder is refused."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from common.errors import ArtifactError
from common.sealed_json import write_sealed
from models.calibration import Calibration
from models.rerag.model import ESTIMATOR, GENERATOR, ReRagModel
from models.rerag.parts import load_generator
from tests.helpers.rerag_world import HAMLET, PAIRS, estimator
from tests.helpers.tolerances import model_close

pytestmark = pytest.mark.numeric


@pytest.fixture
def saved(checkpoints, tmp_path) -> tuple[ReRagModel, Path]:
    reader = load_generator(str(checkpoints["t5"]), 48, "packed", answer_prefix="answer: ").eval()
    model = ReRagModel(estimator(checkpoints), reader, Calibration(1.5, -0.25), 0.7, 6, 0.5, 3, 2.0)
    model.save(tmp_path / "serving", metrics={"em": 0.5})
    return model, tmp_path / "serving"


def test_a_served_model_scores_and_answers_as_the_one_saved(saved) -> None:
    model, folder = saved
    served = ReRagModel.load(folder, "cpu", needs=(ESTIMATOR, GENERATOR))
    assert served.estimator.scores(PAIRS) == model_close(model.estimator.scores(PAIRS))
    assert (served.calibration, served.refusal_threshold) == (Calibration(1.5, -0.25), 0.7)
    assert (served.max_answer_tokens, served.relevance_temperature) == (6, 0.5)
    assert (served.refusal_contexts, served.refusal_cost) == (3, 2.0)
    assert served.generator.answer_prefix == "answer: "
    assert served.estimator.encode.same_as(model.estimator.encode)
    assert served.generator.encode.same_as(model.generator.encode)
    assert not served.estimator.encode.same_as(served.generator.encode)
    assert not served.generator.network.training

    rows = [(question, [passage, HAMLET]) for question, passage in PAIRS]
    given, again = (each.generator.answers(rows, 6) for each in (model, served))
    assert [text for text, _ in again] == [text for text, _ in given]
    assert [logp for _, logp in again] == model_close([logp for _, logp in given], 40.0)
    manifest = json.loads((folder / "serving.json").read_text())
    assert manifest["metrics"] == {"em": 0.5}
    ids = model.estimator.encode.tokenizer.convert_tokens_to_ids(["true", "false"])
    assert list(manifest["parts"][ESTIMATOR]["label_ids"].values()) == ids
    alone = AutoModelForSeq2SeqLM.from_pretrained(folder / ESTIMATOR)  # transformers alone reads a part
    assert all(torch.equal(a, b) for a, b in zip(alone.parameters(), model.estimator.network.parameters(), strict=True))


@pytest.mark.parametrize("family", ["bert", "big_bird"])
def test_an_encoder_only_estimator_alone_can_be_served(checkpoints, tmp_path, family) -> None:
    re = estimator(checkpoints, family)
    ReRagModel(re, None).save(tmp_path / family)
    served = ReRagModel.load(tmp_path / family, "cpu", needs=(ESTIMATOR,))
    assert served.generator is None
    assert served.estimator.scores(PAIRS) == model_close(re.scores(PAIRS))
    with pytest.raises(ArtifactError, match="generator"):
        ReRagModel.load(tmp_path / family, "cpu", needs=(GENERATOR,))


def test_a_folder_of_an_earlier_release_has_the_values_of_then(saved) -> None:
    _, folder = saved
    manifest = json.loads((folder / "serving.json").read_text())
    for name in ("seal", "relevance_temperature", "refusal_contexts", "refusal_cost"):
        del manifest[name]
    write_sealed(folder / "serving.json", manifest)
    served = ReRagModel.load(folder, "cpu")
    assert (served.relevance_temperature, served.refusal_contexts, served.refusal_cost) == (1.0, None, None)
    parts = {**manifest["parts"], ESTIMATOR: {"text_format": "fid; v0", "max_tokens": 64}}
    for wrong, named in (({"refusal_contexts": "two"}, "refusal_contexts"), ({"parts": parts}, "fid; v0")):
        write_sealed(folder / "serving.json", {**manifest, **wrong})
        with pytest.raises(ArtifactError, match=named):
            ReRagModel.load(folder, "cpu")
