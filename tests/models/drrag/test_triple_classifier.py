"""The triple classifier: attention, conversion, text format, serving, and its scores in other tools."""

import json
import os
import subprocess
import sys
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer, PreTrainedTokenizerBase

from common.errors import MissingInputError
from common.records import Passage, passage_text
from models.bigbird.attention import fuse, resolve_kind
from models.bigbird.conversion import to_bigbird
from models.cross_encoder import RelevanceEstimator
from models.drrag.triple_classifier import TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT, TripleEncoder
from models.length_batching import fair_shares, length_batches
from models.pair_export import output_layer, pair_tokenizer
from models.pretrained import MINILM, resolve
from models.serving_manifest import write_manifest
from tests.conftest import ENCODERS
from tests.helpers.rerag_world import HAMLET, LONDON
from tests.helpers.tolerances import assert_gradients_close, decide, fp32_tolerance, model_close, model_tolerance

pytestmark = pytest.mark.numeric


def batch(tokens: int = 20, padding: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    ids = torch.randint(5, 60, (3, tokens + padding))
    attention = torch.ones_like(ids)
    attention[1:, tokens:] = 0
    return ids, attention


def assert_states_close(here: torch.Tensor, there: torch.Tensor, attention: torch.Tensor) -> None:
    here, there = here[attention.bool()], there[attention.bool()]
    torch.testing.assert_close(here, there, atol=model_tolerance(there.abs().max().item()), rtol=0)


def test_fused_attention_equals_the_eager_one(checkpoints) -> None:
    assert [resolve_kind("auto", tokens) for tokens in (16, 1024, 1025)] == ["fused", "fused", "block_sparse"]
    assert resolve_kind("full", 5000) == "full"
    load, kind = transformers.BigBirdModel.from_pretrained, {"attention_type": "original_full"}
    eager, fused = (load(checkpoints["big_bird"], **kind).eval() for _ in range(2))
    fuse(fused)
    ids, attention = batch()
    states = [model(ids, attention_mask=attention).last_hidden_state for model in (eager, fused)]
    for state in states:
        state[attention.bool()].pow(2).sum().backward()
    assert_states_close(states[1], states[0], attention)
    both = ({name: p.grad for name, p in model.named_parameters() if p.grad is not None} for model in (fused, eager))
    assert_gradients_close(*both, len(ids))


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_converted_model_has_the_hidden_states_of_its_source(checkpoints, family) -> None:
    source = AutoModel.from_pretrained(checkpoints[family]).eval()
    target = to_bigbird(source, max_tokens=300)
    fuse(target)
    ids, attention = batch()
    ids = ids * attention  # the sources derive positions from padding ids
    here, there = (model(ids, attention_mask=attention).last_hidden_state for model in (target, source))
    assert_states_close(here, there, attention)
    assert target(torch.full((1, 300), 7)).last_hidden_state.isfinite().all()


def test_converted_minilm_has_the_hidden_states_of_minilm() -> None:
    try:
        folder = resolve(MINILM)
    except MissingInputError as error:
        pytest.skip(str(error))
    source = AutoModel.from_pretrained(folder).eval()
    target = to_bigbird(source, max_tokens=600)
    fuse(target)
    ids = AutoTokenizer.from_pretrained(folder)("who wrote hamlet, and where was its author born?", return_tensors="pt")
    with torch.inference_mode():
        here, there = (model(ids["input_ids"]).last_hidden_state for model in (target, source))
    # six layers of width 384: three products with 384 terms and one with 1,536 follow one another in each
    tolerance = fp32_tolerance(6 * (3 * 384 + 1536), there.abs().max().item())
    torch.testing.assert_close(here, there, atol=tolerance, rtol=0)


FAMILY = ("family", "attention")
AUTO = [*((family, "auto") for family in ("bert", "roberta", "longformer", *ENCODERS)), ("bert", "block_sparse")]


@pytest.mark.parametrize(FAMILY, [("big_bird", "auto"), *AUTO])
def test_a_score_depends_on_the_order_of_the_passages_not_on_company_or_padding(checkpoints, family, attention) -> None:
    classifier = TripleClassifier.build(str(checkpoints[family]), 96, attention).eval()
    decide(classifier.network)
    long = Passage.of("name5", "name4 " * 300)
    (alone,) = classifier.probabilities([("where", HAMLET, LONDON)])
    together = classifier.probabilities([("where", LONDON, HAMLET), ("where", HAMLET, LONDON), ("where", long, long)])
    assert together[1] == model_close(alone)
    if family != "modernbert":  # a random one, by the mean of its tokens, hardly tells orders apart
        assert together[0] != model_close(alone) != together[2]
    if attention == "block_sparse":  # no silent flip on short input
        assert classifier.network.bert.attention_type == "block_sparse"


def test_block_sparse_attention_leaves_numpys_random_state_alone(checkpoints) -> None:
    classifier = TripleClassifier.build(str(checkpoints["bert"]), 96, attention="block_sparse").eval()
    np.random.seed(5)
    classifier.probabilities([("where", HAMLET, LONDON)])
    assert np.random.rand() == np.random.RandomState(5).rand()


def test_the_format_is_what_it_says(checkpoints) -> None:
    encode = TripleEncoder(str(checkpoints["big_bird"]), 64)
    words = encode.tokenizer.convert_ids_to_tokens(encode("where is name1", HAMLET, Passage.of("", "no")))
    assert " ".join(words) == "[CLS] where is name1 [SEP] name1 . name1 was born in the city . [SEP] no [SEP]"


@pytest.fixture(scope="module")
def tokenizer(checkpoints) -> PreTrainedTokenizerBase:
    """BigBird's."""
    return AutoTokenizer.from_pretrained(checkpoints["big_bird"])


@given(st.integers(0, 60), st.integers(16, 64))
def test_both_passages_keep_a_fair_share(tokenizer, words, most) -> None:
    encode = TripleEncoder(tokenizer, most)
    passages = [Passage.of("", "name1 " * more + "name2") for more in (words, words + 3)]
    ids = encode("is name1", *passages)
    assert len(ids) == encode.length("is name1", *passages) <= most
    untruncated = encode.untruncated("is name1", *passages)
    assert len(ids) == most or untruncated == len(ids)
    parts = " ".join(map(str, ids)).split(f" {encode.tokenizer.sep_token_id}")[1:-1]
    kept = [len(part.split()) for part in parts]
    assert kept == fair_shares([min(most, words + 1), min(most, words + 4)], most - 6)


@given(st.lists(st.integers(0, 500), min_size=1, max_size=6), st.integers(0, 900))
def test_shares_fill_the_budget_and_spare_the_shorter(lengths, budget) -> None:
    kept = fair_shares(lengths, budget)
    assert sum(kept) == min(budget, sum(lengths))
    assert all(0 <= part <= length for part, length in zip(kept, lengths, strict=True))
    cut = [part for part, length in zip(kept, lengths, strict=True) if part < length]
    assert not cut or max(kept) - min(cut) <= 1  # nobody keeps more than one who was cut, but for an odd token
    assert all(part == length for part, length in zip(kept, lengths, strict=True) if length <= budget // len(lengths))


def test_a_question_that_leaves_no_room_keeps_its_first_tokens_half_of_it(checkpoints) -> None:
    encode = TripleEncoder(str(checkpoints["big_bird"]), 64)  # 60 besides class and separators
    passages = (Passage.of("", "is " * 50), Passage.of("", "is " * 50))
    for words, kept, note in ((58, 58, ""), (59, 30, "reads the first 30 of the question's 59 tokens")):
        question = " ".join(["where"] * words)
        ids = encode(question, *passages)
        assert ids.count(encode.text_ids("where")[0]) == kept
        assert ids.count(encode.text_ids("is")[0]) == 60 - kept
        assert encode.cut_note(question) == note
    short = encode(question, Passage.of("", "is"), Passage.of("", "is"))
    assert len(short) == encode.length(question, Passage.of("", "is"), Passage.of("", "is")) == 36


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 200))
def test_length_batches_partition_and_keep_the_budget(lengths, budget) -> None:
    batches = length_batches(lengths, budget)
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    for rows in batches:
        assert len(rows) == 1 or len(rows) * max(lengths[row] for row in rows) <= budget


def test_a_tokenizer_has_the_same_digest_in_every_process(checkpoints) -> None:
    code = (
        "import sys; from models.drrag.triple_tokenizer import TripleEncoder as T; e = T(sys.argv[1], 32); "
        "e.tokenize(['a']); print(e.content_digest)"
    )
    other_order = {**os.environ, "PYTHONHASHSEED": "1"}  # of its sets than those of this process have
    command = [sys.executable, "-c", code, str(checkpoints["bert"])]
    another = subprocess.check_output(command, env=other_order, text=True, cwd=Path(__file__).parents[3])
    encode = TripleEncoder(str(checkpoints["bert"]), 32)
    assert another == encode.content_digest + "\n"
    assert TripleEncoder(str(checkpoints["bert"]), 33).content_digest != encode.content_digest


TOLERANCE_NATS = 1e-5
QUESTION = "who is the director of the film"
PASSAGES = [HAMLET, LONDON, Passage.of("", "no film is in the city")]
TRIPLES = [(QUESTION, first, second) for first in PASSAGES for second in PASSAGES]


def exported_classifier(start: Path, folder: Path, attention: str = "auto") -> TripleClassifier:
    """A classifier with random weights that give scores of about 1 nat, exported to `folder`."""
    torch.manual_seed(0)
    classifier = TripleClassifier.build(str(start), 96, attention).eval()
    decide(classifier.network, 5)  # initial weights tell texts apart by some 1e-3 nats only
    with torch.no_grad():
        output_layer(classifier.network)[1].bias += torch.tensor([0.2, -0.1])
    classifier.save(folder)
    write_manifest(folder, "triple_classifier", TEXT_FORMAT, 96, attention=attention, threshold=0.5)
    return classifier


def scores(classifier: TripleClassifier) -> list[float]:
    batches = classifier.log_odds(TRIPLES)
    found = {row: score for rows, batch in batches for row, score in zip(rows, batch, strict=True)}
    return [found[row] for row in range(len(TRIPLES))]


def assert_other_tools_agree(
    folder: Path, batch: dict[str, torch.Tensor], texts: list[str], ours: list[float], tolerance: float
) -> None:
    """transformers alone, and CrossEncoder with texts of other lengths beside each other, give our scores."""
    from sentence_transformers import CrossEncoder

    with torch.inference_mode():
        logits = AutoModelForSequenceClassification.from_pretrained(folder).eval()(**batch).logits
    assert logits.shape == (len(texts), 1)
    assert logits[:, 0].tolist() == pytest.approx(ours, abs=tolerance)
    cross = CrossEncoder(str(folder), device="cpu")
    predicted = cross.predict([(QUESTION, text) for text in texts], batch_size=2, show_progress_bar=False)
    assert predicted.tolist() == pytest.approx(ours, abs=tolerance)
    ranked = cross.rank(QUESTION, texts, show_progress_bar=False)
    assert [hit["score"] for hit in ranked] == pytest.approx(sorted(ours, reverse=True), abs=tolerance)


@pytest.mark.parametrize(FAMILY, [*(("big_bird", kind) for kind in ("fused", "full", "block_sparse")), *AUTO])
def test_a_classifier_scores_the_same_in_other_tools(checkpoints, tmp_path, family, attention) -> None:
    start = checkpoints[family]
    if (family, attention) == ("big_bird", "block_sparse"):  # needs more positions
        config = transformers.BigBirdConfig.from_pretrained(start, max_position_embeddings=1024)
        torch.manual_seed(0)
        transformers.BigBirdForSequenceClassification(config).save_pretrained(tmp_path / "start")
        AutoTokenizer.from_pretrained(start).save_pretrained(tmp_path / "start")
        start = tmp_path / "start"
    classifier = exported_classifier(start, tmp_path, attention)
    ours = scores(classifier)
    assert max(ours) - min(ours) > 1000 * TOLERANCE_NATS
    folder = tmp_path / "classifier"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = [f"{passage_text(first)} {tokenizer.sep_token} {passage_text(second)}" for _, first, second in TRIPLES]
    assert tokenizer.model_max_length == 96

    padding = {"padding": "max_length", "max_length": 832} if attention == "block_sparse" else {"padding": True}
    batch = tokenizer([QUESTION] * len(texts), texts, truncation=True, return_tensors="pt", **padding)
    assert set(batch) == {"input_ids", "attention_mask"}
    assert_other_tools_agree(folder, batch, texts, ours, TOLERANCE_NATS)
    served = TripleClassifier.load(tmp_path, "cpu")
    assert scores(served) == pytest.approx(ours, abs=TOLERANCE_NATS)


def test_training_goes_on_from_an_exported_classifier(checkpoints, tmp_path) -> None:
    ours = scores(exported_classifier(checkpoints["bert"], tmp_path))
    again = TripleClassifier.build(str(tmp_path / "classifier"), 96).eval()
    assert again.network.classifier.out_proj.out_features == again.network.config.num_labels == 2
    assert again.network.config.id2label == {0: "negative", 1: "positive"}
    assert scores(again) == pytest.approx(ours, abs=TOLERANCE_NATS)


@pytest.mark.parametrize("family", ["bert", "big_bird", "roberta", "longformer", *ENCODERS])
@pytest.mark.parametrize("labels", [1, 2])
def test_an_encoder_only_estimator_scores_the_same_in_other_tools(checkpoints, tmp_path, family, labels) -> None:
    start = checkpoints[family]
    if labels == 2:
        torch.manual_seed(0)
        AutoModelForSequenceClassification.from_pretrained(start, num_labels=2).save_pretrained(tmp_path / "start")
        AutoTokenizer.from_pretrained(start).save_pretrained(tmp_path / "start")
        start = tmp_path / "start"
    torch.manual_seed(0)
    estimator = RelevanceEstimator.build(str(start), 48).eval()
    decide(estimator.network)
    pairs = [(QUESTION, passage) for passage in PASSAGES]
    ours = estimator.scores(pairs)
    tolerance = max(TOLERANCE_NATS, model_tolerance(max(map(abs, ours))))
    assert max(ours) - min(ours) > 20 * tolerance
    folder = tmp_path / "estimator"
    estimator.save(folder)
    texts = [passage_text(passage) for passage in PASSAGES]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.model_max_length == 48
    batch = tokenizer([QUESTION] * len(texts), texts, padding=True, truncation="only_second", return_tensors="pt")
    assert ("token_type_ids" in batch) == estimator.segmented == (family == "bert")
    assert_other_tools_agree(folder, batch, texts, ours, tolerance)
    again = RelevanceEstimator.build(str(folder), 48).eval()
    assert again.scores(pairs) == pytest.approx(ours, abs=tolerance)


TEXTS = [
    "Who directed the film Jaws?",
    "Jaws (film). Jaws is a 1975 thriller.",
    '"Born" in Ohio; 3.5% of',
    "(Second) x",
]
MARKS = {"unk_token": "<unk>", "pad_token": "<pad>", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}


def word_piece() -> PreTrainedTokenizerBase:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(TEXTS * 9, trainers.WordPieceTrainer(vocab_size=120, special_tokens=marks))
    return transformers.BertTokenizer(vocab=tokenizer.get_vocab())


def sentence_piece(kind: str) -> PreTrainedTokenizerBase:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first" if kind == "first" else "always")
    marks = ["<pad>", "</s>", "<s>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=marks, unk_token="<unk>")
    tokenizer.train_from_iterator(TEXTS * 9, trainer)
    if kind == "first":
        return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **MARKS)
    vocab = [tuple(entry) for entry in json.loads(tokenizer.to_str())["model"]["vocab"]]
    return getattr(transformers, kind)(vocab=vocab)


def byte_level(prefix: bool) -> PreTrainedTokenizerBase:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    marks = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=marks, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(TEXTS * 9, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [*map(tuple, model["merges"])]
    return transformers.RobertaTokenizer(vocab=model["vocab"], merges=merges, add_prefix_space=prefix)


FAMILIES = {
    "WordPiece": word_piece,
    "SentencePiece, BigBird's class": partial(sentence_piece, "BigBirdTokenizer"),
    "SentencePiece, XLM-RoBERTa's class": partial(sentence_piece, "XLMRobertaTokenizer"),
    "SentencePiece, DeBERTa's class": partial(sentence_piece, "DebertaV2Tokenizer"),
    "SentencePiece, mark at the text's start only": partial(sentence_piece, "first"),
    "byte-level BPE": partial(byte_level, False),
    "byte-level BPE with a prefix space": partial(byte_level, True),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_pair_call_gives_the_format_of_training(family, tmp_path) -> None:
    """Blanks around the separator, double separators and token types differ between families; none of it is left."""
    made = FAMILIES[family]()
    made.save_pretrained(tmp_path / "start")
    start = AutoTokenizer.from_pretrained(tmp_path / "start")
    pair_tokenizer(start, 128, token_types=False, separator_inside=True).save_pretrained(tmp_path / "classifier")
    (tmp_path / "classifier/config.json").write_text('{"model_type": "big_bird"}')  # AutoTokenizer reads it
    exported = AutoTokenizer.from_pretrained(tmp_path / "classifier")
    encode = TripleEncoder(start, 128)
    for first, second in product(TEXTS, TEXTS):
        passages = Passage.of("", first), Passage.of("", second)
        ours = encode(TEXTS[0], *passages)
        for separator in (f" {start.sep_token} ", start.sep_token):
            pair = exported(TEXTS[0], f"{first}{separator}{second}")
            assert pair["input_ids"] == ours, (first, second)
            assert set(pair) == {"input_ids", "attention_mask"}
        assert TripleEncoder(exported, 128)(TEXTS[0], *passages) == ours
    assert exported.model_max_length == 128
