"""A T5 from nothing: its tokenizer holds what the project needs, spells everything, and is the same every time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, PreTrainedTokenizerBase

from common.errors import UserError
from common.files import digests
from common.records import Passage, clean
from models.context_tokenizer import ContextEncoder
from models.cross_encoder import RelevanceEstimator
from models.rerag.parts import load_generator
from models.text_formats import neutralize
from trainers.t5_from_scratch import main

ROOT = Path(__file__).parents[2]
PASSAGES = [
    ("Łódź", "Łódź is a city of Poland, founded in 1332."),
    ("</s> Trap <extra_id_3>", "A passage may hold <pad>, </s>, <0x41> and <extra_id_0>, </s> </s> </s> </s>."),
    ("River", "The river Warta passes near the city and the cities of the north, it is not untrue."),
    ("Person", "Zbigniew Wąsowicz-Ćwikła was born in the city in 1987 and wrote the book of the river."),
] * 3


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """A corpus of a few hundred characters."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    path.write_text("".join(json.dumps({"title": title, "text": text}) + "\n" for title, text in PASSAGES))
    return path


@pytest.fixture(scope="module")
def folder(corpus) -> Path:
    """What the command writes for it."""
    out = corpus.parent / "t5"
    arguments = [
        "--corpus", str(corpus), "--vocabulary", "600", "--sizes.d_model", "32", "--sizes.d_ff", "64", "--sizes.layers",
        "1"
    ]  # fmt: skip
    main([*arguments, "--out", str(out)])
    return out


@pytest.fixture(scope="module")
def tokenizer(folder) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(folder)


def test_ids_are_where_t5_has_them(tokenizer, folder) -> None:
    assert tokenizer.convert_tokens_to_ids(["<pad>", "</s>", "<unk>"]) == [0, 1, 2]
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id) == (0, 1, 2)
    size = len(tokenizer)
    sentinels = [f"<extra_id_{number}>" for number in range(100)]
    assert tokenizer.convert_tokens_to_ids(sentinels) == list(range(size - 1, size - 101, -1))
    assert sorted(tokenizer.get_vocab().values()) == list(range(size))
    for word in ("true", "false", "question", "title", "context", "document"):
        assert tokenizer.tokenize(word) == [f"▁{word}"]
        assert tokenizer.encode(word) == [tokenizer.convert_tokens_to_ids(f"▁{word}"), 1]
        assert tokenizer.tokenize(f"so {word} it is").count(f"▁{word}") == 1
    assert tokenizer("a", "b")["input_ids"].count(1) == 2
    config = AutoModelForSeq2SeqLM.from_pretrained(folder).config
    assert (config.vocab_size, config.decoder_start_token_id, config.pad_token_id, config.eos_token_id) == (
        size, 0, 0, 1,
    )  # fmt: skip
    assert config.dropout_rate == 0


@given(
    text=st.text(st.characters(codec="utf-8", exclude_characters="▁"), max_size=40)
)  # the mark that stands for a blank is lost
def test_every_text_is_spelt_and_comes_back(text, tokenizer) -> None:
    text = neutralize(clean(text), tokenizer.all_special_tokens)
    ids = tokenizer.encode(text)
    assert 2 not in ids
    assert not set(ids[:-1]) & set(tokenizer.all_special_ids)
    assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_special_strings_of_the_corpus_are_no_pieces(tokenizer) -> None:
    pieces = [piece.replace("▁", "") for piece in tokenizer.get_vocab() if piece not in tokenizer.all_special_tokens]
    assert not [piece for piece in pieces if any(s in piece for s in ("</s>", "<pad>", "<unk>", "<extra_id_"))]
    encode = ContextEncoder(tokenizer, 128, "fid")
    ids = encode([("what is </s> here?", [Passage.of(*PASSAGES[1])])])[0]
    assert not set(ids[:-1]) & set(tokenizer.all_special_ids)


def test_the_models_build_score_and_write(folder) -> None:
    pair = ("where was he born?", Passage.of(*PASSAGES[3]))
    (score,) = RelevanceEstimator.build(str(folder)).scores([pair])
    assert torch.isfinite(torch.tensor(score))
    generator = load_generator(str(folder))
    encoded = generator.encode_contexts(*generator.encode.pad(generator.encode([(pair[0], [pair[1]])])))
    assert isinstance(generator.write(encoded, 4)[0], str)


def test_the_same_corpus_and_seed_give_the_same_bytes(folder, corpus, tmp_path) -> None:
    command = [sys.executable, "-m", "trainers.t5_from_scratch", "--corpus", f"[{corpus}]", "--vocabulary", "600"]
    sizes = ["--sizes.d_model", "32", "--sizes.d_ff", "64", "--sizes.layers", "1", "--out", str(tmp_path / "again")]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run([*command, *sizes], cwd=ROOT, check=True, capture_output=True, env=environment)
    assert digests(tmp_path / "again") == digests(folder)
    torch.manual_seed(99)
    before = torch.get_rng_state()
    main([*command[3:], *sizes, "--seed", "1"])
    assert torch.equal(torch.get_rng_state(), before)
    ours, theirs = digests(tmp_path / "again"), digests(folder)
    assert {name for name in ours if ours[name] != theirs[name]} == {"model.safetensors", "t5_from_scratch.json"}


def test_questions_and_answers_count_as_text(hotpot_file, tmp_path) -> None:
    rows = json.loads(hotpot_file.read_text())
    for row in rows:
        row["question"], row["answer"] = "sphinx quartz " + row["question"], "vodka"
    hotpot_file.write_text(json.dumps(rows))
    main(["--corpus", str(hotpot_file), "--layout", "hotpotqa", "--out", str(tmp_path / "t5"), "--sizes.d_model", "8"])
    assert {"▁sphinx", "▁quartz", "▁vodka"} <= set(AutoTokenizer.from_pretrained(tmp_path / "t5").get_vocab())


@pytest.mark.skipif("LIGHTNING_RAG_DATA" not in os.environ, reason="LIGHTNING_RAG_DATA names no folder with t5/")
def test_t5s_own_tokenizer_file_is_taken(tmp_path) -> None:
    spiece = Path(os.environ["LIGHTNING_RAG_DATA"]) / "t5" / "spiece.model"
    main(["--tokenizer", str(spiece), "--out", str(tmp_path / "t5"), "--sizes.d_model", "8", "--sizes.layers", "1"])
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "t5")
    assert len(tokenizer) == 32100
    assert tokenizer.convert_tokens_to_ids("<extra_id_0>") == 32099
    assert tokenizer.encode("true") == [1176, 1]


def test_a_folder_of_something_else_is_not_replaced(corpus, tmp_path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"exists and is not a model of `python -m trainers\.t5_from_scratch`"):
        main(["--corpus", str(corpus), "--out", str(tmp_path)])
    assert (tmp_path / "notes.txt").read_text() == "mine"
