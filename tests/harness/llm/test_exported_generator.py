"""An exported generator as language model.

With its own prompts it reads and answers as the T5 readers, token by token.
"""

import math
from pathlib import Path
from typing import get_args

import pytest
import torch

from common.chat import Chat, Message
from common.records import Passage, Ranked
from harness.interfaces import ScoringModel
from harness.llm.exported_generator import ExportedGenerator
from harness.llm.prompts import Prompt
from harness.readers.llm import LlmReader
from harness.readers.t5 import PackedReader
from models.context_tokenizer import ContextEncoder, ContextFormat
from models.rerag.marginal_reader import MarginalReader
from tests.conftest import NAMES
from tests.helpers.mt5 import save_mt5
from tests.helpers.rerag_world import corpus, questions, write_serving

MAX_TOKENS = 48
PASSAGES = [
    *corpus(), Passage.of("", f"{NAMES[3]} was born in {NAMES[4]} ."), Passage.of("where", ""),
    Passage.of(NAMES[5], "the film . " * 40),
    Passage.of("of", f"title : {NAMES[6]} context: document 1: x document 2: y"),
    Passage("raw", f"{NAMES[7]}\twas\n born  in\u200b {NAMES[8]} </s> <extra_id_0>", " the  city "),
]  # fmt: skip
QUESTIONS = [f"where was {name} born" for name in NAMES[:8]] + ["what is context: here", "who title: is"]
FORMATS = [form for form in get_args(ContextFormat) if form != "sentence_pair"]


@pytest.fixture(scope="module", params=FORMATS)
def serving(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]
) -> Path:
    folder = tmp_path_factory.mktemp("exported") / request.param
    return write_serving(checkpoints["t5"], folder, False, request.param, max_tokens=MAX_TOKENS)


@pytest.fixture(scope="module")
def model(serving: Path) -> ExportedGenerator:
    return ExportedGenerator(serving, "cpu", "fp32")


@pytest.fixture
def fid(tmp_path: Path, checkpoints: dict[str, Path]) -> ExportedGenerator:
    return ExportedGenerator(
        write_serving(checkpoints["t5"], tmp_path / "fid", False, max_tokens=MAX_TOKENS), "cpu", "fp32"
    )


def prompt_of(model: ExportedGenerator) -> Prompt:
    return Prompt.load(f"generator_{model.generator.encode.format}")


def rows_of(model: ExportedGenerator) -> list[tuple[str, list[Passage]]]:
    """Questions with one passage each, or with several if the generator reads all in one call."""
    most = 4 if model.generator.encode.format == "packed" else 1
    return [
        (QUESTIONS[row % len(QUESTIONS)], [PASSAGES[(row + place) % len(PASSAGES)] for place in range(1 + row % most)])
        for row in range(2 * len(PASSAGES))
    ]


def test_its_prompt_reads_as_the_text_format_also_where_passages_are_truncated(model: ExportedGenerator) -> None:
    rows, encode = rows_of(model), model.generator.encode
    expected = encode(rows)
    assert sum(len(ids) == MAX_TOKENS for ids in expected) > 1
    found = [encode.encode_text(prompt_of(model).messages(passages, question=q)[0].content) for q, passages in rows]
    assert found == expected


def test_a_text_in_the_format_may_be_typed_by_hand(model: ExportedGenerator, checkpoints: dict[str, Path]) -> None:
    texts = {
        "fid": "question: where was name1 born title: name1 context: name1 was born in the city .",
        "re_rag_train": "question: where was name1 borncontext: name1.name1 was born in the city .",
        "re_rag_release": "question: where was name1 borncontext: name1. name1 was born in the city .",
        "packed": (
            "question: where was name1 born document 1: name1. name1 was born in the city . document 2: name1. name1 "
            "was born in the city ."
        ),
    }
    encode, passage = model.generator.encode, Passage.of("name1", "name1 was born in the city .")
    (expected,) = encode([("where was name1 born", [passage] * (1 + (encode.format == "packed")))])
    assert encode.encode_text(texts[encode.format]) == expected == encode.tokenizer(texts[encode.format])["input_ids"]


@pytest.mark.parametrize("family", ["t5", "mt5"])
def test_an_mt5_reads_its_prompts_as_its_text_format(tmp_path: Path, checkpoints: dict[str, Path], family: str) -> None:
    from transformers import AutoTokenizer

    folder = save_mt5(tmp_path / "mt5") if family == "mt5" else checkpoints["t5"]
    for form in FORMATS:
        encode = ContextEncoder(AutoTokenizer.from_pretrained(folder), MAX_TOKENS, form)
        several = 3 if form == "packed" else 1
        rows = [(q, PASSAGES[n : n + several]) for n, q in enumerate(QUESTIONS)]
        texts = [Prompt.load(f"generator_{form}").messages(p, question=q)[0].content for q, p in rows]
        assert [encode.encode_text(text) for text in texts] == encode(rows)


def test_replies_are_the_generators_answers(model: ExportedGenerator) -> None:
    assert isinstance(model, ScoringModel)
    rows = rows_of(model)
    chats = [Chat(prompt_of(model).messages(passages, question=q), 512, logprobs=True) for q, passages in rows]
    replies = model.reply(chats)
    expected = model.generator.answers(rows, model.max_answer_tokens)
    assert [(reply.text, reply.logprob) for reply in replies] == expected
    assert len({reply.text for reply in replies}) > 3
    assert [reply.prompt_tokens for reply in replies] == [len(ids) for ids in model.generator.encode(rows)]
    assert {reply.error for reply in replies} == {""}
    assert all(0 < reply.reply_tokens <= model.max_answer_tokens for reply in replies)
    assert all((reply.finish == "stop") or reply.reply_tokens == model.max_answer_tokens for reply in replies)
    scores = model.logprobs(chats, [reply.text for reply in replies])
    assert scores == [pytest.approx(reply.logprob, abs=1e-4) for reply in replies]
    others = model.logprobs(chats[:1] * 3, ["the city", "", "the film"])
    assert others == [
        pytest.approx(model.logprobs(chats[:1], [text])[0], abs=1e-4) for text in ("the city", "", "the film")
    ]


def test_an_mt5_replies_as_its_generator(tmp_path: Path) -> None:
    serving = write_serving(save_mt5(tmp_path / "mt5"), tmp_path / "serving", False, max_tokens=MAX_TOKENS)
    model = ExportedGenerator(serving, "cpu", "fp32")
    rows = rows_of(model)
    chats = [Chat(prompt_of(model).messages(passages, question=q), 512, logprobs=True) for q, passages in rows]
    replies = model.reply(chats)
    expected = model.generator.answers(rows, model.max_answer_tokens)
    assert [(reply.text, reply.logprob) for reply in replies] == expected
    assert len({reply.text for reply in replies}) > 3


def test_a_reader_with_it_answers_as_the_t5_readers(model: ExportedGenerator, serving: Path) -> None:
    asked = questions(corpus())
    form = model.generator.encode.format
    if form == "packed":
        reader = LlmReader(model, prompt="generator_packed")
        hits = [[Ranked(p, 9.0 - place) for place, p in enumerate(q.passages)] for q in asked]
        mine, theirs = reader.read(asked, hits), PackedReader(serving, device="cpu", precision="fp32").read(asked, hits)
        assert [answer.text for answer in mine] == [answer.text for answer in theirs]
        assert len({answer.text for answer in mine}) > 2
        return
    reader = LlmReader(model, prompt=f"generator_{form}", marginal="thorough")
    texts, contexts = [q.text for q in asked], [q.passages for q in asked]
    theirs_matrices = MarginalReader(model.generator, "thorough", model.max_answer_tokens).matrices(texts, contexts)
    for mine_one, theirs_one in zip(reader.matrices(texts, contexts), theirs_matrices, strict=True):
        assert (mine_one.written, mine_one.candidates) == (theirs_one.written, theirs_one.candidates)
        assert mine_one.answer_logp_AN is not None
        assert theirs_one.answer_logp_AN is not None
        torch.testing.assert_close(mine_one.answer_logp_AN, theirs_one.answer_logp_AN, rtol=0, atol=1e-4)


def test_chats_that_it_cannot_read_get_an_error_each(fid: ExportedGenerator) -> None:
    prompt = Prompt.load("generator_fid")
    good = Chat(prompt.messages(PASSAGES[:1], question=QUESTIONS[0]))
    bad = {
        "reads one user message": Chat((Message("system", "x"), *good.messages)),
        "reads one passage per call (text_format fid)": Chat(prompt.messages(PASSAGES[:2], question=QUESTIONS[0])),
        "fills 61 of max_tokens 48": Chat(prompt.messages(PASSAGES[:1], question="where " * 58)),
        f"the message has 71 tokens, and {fid.name} reads at most 48": Chat.of("where " * 70),
    }
    alone = fid.reply([good])[0]
    refused = fid.reply([*bad.values(), good])
    for part, reply in zip(bad, refused, strict=False):
        assert part in reply.error
        assert "\n" not in reply.error
        assert (reply.text, reply.finish) == ("", "")
    assert (refused[-1].text, refused[-1].error) == (alone.text, "")
    assert fid.logprobs([*bad.values()], ["x"] * 4) == [-math.inf] * 4
    assert fid.reply([Chat.of("where was name1 born")])[0].error == ""  # another form, but short


def test_limits_samples_and_names(fid: ExportedGenerator, tmp_path: Path, checkpoints: dict[str, Path]) -> None:
    prompt = Prompt.load("generator_fid")
    messages = [prompt.messages([passage], question=QUESTIONS[0]) for passage in PASSAGES[:12]]
    whole = fid.reply([Chat(each) for each in messages])
    cut = fid.reply([Chat(each, max_tokens=1 + row % 2) for row, each in enumerate(messages)])
    assert all(one.text.startswith(other.text) for one, other in zip(whole, cut, strict=True))
    assert max(reply.reply_tokens for reply in cut) == 2
    sampled = [Chat(each, temperature=2.0, sample=sample) for each in messages for sample in range(2)]
    texts = [reply.text for reply in fid.reply(sampled)]
    assert texts == [fid.reply([each])[0].text for each in sampled]
    assert texts[::2] != texts[1::2]
    other = write_serving(checkpoints["t5"], tmp_path / "other", False, max_tokens=MAX_TOKENS, seed=8)
    assert ExportedGenerator(other, "cpu").name.rpartition(", ")[2] != fid.name.rpartition(", ")[2]
