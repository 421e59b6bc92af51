"""RE-RAG with mT5: words of the relevance labels, sentinels among ordinary pieces, an output layer of its own."""

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from common.errors import ArtifactError
from common.records import Passage
from common.sealed_json import write_sealed
from models.cross_encoder import RelevanceEstimator
from models.rerag.model import ESTIMATOR, ReRagModel
from models.text_formats import label_tokens, special_texts
from tests.helpers.mt5 import save_mt5
from tests.helpers.rerag_world import HAMLET, QUESTION

pytestmark = pytest.mark.numeric


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return save_mt5(tmp_path_factory.mktemp("mt5") / "mt5")


def test_label_words_are_single_pieces(folder) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.tokenize("true") == ["▁true"]
    assert tokenizer.tokenize("false") == ["▁fal", "se"]
    assert label_tokens(tokenizer, "yes", "no") == tuple(tokenizer.convert_tokens_to_ids(["▁yes", "▁no"]))


def test_a_folder_without_words_has_the_papers(checkpoints, tmp_path) -> None:
    re = RelevanceEstimator.build(str(checkpoints["t5"]), 64).eval()
    ReRagModel(re, None).save(tmp_path / "serving")
    manifest = json.loads((tmp_path / "serving/serving.json").read_text())
    del manifest["seal"], manifest["parts"][ESTIMATOR]["label_words"]
    write_sealed(tmp_path / "serving/serving.json", manifest)
    served = ReRagModel.load(tmp_path / "serving", "cpu")
    assert served.estimator.label_words == ("true", "false")
    assert (served.estimator.true_id, served.estimator.false_id) == (re.true_id, re.false_id)
    manifest["parts"][ESTIMATOR]["label_words"] = {"true": "yes"}
    write_sealed(tmp_path / "serving/serving.json", manifest)
    with pytest.raises(ArtifactError, match="label_words has no 'false'"):
        ReRagModel.load(tmp_path / "serving", "cpu")


def test_sentinels_that_are_ordinary_pieces_are_found_and_escaped(folder) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.convert_tokens_to_ids([f"▁<extra_id_{number}>" for number in range(10)])
    assert tokenizer.unk_token_id not in ids
    assert not {"<extra_id_0>", "▁<extra_id_0>"} & set(tokenizer.all_special_tokens)
    assert {"<extra_id_9>", "</s>", "<pad>"} <= set(special_texts(tokenizer))
    encode = RelevanceEstimator.build(str(folder), 64, label_words=("yes", "no")).encode
    (poisoned,) = encode([(QUESTION, [Passage.of("name1", f"<extra_id_3> {HAMLET.text}")])])
    assert not set(ids) & set(poisoned)
