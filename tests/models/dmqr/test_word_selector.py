"""The extractive rewriter's network: words and their tokens, scores, export."""

import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

from common.records import Passage
from models.dmqr.word_selector import JOINS, KIND, LABELS, PRIOR, STAYS, WordSelector
from models.dmqr.word_tokenizer import TEXT_FORMAT, WordPairEncoder
from models.pretrained import MINILM, resolve
from models.serving_manifest import write_manifest

QUESTION = "Who directed the film Lulu's Return?"
PASSAGES = [
    Passage.of("Lulu", "Lulu is a film by Georg Pabst. Pabst was born in Raudnitz."),
    Passage.of("", "Pabst."),
    Passage.of("Name9 [SEP] name3", "name3 name3 film of name4 " * 9),
]
PAIRS = [(QUESTION, passage) for passage in PASSAGES]


@pytest.fixture
def selector(checkpoints) -> WordSelector:
    torch.manual_seed(3)
    return WordSelector.build(str(checkpoints["bert"]), 48, 0.0).eval()


@pytest.fixture
def minilm() -> WordPairEncoder:
    return WordPairEncoder(AutoTokenizer.from_pretrained(resolve(MINILM)), 48)


def test_a_word_is_represented_by_its_first_token(minilm) -> None:
    (pair, *_) = minilm(PAIRS)
    tokens = minilm.tokenizer.convert_ids_to_tokens(pair.ids)
    assert [(each.word.text, tokens[each.position]) for each in pair.question_words] == [
        ("who", "who"), ("directed", "directed"), ("the", "the"), ("film", "film"), ("lulu", "lulu"), ("s", "s"),
        ("return", "return"),
    ]  # fmt: skip
    found = {each.word.text: tokens[each.position] for each in pair.passage_words}
    assert found["pabst"] == "pa"
    assert found["raudnitz"] == "ra"
    assert tokens[0] == "[CLS]"
    assert tokens[pair.question_tokens - 1] == "[SEP]" == tokens[-1]
    text = minilm.text("Lulu. Lulu is a film by Georg Pabst. Pabst was born in Raudnitz.")
    assert [text[each.word.start : each.word.end] for each in pair.passage_words[-2:]] == ["in", "Raudnitz"]


def test_the_passage_is_truncated_and_a_question_that_leaves_it_no_room(minilm) -> None:
    whole, cut = minilm([(QUESTION, PASSAGES[0]), (QUESTION, PASSAGES[2])])
    assert len(cut.ids) == 48 > len(whole.ids)
    assert cut.ids[: cut.question_tokens] == whole.ids[: whole.question_tokens]
    assert max(each.position for each in cut.passage_words) < 47  # the last token is the separator
    fits, long = minilm([("word " * 29, PASSAGES[2]), ("word " * 30, PASSAGES[2])])  # 29 + 3 + 16 = 48
    assert (fits.question_tokens, long.question_tokens) == (31, 24)  # 22 of 45, half of the room
    assert len(long.ids) == 48
    assert [each.position for each in long.question_words] == [*range(1, 23)]
    assert minilm.cut_note("word " * 29) == ""
    assert minilm.cut_note("word " * 30) == "reads the first 22 of the question's 30 tokens"


def test_a_new_head_begins_with_the_usual_share_of_each_label(selector) -> None:
    assert selector.network.classifier.bias.sigmoid().tolist() == pytest.approx([PRIOR[each] for each in LABELS])


def test_scores_are_those_of_each_pair_alone(selector) -> None:
    together = selector.scores(PAIRS)
    for pair, found in zip(PAIRS, together, strict=True):
        (alone,) = selector.scores([pair])
        for ours, theirs in ((found.stays, alone.stays), (found.joins, alone.joins)):
            assert [each.word for each in ours] == [each.word for each in theirs]
            assert [each.log_odds for each in ours] == pytest.approx([each.log_odds for each in theirs], abs=1e-5)


def test_a_word_that_joins_stands_once_at_its_best_place(selector) -> None:
    (found,) = selector.scores([PAIRS[2]])
    (pair,) = selector.encode([PAIRS[2]])
    ids_PT, types_PT, attention_PT = selector.encode.pad([pair])
    with torch.inference_mode():
        logits_TL = selector(ids_PT, types_PT, attention_PT)[0]
    places = [each for each in pair.passage_words if each.word.text == "name3"]
    assert len(places) > 2
    best = max(places, key=lambda each: float(logits_TL[each.position, JOINS]))
    (scored,) = [each for each in found.joins if each.word.text == "name3"]
    assert scored.word == best.word
    assert scored.log_odds == pytest.approx(float(logits_TL[best.position, JOINS]), abs=1e-5)
    assert "film" not in {each.word.text for each in found.joins}  # the question has it
    assert [each.word.text for each in found.stays] == ["who", "directed", "the", "film", "lulu", "s", "return"]
    first = pair.question_words[0].position
    assert found.stays[0].log_odds == pytest.approx(float(logits_TL[first, STAYS]), abs=1e-5)


def test_the_exported_folder_scores_alike_also_in_transformers(selector, tmp_path) -> None:
    selector.save(tmp_path)
    write_manifest(tmp_path, KIND, TEXT_FORMAT, 48)
    loaded = WordSelector.load(tmp_path, "cpu", "fp32")
    for ours, theirs in zip(selector.scores(PAIRS), loaded.scores(PAIRS), strict=True):
        assert ours == theirs
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "selector")
    network = AutoModelForTokenClassification.from_pretrained(tmp_path / "selector").eval()
    assert network.config.id2label == {STAYS: "stays", JOINS: "joins"}
    text = selector.encode.text("Lulu. Lulu is a film by Georg Pabst. Pabst was born in Raudnitz.")
    batch = tokenizer(selector.encode.text(QUESTION), text, return_tensors="pt")
    (pair,) = selector.encode(PAIRS[:1])
    assert batch["input_ids"][0].tolist() == pair.ids
    with torch.inference_mode():
        theirs_TL = network(**batch).logits[0]
        ours_TL = loaded(*loaded.encode.pad([pair]))[0, : len(pair.ids)]
    assert torch.allclose(theirs_TL, ours_TL, atol=1e-5)
