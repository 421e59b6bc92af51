"""Exported pair classifiers in the tools they are made for.

AutoTokenizer's pair call and CrossEncoder give our scores.
"""

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertTokenizer,
    BigBirdTokenizer,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
    XLMRobertaTokenizer,
)

from common.records import Passage, passage_text
from models.cross_encoder import RelevanceEstimator
from models.drrag.triple_classifier import TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT, TripleEncoder
from models.pair_export import pair_tokenizer
from models.serving_manifest import write_manifest
from tests.helpers.tolerances import decide, model_tolerance

pytestmark = pytest.mark.numeric

TOLERANCE_NATS = 1e-5
QUESTION = "who is the director of the film"
PASSAGES = [
    Passage.of("name1", "name1 was born in the city ."),
    Passage.of("name2", "the director of name2 is name3 . " * 3),
    Passage.of("", "no film is in the city"),
]
TRIPLES = [(QUESTION, first, second) for first in PASSAGES for second in PASSAGES]


def exported_classifier(start: Path, folder: Path, attention: str = "auto") -> TripleClassifier:
    """A classifier with random weights that give scores of about 1 nat, exported to `folder`."""
    torch.manual_seed(0)
    classifier = TripleClassifier.build(str(start), 96, attention).eval()  # type: ignore[arg-type]
    decide(classifier.network, 5)  # initial weights tell texts apart by some 1e-3 nats only
    with torch.no_grad():
        classifier.network.classifier.out_proj.bias += torch.tensor([0.2, -0.1])
    classifier.save(folder)
    write_manifest(folder, "triple_classifier", TEXT_FORMAT, 96, attention=attention, threshold=0.5)
    return classifier


def scores(classifier: TripleClassifier) -> list[float]:
    found = [0.0] * len(TRIPLES)
    for rows, batch in classifier.log_odds(TRIPLES):
        for row, score in zip(rows, batch, strict=True):
            found[row] = score
    return found


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


@pytest.mark.parametrize(
    ("family", "attention"),
    [
        *(("big_bird", kind) for kind in ("fused", "full", "block_sparse")),
        *((family, "auto") for family in ("bert", "roberta", "longformer")),
        ("bert", "block_sparse"),
    ],
)
def test_a_classifier_scores_the_same_in_other_tools(checkpoints, tmp_path, family, attention, positions) -> None:
    start = positions["big_bird"] if (family, attention) == ("big_bird", "block_sparse") else checkpoints[family]
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


@pytest.fixture(scope="module")
def positions(checkpoints, tmp_path_factory) -> dict[str, Path]:
    """A BigBird with positions enough for block-sparse attention."""
    from transformers import BigBirdConfig, BigBirdForSequenceClassification

    folder = tmp_path_factory.mktemp("long") / "big_bird"
    config = BigBirdConfig.from_pretrained(checkpoints["big_bird"], max_position_embeddings=1024)
    torch.manual_seed(0)
    BigBirdForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(checkpoints["big_bird"]).save_pretrained(folder)
    return {"big_bird": folder}


def test_training_goes_on_from_an_exported_classifier(checkpoints, tmp_path) -> None:
    ours = scores(exported_classifier(checkpoints["bert"], tmp_path))
    again = TripleClassifier.build(str(tmp_path / "classifier"), 96).eval()
    assert again.network.classifier.out_proj.out_features == again.network.config.num_labels == 2
    assert again.network.config.id2label == {0: "negative", 1: "positive"}
    assert scores(again) == pytest.approx(ours, abs=TOLERANCE_NATS)


@pytest.mark.parametrize("family", ["bert", "big_bird", "roberta", "longformer"])
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
    ours = estimator.scores([(QUESTION, passage) for passage in PASSAGES])
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
    assert RelevanceEstimator.build(str(folder), 48).eval().scores(
        [(QUESTION, passage) for passage in PASSAGES]
    ) == pytest.approx(ours, abs=tolerance)


TEXTS = [
    "Who directed the film Jaws?", "Jaws (film). Jaws is a 1975 thriller.", '"Born" in Ohio; 3.5% of', "(Second) x"
]  # fmt: skip
MARKS = {"unk_token": "<unk>", "pad_token": "<pad>", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}


def word_piece() -> PreTrainedTokenizerBase:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(TEXTS * 9, trainers.WordPieceTrainer(vocab_size=120, special_tokens=marks))
    return BertTokenizer(vocab=tokenizer.get_vocab())


def sentence_piece(kind: str) -> PreTrainedTokenizerBase:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first" if kind == "first" else "always")
    marks = ["<pad>", "</s>", "<s>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=marks, unk_token="<unk>")
    tokenizer.train_from_iterator(TEXTS * 9, trainer)
    vocab = [tuple(entry) for entry in json.loads(tokenizer.to_str())["model"]["vocab"]]
    if kind == "first":
        return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **MARKS)
    return (BigBirdTokenizer if kind == "big_bird" else XLMRobertaTokenizer)(vocab=vocab)


def byte_level(prefix: bool) -> PreTrainedTokenizerBase:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    marks = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=marks, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(TEXTS * 9, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    return RobertaTokenizer(vocab=model["vocab"], merges=merges, add_prefix_space=prefix)


FAMILIES = {
    "WordPiece": word_piece,
    "SentencePiece, BigBird's class": lambda: sentence_piece("big_bird"),
    "SentencePiece, XLM-RoBERTa's class": lambda: sentence_piece("xlm-roberta"),
    "SentencePiece, mark at the text's start only": lambda: sentence_piece("first"),
    "byte-level BPE": lambda: byte_level(False),
    "byte-level BPE with a prefix space": lambda: byte_level(True),
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
    for first in TEXTS:
        for second in TEXTS:
            ours = encode(TEXTS[0], Passage.of("", first), Passage.of("", second))
            for separator in (f" {start.sep_token} ", start.sep_token):
                pair = exported(TEXTS[0], f"{first}{separator}{second}")
                assert pair["input_ids"] == ours, (first, second)
                assert set(pair) == {"input_ids", "attention_mask"}
            assert TripleEncoder(exported, 128)(TEXTS[0], Passage.of("", first), Passage.of("", second)) == ours
    assert exported.model_max_length == 128
