"""The sentence encoder against plain transformers and sentence-transformers."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from common.errors import ArtifactError, MissingInputError, UserError
from common.records import nfkc
from harness.indexing.passage_store import indexed_text
from harness.indexing.sentence_encoder import Modules, SentenceEncoder, pool_tokens
from harness.retrievers.dense import DenseRetriever, build_dense
from models.pretrained import MINILM, resolve
from tests.helpers.small_world import WORDS, corpus, write_encoder
from tests.helpers.tolerances import fp32_tolerance, model_close, model_tolerance

pytestmark = pytest.mark.numeric


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_the_encoder_agrees_with_plain_transformers(tmp_path, pooling, normalize) -> None:
    folder = write_encoder(tmp_path / "model", pooling=pooling, normalize=normalize, similarity="dot")
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


SETTINGS, WHOLE = "sentence_bert_config.json", "config_sentence_transformers.json"
POOLING, TOKENIZER = "1_Pooling/config.json", "tokenizer_config.json"
PROMPTS = {"prompts": {"query": "query : ", "document": "north jetty : "}}
OWN_LIMIT = {SETTINGS: {"max_seq_length": None}, TOKENIZER: {"model_max_length": 9}}
NOT_PROMPT = {WHOLE: PROMPTS, POOLING: {"include_prompt": False}}
CASED = {TOKENIZER: {"do_lower_case": False}, "tokenizer.json": {"normalizer": None}}
SHAPES = {  # what a folder says beside `write_encoder`'s, with a Normalize module or without
    "the tokenizer's limit, as version 6 saves it": (True, OWN_LIMIT),
    "no limit but the network's": (True, {SETTINGS: {"max_seq_length": None}}),
    "a cosine that no module makes": (False, {}),
    "no similarity named": (False, {WHOLE: {"similarity_fn_name": None}}),
    "dot": (False, {WHOLE: {"similarity_fn_name": "dot"}}),
    "dot of unit vectors": (True, {WHOLE: {"similarity_fn_name": "dot"}}),
    "prompts": (True, {WHOLE: PROMPTS}),
    "prompts of null": (True, {WHOLE: {"prompts": {"query": None, "document": None}}}),
    "prompts not pooled": (True, NOT_PROMPT),
    "prompts not pooled, of cls": (False, {**NOT_PROMPT, POOLING: {"include_prompt": False, "pooling_mode": "cls"}}),
    "prompts not pooled, padding on the left": (True, {**NOT_PROMPT, TOKENIZER: {"padding_side": "left"}}),
    "lower case": (True, {**CASED, SETTINGS: {"do_lower_case": True}}),
    "lower case, by an older name": (True, {**CASED, "sentence_roberta_config.json": {"do_lower_case": True}}),
    "cased": (True, CASED),
    "cut on the left": (True, {**OWN_LIMIT, TOKENIZER: {"model_max_length": 9, "truncation_side": "left"}}),
}  # fmt: skip


def shaped(folder, normalize, edits) -> str:
    """An encoder's folder whose files say other things, each by name."""
    write_encoder(folder, normalize=normalize)
    for name, values in edits.items():
        path = folder / (SETTINGS if name.startswith("sentence_") else name)
        written = {**json.loads(path.read_text("utf-8")), **values}
        path.write_text(json.dumps({key: value for key, value in written.items() if value is not None}), "utf-8")
        path.rename(folder / name)
    return str(folder)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_folder_says_is_read_as_sentence_transformers_reads_it(tmp_path, shape) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    folder = shaped(tmp_path / "model", *SHAPES[shape])
    texts = ["Kiln amber", "a", " ".join(WORDS[:9]), " ".join([*WORDS, *WORDS, *WORDS]), "KILN Amber fjord"]
    own, ours = sentence_transformers.SentenceTransformer(folder, device="cpu"), SentenceEncoder(folder, "cpu")
    theirs = own.similarity(own.encode_query(texts), own.encode_document(texts)).numpy()
    found = ours.encode_queries(texts) @ ours.encode_passages(texts).T
    np.testing.assert_allclose(found, theirs, rtol=0, atol=model_tolerance(np.abs(theirs).max()))
    assert ours.max_tokens == own.max_seq_length
    assert ("last" if "left" in shape.split()[-1:] and "cut" in shape else "first") in ours.cut_note(texts[3])


@pytest.mark.parametrize(
    ("edits", "named"),
    [
        ({WHOLE: {"similarity_fn_name": "euclidean"}}, "similarity 'euclidean'"),
        ({WHOLE: {"similarity_fn_name": "manhattan"}}, "similarity 'manhattan'"),
        ({WHOLE: {"truncate_dim": 8}}, "truncate_dim"),
        ({SETTINGS: {"processing_kwargs": {"text": {"padding": "max_length"}}}}, "processing_kwargs"),
        ({SETTINGS: {"modality_config": {"text": {}, "message": {}}}}, "a chat template"),
    ],
)
def test_what_is_not_read_is_refused_by_name(tmp_path, edits, named) -> None:
    with pytest.raises(UserError, match=named):
        SentenceEncoder(shaped(tmp_path / "model", True, edits), "cpu")


def test_the_least_limit_counts_and_a_greater_one_can_be_asked_for(tmp_path) -> None:
    folder = shaped(tmp_path / "model", True, {SETTINGS: {"max_seq_length": 24}, TOKENIZER: {"model_max_length": 9}})
    assert [SentenceEncoder(folder, "cpu", tokens).max_tokens for tokens in (None, 24)] == [9, 24]


@pytest.mark.parametrize(
    ("shape", "earlier", "differs"),
    [
        ("a cosine that no module makes", {"normalize": False}, "normalise"),
        ("prompts not pooled", {"include_prompt": True}, "include_prompt"),
        ("lower case", {"lower_case": False}, "lower_case"),
        ("the tokenizer's limit, as version 6 saves it", {"max_tokens": 16}, None),  # recorded, and so as it was
        ("dot", {}, None),
        ("cased", {"include_prompt": True}, None),
    ],
)
def test_an_index_of_an_earlier_rule_is_refused_or_stays_right(tmp_path, shape, earlier, differs, monkeypatch) -> None:
    folder, read, passages = shaped(tmp_path / "model", *SHAPES[shape]), Modules.read, corpus(12)
    monkeypatch.setattr(Modules, "read", lambda path: replace(read(path), **earlier))
    old = SentenceEncoder(folder, "cpu", earlier.get("max_tokens"))
    build_dense(passages, tmp_path / "index", old)
    scores = (old.encode_queries(["kiln amber"]) @ old.encode_passages([indexed_text(p) for p in passages]).T).max()
    monkeypatch.setattr(Modules, "read", read)
    retriever = DenseRetriever(tmp_path / "index", "cpu")
    if differs is None:
        assert retriever.search(["kiln amber"], 1)[0][0].score == model_close(float(scores))
        return
    with pytest.raises(ArtifactError, match=rf"differs in: {differs}\)\. .*--overwrite true"):
        retriever.load()


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
