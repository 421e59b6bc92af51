"""What every tokenizer of questions with passages reads: its format, its room, no special tokens, NFKC."""

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, T5Tokenizer

from common.records import Passage, clean, nfkc
from models.context_tokenizer import ContextEncoder, ContextFormat, answer_labels
from models.dmqr.rewrite_tokenizer import RewriteEncoder, RewriteTask
from models.dmqr.word_tokenizer import WordPairEncoder
from models.drrag.triple_tokenizer import TripleEncoder
from models.length_batching import pad
from models.prompt_tokenizer import PromptEncoder
from models.text_formats import label_tokens, marker_texts, neutralize, special_texts
from tests.conftest import SENTINELS
from tests.helpers.rerag_world import CROWD, HAMLET, LONDON, PAIRS, QUESTION

FIRST, SECOND = Passage.of("name1", "name1 was born in the city of name2 ."), Passage.of("", "the river of name3 .")
T5_FORMATS: list[ContextFormat] = ["re_rag_train", "re_rag_release", "fid", "packed"]
ODD = "1\u00bd \ufb01ne m\u00b2 \uff33 \u0645\u06cc\u200c\u062e"
PLAIN = "11\u20442 fine m2 S \u0645\u06cc\u062e"


class Reader(NamedTuple):
    """A tokenizer of one input format.

    Args:
        model: Whose tokens it reads.
        make: Makes one of a tokenizer and a maximum length.
        read: The token ids of a question with two passages; of the first alone where it reads one.
        specials: Special tokens of an input.
    """

    model: str
    make: Callable[[Any, int], Any]
    read: Callable[[Any, str, Passage, Passage], list[int]]
    specials: int = 1


def reader(model: str, form: Any, several: bool = False) -> Reader:
    """Of a T5, a BERT or a causal LM."""

    def make(tokenizer: Any, most: int) -> ContextEncoder | PromptEncoder:
        if model == "plain":
            return PromptEncoder(tokenizer, most, form, [tokenizer.eos_token_id])
        return ContextEncoder(tokenizer, most, form)

    def read(encode: Any, text: str, *passages: Passage) -> list[int]:
        return encode([(text, list(passages if several else passages[:1]))])[0]

    return Reader(model, make, read, {"t5": 1, "bert": 3, "plain": 0}[model])


COUNTED = {
    **{form: reader("t5", form, form == "packed") for form in T5_FORMATS},
    "sentence_pair": reader("bert", "sentence_pair"),
    "plain_packed": reader("plain", "packed", True),
    "plain_relevance": reader("plain", "relevance"),
    "triple": Reader("bert", TripleEncoder, lambda encode, text, *both: encode(text, *both), 4),
    "words": Reader("bert", WordPairEncoder, lambda encode, text, one, _: encode([(text, one)])[0].ids, 3),
}
READERS = {
    **COUNTED,
    "rewrites": Reader(
        "t5", lambda tokenizer, most: RewriteEncoder(tokenizer, "seq2seq", most, [1]),
        lambda encode, text, one, _: encode([RewriteTask(text, "Film", (one.title, one.text))])[0],
    ),
    "targets": Reader(
        "t5", lambda tokenizer, most: RewriteEncoder(tokenizer, "seq2seq", most, [1]),
        lambda encode, text, *_: encode.targets([text])[0],
    ),
    "answers": Reader(
        "t5", lambda tokenizer, most: tokenizer,
        lambda tokenizer, text, *_: answer_labels(tokenizer, "", None, [text])[0].tolist(),
    ),
}  # fmt: skip


class Recording:
    """A tokenizer that remembers the texts it was given."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.given = tokenizer, list[str]()

    def __call__(self, *texts: Any, **options: Any) -> Any:
        for each in texts:
            self.given += [each] if isinstance(each, str) else each
        return self.tokenizer(*texts, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)


@pytest.fixture(scope="module")
def tokenizers(families) -> dict[str, Any]:
    return {name: AutoTokenizer.from_pretrained(folder) for name, folder in families.items()}


@pytest.mark.parametrize("name", READERS)
def test_models_read_nfkc(name, tokenizers) -> None:
    reader, given = READERS[name], []
    for text in (ODD, PLAIN):
        tokenizer = Recording(tokenizers[reader.model])
        reader.read(reader.make(tokenizer, 64), text, *[Passage("p", f"{text}.", f"the {text}")] * 2)
        given.append(tokenizer.given)
    assert given[0] == given[1]
    assert any(PLAIN in text for text in given[0])


def test_sentence_encoders_read_nfkc(encoder, monkeypatch) -> None:
    recording = Recording(encoder.tokenizer)
    monkeypatch.setattr(encoder, "tokenizer", recording)
    encoder.encode_queries([ODD])
    encoder.encode_passages([ODD])
    assert recording.given == [PLAIN, PLAIN] == [nfkc(ODD)] * 2


MARKS = ["</s>", "<pad>", "<unk>", *SENTINELS, "[SEP]", "[CLS]", "[PAD]", "[MASK]", "<|endoftext|>"]
ANY_MARK = st.sampled_from(MARKS)


@pytest.mark.parametrize("name", READERS)
@given(noise=st.text("[]SEPCLMAK <>/spadunkextra_id0", max_size=30), specials=st.lists(ANY_MARK, max_size=4))
@settings(max_examples=30, deadline=None)
def test_no_text_of_a_user_becomes_a_special_token(name, noise, specials, tokenizers) -> None:
    reader, text = READERS[name], "".join([noise[:10], *specials, noise[10:]])
    tokenizer = tokenizers[reader.model]
    ids = reader.read(reader.make(tokenizer, 400), text, *[Passage("p", text, text)] * 2)
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    assert len([token for token in ids if token in special]) == reader.specials
    marks = special_texts(tokenizer)
    assert neutralize(neutralize(text, marks), marks) == neutralize(text, marks)


def test_a_mark_that_was_added_is_no_text_and_a_single_character_is(checkpoints) -> None:
    tokenizer = AutoTokenizer.from_pretrained(checkpoints["t5"])
    tokenizer.add_tokens(["<|im_start|>", "~", " "])
    assert {*marker_texts(tokenizer)} == {*special_texts(tokenizer), "<|im_start|>"}


@pytest.mark.parametrize("name", COUNTED)
def test_an_input_that_loses_one_token_is_counted_and_one_that_fits_is_not(name, tokenizers) -> None:
    reader = COUNTED[name]

    def ids(most: int) -> tuple[Any, list[int]]:
        encode = reader.make(tokenizers[reader.model], most)
        return encode, reader.read(encode, "who is name1", FIRST, SECOND)

    whole = len(ids(400)[1])
    for most, cut in ((whole, 0), (whole - 1, 1)):
        encode, read = ids(most)
        assert len(read) == most
        assert (encode.inputs_read, encode.inputs_cut) == (1, cut)  # each counts its own


def test_rows_can_be_asked_about_without_being_counted(tokenizers) -> None:
    encode = ContextEncoder(tokenizers["t5"], 20)
    long = Passage.of("name1", "was " * 40)
    assert encode.inputs_cut_of([("who", [FIRST]), ("who", [long]), ("what", [long])]) == 2
    assert (encode.inputs_read, encode.inputs_cut) == (0, 0)
    encode([("who", [long])])
    encode([("who", [long])])  # remembered: it is tokenized once
    assert (encode.inputs_read, encode.inputs_cut) == (1, 1)


@pytest.fixture(scope="module")
def tokenizer(tokenizers) -> Any:
    return tokenizers["t5"]


def test_the_string_of_every_format(tokenizers) -> None:
    one, untitled, t5 = Passage("p", "name2  was no", "name1"), Passage.of("", "no"), tokenizers["t5"]
    numbered = f"document 1: name1. {HAMLET.text} document 2: no document 3: name2. {LONDON.text}"
    for format, passages, text in (
        ("re_rag_train", [one], "question: where iscontext: name1.name2 was no"),
        ("re_rag_release", [one], "question: where iscontext: name1. name2 was no"),
        ("fid", [one], "question: where is title: name1 context: name2 was no"),
        ("packed", [one], "question: where is document 1: name1. name2 was no"),
        ("packed", [HAMLET, untitled, LONDON], f"question: where is {numbered}"),
        ("packed", [], "question: where is"),
    ):
        (ids,) = ContextEncoder(t5, 64, format)([(" where\n is ", passages)])
        assert ids == t5(text)["input_ids"]
        assert ids[-1] == t5.eos_token_id
    encode = ContextEncoder(tokenizers["bert"], 64, "sentence_pair")  # what the tokenizer joins
    for passage, text in ((HAMLET, "name1 . name1 was born in the city ."), (untitled, "no")):
        words = encode.tokenizer.convert_ids_to_tokens(encode([("who is", [passage])])[0])
        assert " ".join(words) == f"[CLS] who is [SEP] {text} [SEP]"


@pytest.mark.parametrize("format", T5_FORMATS)
def test_t5_formats_truncate_the_passage_never_the_question(tokenizer, format) -> None:
    (ids,), (longer,) = (ContextEncoder(tokenizer, most, format)([(QUESTION, [LONDON])]) for most in (18, 200))
    whole = tokenizer("question: " + QUESTION, add_special_tokens=False)["input_ids"]
    glued = format.startswith("re_rag")  # the question's last word to `context`
    assert ids[: len(whole) - glued] == whole[: len(whole) - glued]
    assert ids == [*longer[:17], tokenizer.eos_token_id]


@pytest.mark.parametrize("format", T5_FORMATS)
@pytest.mark.parametrize("question", ["is " * 40, ". . . . . . .", "............", "是" * 12])
def test_a_question_that_leaves_no_room_is_cut_to_half_of_it(tokenizer, format, question) -> None:
    encode = ContextEncoder(tokenizer, 16, format)
    ids, others = encode([(question, [LONDON]), (QUESTION, [LONDON])])
    assert len(ids) <= 16
    assert [others] == encode([(QUESTION, [LONDON])])
    if len(tokenizer(f"question: {clean(question)}")["input_ids"]) <= 12:
        assert encode.cut_note(question) == ""
    else:
        head, own = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("question: ", clean(question)))
        kept = (16 - len(head)) // 2
        assert encode.cut_note(question) == f"reads the first {kept} of the question's {len(own)} tokens"
        assert len(ids) == 16  # the passage has the rest
        assert tokenizer.decode(ids).count(clean(question).split()[0]) < 12


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(20, 90))
@settings(max_examples=30, deadline=None)
def test_packed_documents_share_the_room(tokenizer, words, max_tokens) -> None:
    encode = ContextEncoder(tokenizer, max_tokens, "packed")
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


def test_remembered_sequences_equal_fresh_ones(tokenizer) -> None:
    rows = [(question, [passage]) for question, passage in PAIRS]
    fresh = [ContextEncoder(tokenizer, 64)([row])[0] for row in rows]
    encode, packed = ContextEncoder(tokenizer, 64, cached_texts=5), ContextEncoder(tokenizer, 64, "packed")
    for start, end in ((0, 3), (1, 4), (3, 5), (4, 12), (0, 12)):  # within, across and beyond what is remembered
        assert encode([*rows[start:end], rows[start]]) == [*fresh[start:end], fresh[start]]
    assert encode([("where", [CROWD[0]])]) != encode([("who", [CROWD[0]])])
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
