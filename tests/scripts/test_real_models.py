"""Real models from packages: another file is refused, and what the real ones give where there are any."""

from pathlib import Path

import pytest

from common.errors import ArtifactError
from common.records import Passage
from harness.commands.export import export
from harness.indexing.sentence_encoder import SentenceEncoder
from models.cross_encoder import RelevanceEstimator
from models.rerag.model import ReRagModel
from scripts.real_models import weights_of
from tests.helpers.real_models import real_model


def test_weights_of_another_sha256_or_none_are_refused(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ArtifactError, match="smollm2: its packages hold weights with sha256"):
            weights_of("smollm2", tmp_path)
        (tmp_path / "SmolLM2.gguf").write_bytes(b"abc")


@pytest.mark.slow
def test_smollm2_as_estimator_is_a_cross_encoder(tmp_path: Path) -> None:
    estimator = RelevanceEstimator.build(str(real_model("smollm2")), 96).eval()
    assert estimator.encode.format == "chat_relevance"
    ReRagModel.of(estimator, None, {}, 8).save(tmp_path / "serving")
    export(tmp_path / "serving", tmp_path / "out", "merged")
    from sentence_transformers import CrossEncoder

    pairs = [("Who directed Jaws?", "Jaws: A film of 1975 (USA)."), ("Where is it?", "Tōkyō lies in Japan.")]
    ours = estimator.scores([(question, Passage.of("", text)) for question, text in pairs])
    assert CrossEncoder(str(tmp_path / "out/estimator")).predict(pairs).tolist() == pytest.approx(ours, abs=1e-4)


@pytest.mark.slow
def test_mpnet_as_sentence_encoder_knows_what_belongs_together() -> None:
    encoder = SentenceEncoder(str(real_model("mpnet")), "cpu")
    texts = ["A man eats pasta.", "Somebody is eating spaghetti.", "The moon is far away."]
    vectors = encoder.encode(texts)
    assert vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2]
