"""The sentence encoder against plain transformers and sentence-transformers."""

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from common.errors import MissingInputError
from common.records import nfkc
from harness.indexing.passage_store import indexed_text
from harness.indexing.sentence_encoder import SentenceEncoder, pool_tokens
from models.pretrained import MINILM, resolve
from tests.helpers.small_world import WORDS, corpus, write_encoder
from tests.helpers.tolerances import fp32_tolerance, model_tolerance

pytestmark = pytest.mark.numeric


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_the_encoder_agrees_with_plain_transformers(tmp_path, pooling, normalize) -> None:
    folder = write_encoder(tmp_path / "model", pooling=pooling, normalize=normalize)
    encoder = SentenceEncoder(folder, "cpu", batch_tokens=40)
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    texts = [indexed_text(p) for p in corpus(12)]
    for text, embedding_D in zip(texts, encoder.encode_passages(texts), strict=True):
        tokens = tokenizer(text, truncation=True, max_length=16, return_tensors="pt")
        with torch.inference_mode():
            hidden_TD = model(**tokens).last_hidden_state[0]
        expected_D = {"mean": hidden_TD.mean(0), "cls": hidden_TD[0], "max": hidden_TD.amax(0)}[pooling]
        expected_D = expected_D / expected_D.norm() if normalize else expected_D
        tolerance = model_tolerance(expected_D.abs().max().item())
        np.testing.assert_allclose(embedding_D, expected_D.numpy(), rtol=0, atol=tolerance)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_padding_changes_nothing(pooling) -> None:
    hidden_BTD = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
    for left in (True, False):
        noise_BTD = torch.full((3, 2, 4), 99.0)
        padded_BTD = torch.cat([noise_BTD, hidden_BTD] if left else [hidden_BTD, noise_BTD], dim=1)
        attention_BT = torch.tensor([[0, 0, 1, 1, 1, 1, 1] if left else [1, 1, 1, 1, 1, 0, 0]] * 3)
        bare_BD = pool_tokens(hidden_BTD, torch.ones(3, 5, dtype=torch.long), pooling)
        torch.testing.assert_close(pool_tokens(padded_BTD, attention_BT, pooling), bare_BD)


def test_a_long_query_keeps_its_beginning(encoder) -> None:
    # 16 tokens with [CLS] and [SEP]: the first 14 words.  QDC appends a passage to the question and relies on this.
    start = " ".join(WORDS[:14])
    cut, whole, other = encoder.encode_queries([f"{start} kiln kiln", start, f"{start[:-5]} kiln"])
    np.testing.assert_allclose(cut, whole, rtol=0, atol=model_tolerance())
    assert np.abs(other - whole).max() > 1e-3


def test_prefixes_come_from_the_encoder_unless_given_and_a_folder_without_modules_is_mean_pooled(tmp_path) -> None:
    folder = write_encoder(tmp_path / "model", prompts={"query": "query: "}, pooling="max")
    own, none = SentenceEncoder(folder, "cpu"), SentenceEncoder(folder, "cpu", query_prefix="")
    np.testing.assert_array_equal(own.encode_queries(["kiln"]), none.encode_queries(["query: kiln"]))  # the same call
    np.testing.assert_array_equal(own.encode_passages(["kiln"]), none.encode_queries(["kiln"]))
    assert own.recipe["sha256"] != none.recipe["sha256"]
    (tmp_path / "model/modules.json").unlink()
    assert SentenceEncoder(folder, "cpu").modules.pooling == "mean"


def test_minilm_agrees_with_sentence_transformers() -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    try:
        folder = resolve(MINILM)
    except MissingInputError as error:
        pytest.skip(str(error))
    texts = ["Who wrote Hamlet?", "Hamlet is a tragedy. " * 80, "é ﬁ 漢字", "a"]
    theirs = sentence_transformers.SentenceTransformer(str(folder), device="cpu").encode([nfkc(text) for text in texts])
    ours = SentenceEncoder(MINILM, "cpu").encode_passages(texts)
    # six layers of width 384, with three sums of 384 terms and one of 1,536 each; components of unit vectors
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=fp32_tolerance(6 * (3 * 384 + 1536)))
