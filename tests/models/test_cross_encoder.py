"""Scorers of (question, passage).

An exported estimator, or any cross-encoder with the scores of sentence-transformers.
"""

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, BertForSequenceClassification

from common.records import Passage, passage_text
from models.cross_encoder import load_scorer
from models.rerag.model import ReRagModel
from tests.helpers.rerag_world import corpus, questions, write_serving
from tests.helpers.tolerances import decide, model_close

pytestmark = pytest.mark.numeric

PASSAGES = [Passage.of("", "name1 was born in the city of name2"), *corpus(6)]
PAIRS = [(question.text, passage) for question in questions(corpus()) for passage in PASSAGES]


@pytest.fixture(scope="module", params=[1, 2])
def cross_encoder(request, tmp_path_factory, checkpoints) -> Path:
    folder = tmp_path_factory.mktemp("cross") / "encoder"
    torch.manual_seed(request.param)
    network = BertForSequenceClassification.from_pretrained(checkpoints["bert"], num_labels=request.param)
    decide(network, 8)
    network.save_pretrained(folder)
    AutoTokenizer.from_pretrained(checkpoints["bert"]).save_pretrained(folder)
    return folder


def test_a_cross_encoder_scores_as_sentence_transformers_does(cross_encoder) -> None:
    from sentence_transformers import CrossEncoder

    scores = load_scorer(cross_encoder, "cpu", "fp32").scores(PAIRS)
    reference = CrossEncoder(str(cross_encoder), device="cpu").predict(
        [(question, passage_text(passage)) for question, passage in PAIRS],
        activation_fn=torch.nn.Identity(), show_progress_bar=False,
    )  # fmt: skip
    expected = reference[:, 1] - reference[:, 0] if reference.ndim == 2 else reference
    assert scores == model_close(expected.tolist())
    assert max(scores) - min(scores) > 0.1


def test_a_serving_folder_s_estimator_is_loaded_without_its_generator(tmp_path, checkpoints) -> None:
    folder = write_serving(checkpoints["t5"], tmp_path / "both")
    whole = ReRagModel.load(folder, "cpu").estimator
    assert load_scorer(folder, "cpu").scores(PAIRS) == model_close(whole.scores(PAIRS))
