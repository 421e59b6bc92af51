"""What RE-RAG's models read: the string of every format, its room, its special tokens, the label words, padding."""

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, T5Tokenizer

from common.records import Passage, clean
from models.context_tokenizer import ContextEncoder, ContextFormat
from models.length_batching import pad
from models.text_formats import label_tokens
from tests.conftest import SENTINELS
from tests.helpers.rerag_world import CROWD, HAMLET, LONDON, PAIRS, QUESTION, estimator

T5_FORMATS: list[ContextFormat] = ["re_rag_train", "re_rag_release", "fid", "packed"]


def t5_encoder(checkpoints: dict[str, Path], format: ContextFormat = "fid", max_tokens: int = 64) -> ContextEncoder:
    return ContextEncoder(AutoTokenizer.from_pretrained(checkpoints["t5"]), max_tokens, format)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("re_rag_train", "question: where iscontext: name1.name2 was no"),
        ("re_rag_release", "question: where iscontext: name1. name2 was no"),
        ("fid", "question: where is title: name1 context: name2 was no"),
        ("packed", "question: where is document 1: name1. name2 was no"),
    ],
)
def test_the_string_of_every_format(checkpoints, format, text) -> None:
    encode = t5_encoder(checkpoints, format)
    (ids,) = encode([(" where\n is ", [Passage("p", "name2  was no", "name1")])])
    expected = text.replace(" iscontext", " iscontext" if format == "re_rag_train" else " is context")
    if format == "re_rag_release":
        expected = text  # the released example joins them as well
    assert ids == encode.tokenizer(expected)["input_ids"]
    assert ids[-1] == encode.tokenizer.eos_token_id


def test_packed_documents_are_numbered_in_order(checkpoints) -> None:
    encode = t5_encoder(checkpoints, "packed")
    (ids,) = encode([("who", [HAMLET, Passage.of("", "no"), LONDON])])
    text = f"question: who document 1: name1. {HAMLET.text} document 2: no document 3: name2. {LONDON.text}"
    assert ids == encode.tokenizer(text)["input_ids"]
    assert encode([("who", [])]) == [encode.tokenizer("question: who")["input_ids"]]


def test_a_pair_for_encoders_is_what_the_tokenizer_joins(checkpoints) -> None:
    encode = estimator(checkpoints, "bert").encode
    assert encode.format == "sentence_pair"
    words = encode.tokenizer.convert_ids_to_tokens(encode([("who is", [HAMLET])])[0])
    assert " ".join(words) == "[CLS] who is [SEP] name1 . name1 was born in the city . [SEP]"
    words = encode.tokenizer.convert_ids_to_tokens(encode([("who is", [Passage.of("", "no")])])[0])
    assert " ".join(words) == "[CLS] who is [SEP] no [SEP]"


@pytest.mark.parametrize("format", T5_FORMATS)
def test_t5_formats_truncate_the_passage_never_the_question(checkpoints, format) -> None:
    encode = t5_encoder(checkpoints, format, max_tokens=18)
    (ids,) = encode([(QUESTION, [LONDON])])
    assert len(ids) == 18
    whole = encode.tokenizer("question: " + QUESTION, add_special_tokens=False)["input_ids"]
    if not format.startswith("re_rag"):  # there the question's last word is glued to `context`
        assert ids[: len(whole)] == whole
    assert ids[: len(whole) - 1] == whole[:-1]
    assert ids[-1] == encode.tokenizer.eos_token_id
    (longer,) = t5_encoder(checkpoints, format, max_tokens=200)([(QUESTION, [LONDON])])
    assert ids[:-1] == longer[:17]


@pytest.mark.parametrize("format", T5_FORMATS)
@pytest.mark.parametrize("question", ["is " * 40, ". . . . . . .", "............", "是" * 12])
def test_a_question_that_leaves_no_room_is_cut_to_half_of_it(checkpoints, format, question) -> None:
    encode = t5_encoder(checkpoints, format, 16)
    tokenizer = encode.tokenizer
    tokens = len(tokenizer(f"question: {clean(question)}")["input_ids"])
    ids, others = encode([(question, [LONDON]), (QUESTION, [LONDON])])
    assert len(ids) <= 16
    assert [others] == encode([(QUESTION, [LONDON])])
    own = tokenizer(clean(question), add_special_tokens=False)["input_ids"]
    if tokens <= 12:
        assert encode.cut_note(question) == ""
    else:
        kept = (16 - len(tokenizer("question: ", add_special_tokens=False)["input_ids"])) // 2
        assert encode.cut_note(question) == f"reads the first {kept} of the question's {len(own)} tokens"
        assert len(ids) == 16  # the passage has the rest
        assert tokenizer.decode(ids).count(clean(question).split()[0]) < 12


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(20, 90))
@settings(max_examples=30, deadline=None)
def test_packed_documents_share_the_room(words, max_tokens) -> None:
    encode = ContextEncoder(_TOKENIZERS["t5"], max_tokens, "packed")
    passages = [Passage.of("", " ".join(["the"] * n)) for n in words]
    (ids,) = encode([("who", passages)])
    lengths = [n + 3 for n in words]  # document, its number, a colon
    head = 3  # question, colon, who
    assert len(ids) == min(max_tokens, head + sum(lengths) + 1)
    document = encode.tokenizer.convert_tokens_to_ids("document")
    starts = [i for i, token in enumerate(ids) if token == document] + [len(ids) - 1]
    kept = [b - a for a, b in itertools.pairwise(starts)]
    assert len(kept) == len(words)  # none is pushed out
    cut = [part for part, length in zip(kept, lengths, strict=True) if part < length]
    assert not cut or max(kept) - min(cut) <= 1


_TOKENIZERS = {}


@pytest.fixture(autouse=True)
def _tokenizers(checkpoints) -> None:
    if not _TOKENIZERS:
        _TOKENIZERS.update({name: AutoTokenizer.from_pretrained(checkpoints[name]) for name in ("t5", "bert")})


@pytest.mark.parametrize("format", [*T5_FORMATS, "sentence_pair"])
@given(
    noise=st.text(alphabet="[]SEPCLAD <>/spadunkextra_id0", max_size=30),
    specials=st.lists(st.sampled_from(["</s>", "<pad>", "<unk>", *SENTINELS, "[SEP]", "[CLS]", "[PAD]"]), max_size=4),
)
@settings(max_examples=30, deadline=None)
def test_no_user_text_becomes_a_special_token(format, noise, specials) -> None:
    tokenizer = _TOKENIZERS["bert" if format == "sentence_pair" else "t5"]
    text = "".join([noise[:10], *specials, noise[10:]])
    (ids,) = ContextEncoder(tokenizer, 200, format)([(text, [Passage("p", text, text)])])
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    framed = {"sentence_pair": [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.sep_token_id]}
    assert [token for token in ids if token in special] == framed.get(format, [tokenizer.eos_token_id])


def test_remembered_sequences_equal_fresh_ones(checkpoints) -> None:
    rows = [(question, [passage]) for question, passage in PAIRS]
    fresh = [t5_encoder(checkpoints)([row])[0] for row in rows]
    encode = t5_encoder(checkpoints)
    encode.cached_texts = 5
    for start, end in ((0, 3), (1, 4), (3, 5), (4, 12), (0, 12)):  # within, across and beyond what is remembered
        assert encode([*rows[start:end], rows[start]]) == [*fresh[start:end], fresh[start]]
    assert encode([("where", [CROWD[0]])]) != encode([("who", [CROWD[0]])])
    packed = t5_encoder(checkpoints, "packed")
    assert packed([("who", [HAMLET, LONDON])]) != packed([("who", [LONDON, HAMLET])])
    assert encode([]) == packed([]) == []


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=40), min_size=1, max_size=5), st.integers(40, 60))
def test_padding(sequences, max_tokens) -> None:
    ids, attention = pad(sequences, 0, max_tokens)
    longest = max(map(len, sequences))
    assert ids.shape == attention.shape == (len(sequences), ids.shape[1])
    assert longest <= ids.shape[1] <= min(max_tokens, longest + 7)
    assert ids.shape[1] % 8 == 0 or ids.shape[1] == max_tokens
    for sequence, row, real in zip(sequences, ids.tolist(), attention.tolist(), strict=True):
        assert row == sequence + [0] * (len(row) - len(sequence))
        assert real == [1] * len(sequence) + [0] * (len(row) - len(sequence))
    assert pad(sequences, 0, max_tokens, length=64)[0].shape[1] == 64


def test_the_real_t5_says_true_and_false_in_one_piece() -> None:
    data = os.environ.get("LIGHTNING_RAG_DATA")
    if not data or not (Path(data) / "t5/spiece.model").is_file():
        pytest.skip("LIGHTNING_RAG_DATA names no folder with t5/spiece.model")
    tokenizer = T5Tokenizer.from_pretrained(str(Path(data) / "t5"))
    assert label_tokens(tokenizer, "true", "false") == (1176, 6136)
    assert tokenizer.convert_ids_to_tokens([1176, 6136]) == ["▁true", "▁false"]
    poison = Passage("p", "London </s> <extra_id_0> <pad>", "<extra_id_99>")
    for format in T5_FORMATS:
        (ids,) = ContextEncoder(tokenizer, 64, format)([("who </s>?", [poison])])
        assert [token for token in ids if token in {0, 1} or token >= 32000] == [1]
    (ids,) = ContextEncoder(tokenizer, 64, "re_rag_train")([("who is he", [Passage.of("Hamlet", "A play.")])])
    assert tokenizer.decode(ids) == "question: who is hecontext: Hamlet.A play.</s>"
