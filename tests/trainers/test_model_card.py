"""Model cards of exported folders.

Their metadata is valid and honest, and their code gives our scores word for word.
"""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from huggingface_hub import ModelCard
from transformers import GPT2Config, GPT2LMHeadModel

from common.files import sha256
from common.records import Passage
from datamodules.drrag import DrRagData
from datamodules.examples.data_files import QuestionDataFile
from datamodules.rerag import ReRagData
from models.drrag.triple_classifier import TripleClassifier
from models.lora import Lora
from models.rerag.model import ReRagModel
from tests.helpers.tiny_runs import run_card
from tests.helpers.tolerances import decide, model_tolerance, move_adapters
from trainers.drrag import DrRagTrainer
from trainers.rerag import ReRagTrainer
from trainers.rerag_options import Loss, Text
from trainers.run.model_card import Card, origin_of
from trainers.run.module import RunModule

pytestmark = pytest.mark.numeric

TOLERANCE_NATS = 1e-5
SOURCE = QuestionDataFile("train.json", "hotpotqa", dataset="hotpotqa/hotpot_qa")


@pytest.fixture(autouse=True)
def _same_heads() -> None:
    """New heads have the same random weights in every run of a test."""
    torch.manual_seed(0)


def exported(module: RunModule, data: DrRagData | ReRagData, folder: Path, gain: float = 5) -> ModelCard:
    """Export a module whose weights tell texts apart, as the end of a run does, and read its card."""
    decide(module, gain)
    module.eval()
    module.trainer = SimpleNamespace(datamodule=data)
    folder.mkdir()
    module.export(folder, {"commit": None, "versions": {}, "data": {str(folder.parent / "train.json"): "0" * 64}})
    return ModelCard.load(folder / "README.md")


def assert_alike(found: dict[str, Any], expected: list[float], *names: str) -> None:
    """What a card's code found is ours, and so is its ranking; the scores differ by far more than the tolerance."""
    assert max(expected) - min(expected) > 100 * TOLERANCE_NATS
    assert model_tolerance(max(map(abs, expected))) < 100 * TOLERANCE_NATS
    for name in names:
        assert list(found[name]) == pytest.approx(expected, abs=TOLERANCE_NATS)
    if "scores" in names:
        ranked = [hit["score"] for hit in found["ranking"]]
        assert ranked == pytest.approx(sorted(expected)[::-1], abs=TOLERANCE_NATS)


@pytest.mark.parametrize(("family", "attention"), [("bert", "auto"), ("roberta", "auto"), ("bert", "block_sparse")])
def test_the_code_of_a_classifiers_card_gives_our_log_odds(
    checkpoints, tmp_path, family, attention, monkeypatch
) -> None:
    module = DrRagTrainer(str(checkpoints[family]), max_tokens=96, attention=attention).load()
    module.classifier.threshold = 0.48
    exported(module, DrRagData([SOURCE]), tmp_path / "serving")
    _, found = run_card(tmp_path / "serving", monkeypatch)
    documents = [Passage.of(title, text) for title, text in found["passages"]]
    triples = [(found["question"], first, second) for first in documents for second in documents if first != second]
    served = TripleClassifier.load(Path(), "cpu")
    ours = {row: score for rows, batch in served.log_odds(triples) for row, score in zip(rows, batch, strict=True)}
    assert_alike(found, [ours[row] for row in range(len(triples))], "log_odds", "scores")
    assert found["positive"].tolist() == [p >= 0.48 for p in served.probabilities(triples)]


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_the_code_of_an_encoder_only_estimators_card_gives_our_relevance(
    checkpoints, tmp_path, family, monkeypatch
) -> None:
    module = ReRagTrainer(str(checkpoints[family]), None, max_tokens=64, loss=Loss(label_weight=1.0)).load()
    exported(module, ReRagData([SOURCE]), tmp_path / "serving")
    card, found = run_card(tmp_path / "serving", monkeypatch)
    assert card.data.to_dict()["pipeline_tag"] == "text-ranking"
    assert_alike(found, relevance(found), "relevance", "scores")


@pytest.mark.parametrize("text_format", ["fid", "re_rag_train", "re_rag_release"])
def test_the_code_of_a_t5_estimators_card_gives_our_relevance(checkpoints, tmp_path, text_format, monkeypatch) -> None:
    start = str(checkpoints["t5"])
    module = ReRagTrainer(start, start, text=Text(text_format, 3), max_tokens=64).load()
    exported(module, ReRagData([SOURCE]), tmp_path / "serving", gain=1.5)
    _, found = run_card(tmp_path / "serving", monkeypatch)
    assert_alike(found, relevance(found), "relevance")
    generator = ReRagModel.load(Path(), "cpu").generator
    rows = [(found["question"], [Passage.of(title, text)]) for title, text in found["passages"]]
    assert found["answers"] == [text for text, _ in generator.answers(rows, 3)]


@pytest.mark.parametrize("family", ["chat_lm", "plain_lm"])
@pytest.mark.parametrize(("rank", "packed"), [(4, False), (4, True), (None, False), (None, True)])
def test_the_code_of_a_causal_lms_card_gives_our_relevance_and_answers(
    family, rank, packed, tmp_path, request, monkeypatch
) -> None:
    start, words = str(request.getfixturevalue(family)), ("gold", "jade")
    if family == "plain_lm":  # whose context is shorter than max_tokens
        network = GPT2LMHeadModel(GPT2Config.from_pretrained(start, n_positions=256))
        start = str(shutil.copytree(start, tmp_path / "longer"))
        network.save_pretrained(start)
    text = Text("packed", 5) if packed else Text(max_answer_tokens=5, true_word=words[0], false_word=words[1])
    module = ReRagTrainer(None if packed else start, start, max_tokens=240, text=text, lora=Lora(rank)).load()
    move_adapters(module, 0.1)
    exported(module, ReRagData([SOURCE]), tmp_path / "serving", gain=1.3)
    _, found = run_card(tmp_path / "serving", monkeypatch)
    generator = ReRagModel.load(Path(), "cpu").generator
    passages = [Passage.of(title, text) for title, text in found["passages"]]
    if packed:
        rows = [(found["question"], passages)]
    else:
        rows = [(found["question"], [each]) for each in passages]
        assert_alike(found, relevance(found), "relevance")
    assert found["answers"] == [text for text, _ in generator.answers(rows, 5)]
    assert [each["input_ids"][0].tolist() for each in found["prompts"]] == generator.encode(rows)


def relevance(found: dict[str, Any]) -> list[float]:
    """Our relevance of a card's passages."""
    estimator = ReRagModel.load(Path(), "cpu").estimator
    return estimator.scores([(found["question"], Passage.of(title, text)) for title, text in found["passages"]])


def test_the_metadata_is_valid_and_honest(checkpoints, tmp_path) -> None:
    own, hub = (
        QuestionDataFile("own.json", "fid", language="de"),
        QuestionDataFile("hf:google/nq:main:train", "flashrag"),
    )
    module = DrRagTrainer(str(checkpoints["bert"]), max_tokens=64).load()
    card = exported(module, DrRagData([SOURCE, own, hub]), tmp_path / "local")
    tags = ["retrieval-augmented-generation", "dr-rag", "cross-encoder", "reranker"]
    always = {"library_name": "sentence-transformers", "pipeline_tag": "text-ranking", "tags": tags}
    # no license: nobody states one; no base_model: a local folder that names none
    assert card.data.to_dict() == {**always, "language": ["de"], "datasets": ["hotpotqa/hotpot_qa", "google/nq"]}
    assert f"from `{checkpoints['bert'].name}`" in card.text
    assert f"train.json (sha256 {'0' * 64})" in card.text
    assert str(tmp_path) not in card.text
    assert str(checkpoints["bert"].parent) not in card.text
    module.hparams["pretrained"] = "google/bigbird-roberta-base"
    module.card = Card(license="mit", language=["en"])
    owned = exported(module, DrRagData([own]), tmp_path / "hub", 1)
    stated = {"base_model": ["google/bigbird-roberta-base"], "language": ["en"], "license": "mit"}
    assert owned.data.to_dict() == always | stated


def test_license_and_base_model_are_those_that_the_start_states_also_in_a_run_from_its_serving_folder(
    checkpoints, tmp_path
) -> None:
    base = shutil.copytree(checkpoints["bert"], tmp_path / "base")
    (base / "README.md").write_text("---\nlicense: gemma\nbase_model: google/gemma-3-270m\n---\nA model.\n")
    start = str(base)
    for name in ("first", "second"):
        module = DrRagTrainer(start, max_tokens=64).load()
        card = exported(module, DrRagData([SOURCE]), tmp_path / name, 1)
        assert (card.data.license, card.data.base_model) == ("gemma", ["google/gemma-3-270m"])
        weights = Path(start) / ("model.safetensors" if name == "first" else "classifier/model.safetensors")
        assert f"model.safetensors sha256 {sha256(weights)}; license gemma)" in card.text
        start = str(tmp_path / name)


def test_what_a_folder_states_of_its_license(tmp_path) -> None:
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    (tmp_path / "model.safetensors").write_bytes(b"abc")
    for readme, config, licenses in (
        (None, {}, ()),
        (None, {"license": "mit"}, ("mit",)),
        ("---\nlicense: [mit, gemma]\n---\n", {"license": "bsd"}, ("mit", "gemma")),
        ("---\nlicense: [\n---\n", {}, ()),  # cannot be read
        ("no front matter", {"license": "mit"}, ("mit",)),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        if readme is not None:
            (tmp_path / "README.md").write_text(readme)
        origin = origin_of(str(tmp_path))
        assert (origin.licenses, origin.weights) == (licenses, {"model.safetensors": digest})
        assert str(origin).endswith(", ".join(licenses) or "license not stated in its folder")
