"""What every tokenizer of questions with passages has in common.

Texts in NFKC, which the models of every release learned from; no text becomes a special token; inputs are counted, and
those of which a passage was cut.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from common.records import Passage, nfkc
from models.context_tokenizer import ContextEncoder, answer_labels
from models.dmqr.rewrite_tokenizer import RewriteEncoder, RewriteTask
from models.dmqr.word_tokenizer import WordPairEncoder
from models.drrag.triple_tokenizer import TripleEncoder
from models.prompt_tokenizer import PromptEncoder
from models.text_formats import marker_texts, neutralize, special_texts
from tests.conftest import SENTINELS

FIRST, SECOND = Passage.of("name1", "name1 was born in the city of name2 ."), Passage.of("", "the river of name3 .")
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


def first(encode: Any, text: str, one: Passage, other: Passage) -> list[int]:
    return encode([(text, [one])])[0]


def both(encode: Any, text: str, one: Passage, other: Passage) -> list[int]:
    return encode([(text, [one, other])])[0]


def contexts(form: Any) -> Callable[[Any, int], ContextEncoder]:
    return lambda tokenizer, most: ContextEncoder(tokenizer, most, form)


def prompts(task: Any) -> Callable[[Any, int], PromptEncoder]:
    return lambda tokenizer, most: PromptEncoder(tokenizer, most, task, [tokenizer.eos_token_id])


COUNTED = {
    **{form: Reader("t5", contexts(form), first) for form in ("fid", "re_rag_train", "re_rag_release")},
    "packed": Reader("t5", contexts("packed"), both),
    "sentence_pair": Reader("bert", contexts("sentence_pair"), first, 3),
    "plain_packed": Reader("plain", prompts("packed"), both, 0),
    "plain_relevance": Reader("plain", prompts("relevance"), first, 0),
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


@pytest.mark.parametrize("name", READERS)
@given(
    noise=st.text(alphabet="[]SEPCLMAK <>/spadunkextra_id0", max_size=30),
    specials=st.lists(st.sampled_from(MARKS), max_size=4),
)
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
