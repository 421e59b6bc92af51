"""A T5 from nothing: its tokenizer, the same bytes every time, which words are alike, how to copy."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, PreTrainedTokenizerBase, T5ForConditionalGeneration

from common.errors import MissingInputError, UserError
from common.files import digests
from common.records import Passage, clean
from datamodules.world.world import WorldConfig, generate
from models.context_tokenizer import ContextEncoder
from models.cross_encoder import RelevanceEstimator
from models.pretrained import MINILM, resolve
from models.t5.from_scratch import T5Sizes, random_t5
from models.t5.tokenizer_training import train_tokenizer
from models.t5.warm_start import initialize_copy_heads, semantic_embeddings
from models.t5.word_neighbours import nearest_words
from models.text_formats import neutralize
from tests.helpers.tolerances import fp32_tolerance
from trainers.t5_from_scratch import main

ROOT = Path(__file__).parents[2]
PASSAGES = [
    ("Łódź", "Łódź is a city of Poland, founded in 1332."),
    ("</s> Trap <extra_id_3>", "A passage may hold <pad>, </s>, <0x41> and <extra_id_0>, </s> </s> </s> </s>."),
    ("River", "The river Warta passes near the city and the cities of the north, it is not untrue."),
    ("Person", "Zbigniew Wąsowicz-Ćwikła was born in the city in 1987 and wrote the book of the river."),
] * 3


SIZES = ["--vocabulary=600", "--sizes.d_model=32", "--sizes.d_ff=64", "--sizes.layers=1"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """A corpus of a few hundred characters."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    path.write_text("".join(json.dumps({"title": title, "text": text}) + "\n" for title, text in PASSAGES))
    return path


@pytest.fixture(scope="module")
def folder(corpus) -> Path:
    """What the command writes for it."""
    main(["--corpus", str(corpus), *SIZES, "--out", str(corpus.parent / "t5")])
    return corpus.parent / "t5"


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
    pair = ("where was he born?", Passage.of(*PASSAGES[3]))
    assert torch.tensor(RelevanceEstimator.build(str(folder)).scores([pair])).isfinite().all()
    config = AutoModelForSeq2SeqLM.from_pretrained(folder).config
    assert (config.vocab_size, config.dropout_rate) == (size, 0)
    assert (config.decoder_start_token_id, config.pad_token_id, config.eos_token_id) == (0, 0, 1)


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="▁"), max_size=40))  # its mark of a blank is lost
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


def test_the_same_corpus_and_seed_give_the_same_bytes(folder, corpus, tmp_path) -> None:
    given = ["--corpus", f"[{corpus}]", *SIZES, "--out", str(tmp_path / "again")]
    command = [sys.executable, "-m", "trainers.t5_from_scratch", *given]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=environment)
    assert digests(tmp_path / "again") == digests(folder)
    torch.manual_seed(99)
    before = torch.get_rng_state()
    main([*given, "--seed", "1"])
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


WORDS = ["teacher", "tutor", "taught", "river", "lake", "company", "employer", "mayor", "bridge", "painter"]
WIDTH = 256
WARM = {"d_model": WIDTH, "layers": 1, "heads": 4, "d_ff": 64}


@pytest.fixture(scope="module")
def minilm() -> str:
    try:
        return str(resolve(MINILM))
    except MissingInputError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def words() -> PreTrainedTokenizerBase:
    """A tokenizer whose words are few."""
    return train_tokenizer([" ".join(WORDS)] * 20, 512)


@pytest.fixture(scope="module")
def meanings(words, minilm) -> Tensor:
    return semantic_embeddings(words, MINILM, WIDTH)


def assert_norms(embeddings_VH: Tensor, norm: float) -> None:
    norms_V = embeddings_VH.norm(dim=1)
    exact = fp32_tolerance(2 * embeddings_VH.shape[1], norm)  # scaled to it, then measured
    torch.testing.assert_close(norms_V, torch.full_like(norms_V, norm), rtol=0, atol=exact)


@pytest.mark.numeric
def test_embeddings_are_as_long_as_t5s_and_alike_where_words_are(words, meanings) -> None:
    assert meanings.shape == (len(words), WIDTH)
    assert_norms(meanings, WIDTH**0.5)

    def cosine(one: str, other: str) -> float:
        first, second = (meanings[words.convert_tokens_to_ids(f"▁{word}")] for word in (one, other))
        return float(F.cosine_similarity(first, second, dim=0))

    assert cosine("teacher", "taught") > cosine("teacher", "river") + 0.2
    assert cosine("river", "lake") > cosine("river", "tutor") + 0.2
    assert cosine("company", "employer") > cosine("company", "lake") + 0.2
    twins = [words.convert_tokens_to_ids(piece) for piece in ("a", "A")]  # MiniLM is blind to case
    assert 0.5 < float(F.cosine_similarity(meanings[twins[0]], meanings[twins[1]], dim=0)) < 0.99
    nearest = nearest_words(words, meanings, count=2)
    assert "taught" in nearest["teacher"]
    assert nearest["river"][0] == "lake"


@pytest.mark.numeric
def test_embeddings_follow_from_the_seed_whatever_the_width(words, meanings) -> None:
    before = torch.get_rng_state()
    assert torch.equal(semantic_embeddings(words, MINILM, WIDTH), meanings)
    assert torch.equal(torch.get_rng_state(), before)
    wide_VH = semantic_embeddings(words, MINILM, 400, seed=1)  # MiniLM has 384
    assert_norms(wide_VH, 20.0)
    beyond_VX = wide_VH[:, 384:]
    assert beyond_VX.std() > 0.1  # random, but there
    same_VH = semantic_embeddings(words, MINILM, WIDTH, seed=1)
    assert not torch.equal(same_VH, meanings)
    assert F.cosine_similarity(same_VH, meanings).min() > 0.8  # the random part is the small one


@pytest.mark.numeric
@pytest.mark.parametrize(("width", "heads", "layers"), [(64, 4, 2), (48, 3, 1), (32, 1, 3), (40, 8, 1)])
def test_cross_attention_hands_over_what_it_attends_to(words, width, heads, layers) -> None:
    network = random_t5(words, T5Sizes(d_model=width, layers=1, decoder_layers=layers, heads=heads, d_ff=16))
    before, plain = torch.get_rng_state(), {name: value.clone() for name, value in network.state_dict().items()}
    initialize_copy_heads(network)
    assert torch.equal(torch.get_rng_state(), before)
    changed = {name for name, value in network.state_dict().items() if not torch.equal(value, plain[name])}
    assert all("EncDecAttention" in name or name.startswith("encoder.block.0.layer.0") for name in changed)
    assert len(network.decoder.block) == layers
    for block in network.decoder.block:
        attention = block.layer[1].EncDecAttention
        # an orthogonal factor is made by as many reflections as it has rows
        exact = fp32_tolerance(width**2)
        torch.testing.assert_close(attention.o.weight @ attention.v.weight, torch.eye(width), rtol=0, atol=exact)
        state_T1H = torch.randn(1, 1, width).expand(1, 6, width)  # all alike: no matter who attends to what
        handed_over = attention(torch.randn(1, 2, width), key_value_states=state_T1H)[0]
        largest = state_T1H.abs().max().item()
        torch.testing.assert_close(handed_over, state_T1H[:, :2], rtol=0, atol=fp32_tolerance(width**2, largest))
    with torch.no_grad():
        logits = network(input_ids=torch.tensor([[5, 6, 1]]), decoder_input_ids=torch.tensor([[0]])).logits
    assert logits.isfinite().all()


@pytest.fixture(scope="module")
def passages() -> list[str]:
    """Texts of a small world."""
    world = generate(WorldConfig(questions=50, singles=0, open_singles=0, web_questions=2, manuals=0))
    return [passage.text for passage in world.passages.values()]


@pytest.fixture(scope="module")
def start(passages, minilm, tmp_path_factory) -> Path:
    """What the command writes with both starts."""
    folder = tmp_path_factory.mktemp("start")
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"title": "", "text": text}) + "\n" for text in passages))
    sizes = [f"--sizes.{name}={size}" for name, size in WARM.items()]
    both = ["--vocabulary=1000", *sizes, f"--embeddings={MINILM}", "--copying=true"]
    main(["--corpus", str(folder / "corpus.jsonl"), *both, "--out", str(folder / "t5")])
    return folder / "t5"


def ranks(network: T5ForConditionalGeneration, tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> list[int]:
    """How many tokens of its context a T5 finds likelier than the token after it.

    The token was just given, and stands once in the context.
    """
    chance, found = random.Random(0), []
    for text in texts:
        ids = tokenizer.encode(text)
        place = chance.choice([n for n, token in enumerate(ids[:-2]) if ids.count(token) == 1])
        with torch.inference_mode():
            read = network(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([[0, ids[place]]]))
        logits_V = read.logits[0, -1]
        found.append(int((logits_V > logits_V[ids[place + 1]]).sum()))
    return found


@pytest.mark.numeric
def test_an_untrained_t5_goes_on_as_its_context_does(start, passages) -> None:
    tokenizer, copying = AutoTokenizer.from_pretrained(start), AutoModelForSeq2SeqLM.from_pretrained(start).eval()
    plain = random_t5(tokenizer, T5Sizes(**WARM)).eval()
    meanings_VH = copying.shared.weight.detach()
    plain.shared.weight.data.copy_(meanings_VH)
    assert_norms(meanings_VH, WIDTH**0.5)
    own, other = (median(ranks(network, tokenizer, passages[:120])) / len(tokenizer) for network in (copying, plain))
    assert own < 0.12  # chance is 0.5
    assert other > 2 * own
