"""What a T5 from nothing knows before its first step: which words are alike, and how to copy out of its context.

Shape legend: V vocabulary, H width, T tokens.
"""

import json
import random
from pathlib import Path
from statistics import median

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, PreTrainedTokenizerBase, T5ForConditionalGeneration

from common.errors import MissingInputError
from datamodules.world.world import WorldConfig, generate
from models.pretrained import MINILM, resolve
from models.t5.from_scratch import T5Sizes, random_t5
from models.t5.tokenizer_training import train_tokenizer
from models.t5.warm_start import initialize_copy_heads, semantic_embeddings
from models.t5.word_neighbours import nearest_words
from tests.helpers.tolerances import fp32_tolerance
from trainers.t5_from_scratch import main

pytestmark = pytest.mark.numeric

WORDS = ["teacher", "tutor", "taught", "river", "lake", "company", "employer", "mayor", "bridge", "painter"]
WIDTH = 256
SIZES = {"d_model": WIDTH, "layers": 1, "heads": 4, "d_ff": 64}


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
    sizes = [part for name, size in SIZES.items() for part in (f"--sizes.{name}", str(size))]
    main(["--corpus", str(folder / "corpus.jsonl"), "--vocabulary", "1000", *sizes, "--out", str(folder / "t5"),
          "--embeddings", MINILM, "--copying", "true"])  # fmt: skip
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


def test_an_untrained_t5_goes_on_as_its_context_does(start, passages) -> None:
    tokenizer, copying = AutoTokenizer.from_pretrained(start), AutoModelForSeq2SeqLM.from_pretrained(start).eval()
    plain = random_t5(tokenizer, T5Sizes(**SIZES)).eval()
    meanings_VH = copying.shared.weight.detach()
    plain.shared.weight.data.copy_(meanings_VH)
    assert_norms(meanings_VH, WIDTH**0.5)
    place = {name: median(ranks(network, tokenizer, passages[:120])) / len(tokenizer)
             for name, network in {"copying": copying, "plain": plain}.items()}  # fmt: skip
    assert place["copying"] < 0.12  # chance is 0.5
    assert place["plain"] > 2 * place["copying"]
