"""Every tokenizer of questions with passages counts its inputs, and those of which it has cut a passage."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from common.records import Passage
from models.context_tokenizer import ContextEncoder
from models.dmqr.word_tokenizer import WordPairEncoder
from models.drrag.triple_tokenizer import TripleEncoder
from models.prompt_tokenizer import PromptEncoder

FIRST, SECOND = Passage.of("name1", "name1 was born in the city of name2 ."), Passage.of("", "the river of name3 .")
Encode = Callable[[int], Any]


def encoders(checkpoints: dict[str, Path], lm: Path) -> dict[str, tuple[Encode, Callable[[Any], list[int]]]]:
    """By name: makes one of a maximum length, and the token ids of one input."""
    t5, bert, causal = (AutoTokenizer.from_pretrained(each) for each in (checkpoints["t5"], checkpoints["bert"], lm))
    made: dict[str, tuple[Encode, Callable[[Any], list[int]]]] = {}
    for format in ("fid", "re_rag_train", "sentence_pair"):
        tokenizer = bert if format == "sentence_pair" else t5
        made[format] = (
            lambda most, tokenizer=tokenizer, format=format: ContextEncoder(tokenizer, most, format),
            lambda encode: encode([("who is name1", [FIRST])])[0],
        )
    both = lambda encode: encode([("who is name1", [FIRST, SECOND])])[0]  # noqa: E731
    made["packed"] = lambda most: ContextEncoder(t5, most, "packed"), both
    end = [causal.eos_token_id]
    made["plain_packed"] = lambda most: PromptEncoder(causal, most, "packed", end), both
    made["plain_relevance"] = (
        lambda most: PromptEncoder(causal, most, "relevance", end),
        lambda encode: encode([("who is name1", [FIRST])])[0],
    )
    made["triple"] = lambda most: TripleEncoder(bert, most), lambda encode: encode("who is name1", FIRST, SECOND)
    made["words"] = lambda most: WordPairEncoder(bert, most), lambda encode: encode([("who is name1", FIRST)])[0].ids
    return made


NAMES = ["fid", "re_rag_train", "sentence_pair", "packed", "plain_packed", "plain_relevance", "triple", "words"]


@pytest.mark.parametrize("name", NAMES)
def test_an_input_that_loses_one_token_is_counted_and_one_that_fits_is_not(checkpoints, plain_lm, name) -> None:
    make, ids_of = encoders(checkpoints, plain_lm)[name]
    whole = len(ids_of(make(400)))
    fitting, short = make(whole), make(whole - 1)
    assert len(ids_of(fitting)) == whole
    assert (fitting.inputs_read, fitting.inputs_cut) == (1, 0)
    assert len(ids_of(short)) == whole - 1
    assert (short.inputs_read, short.inputs_cut) == (1, 1)
    ids_of(make(whole))
    assert (short.inputs_read, fitting.inputs_read) == (1, 1)  # each counts its own


def test_rows_can_be_asked_about_without_being_counted(checkpoints) -> None:
    encode = ContextEncoder(AutoTokenizer.from_pretrained(checkpoints["t5"]), 20)
    long = Passage.of("name1", "was " * 40)
    assert encode.inputs_cut_of([("who", [FIRST]), ("who", [long]), ("what", [long])]) == 2
    assert (encode.inputs_read, encode.inputs_cut) == (0, 0)
    encode([("who", [long])])
    encode([("who", [long])])  # remembered: it is tokenized once
    assert (encode.inputs_read, encode.inputs_cut) == (1, 1)
