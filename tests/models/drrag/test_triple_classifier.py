"""The triple classifier: fused attention, conversion, text format, serving."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModel, AutoTokenizer, BigBirdModel, PreTrainedTokenizerBase

from common.errors import MissingInputError
from common.records import Passage
from models.bigbird.attention import fuse, resolve_kind
from models.bigbird.conversion import to_bigbird
from models.drrag.triple_classifier import TripleClassifier
from models.drrag.triple_tokenizer import TripleEncoder
from models.length_batching import fair_shares, length_batches
from models.pretrained import MINILM, resolve
from tests.helpers.tolerances import assert_gradients_close, decide, fp32_tolerance, model_close, model_tolerance

pytestmark = pytest.mark.numeric

HAMLET = Passage.of("name1", "name1 was born in the city .")
LONDON = Passage.of("name2", "the director of name2 is name3 . " * 3)


def batch(tokens: int = 20, padding: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    ids = torch.randint(5, 60, (3, tokens + padding))
    attention = torch.ones_like(ids)
    attention[1:, tokens:] = 0
    return ids, attention


def assert_states_close(here: torch.Tensor, there: torch.Tensor, attention: torch.Tensor) -> None:
    here, there = here[attention.bool()], there[attention.bool()]
    torch.testing.assert_close(here, there, atol=model_tolerance(there.abs().max().item()), rtol=0)


def test_fused_attention_equals_the_eager_one(checkpoints) -> None:
    eager = BigBirdModel.from_pretrained(checkpoints["big_bird"], attention_type="original_full").eval()
    fused = BigBirdModel.from_pretrained(checkpoints["big_bird"], attention_type="original_full").eval()
    fuse(fused)
    ids, attention = batch()
    for model in (eager, fused):
        model.zero_grad()
        model(ids, attention_mask=attention).last_hidden_state[attention.bool()].pow(2).sum().backward()
    there, here = (model(ids, attention_mask=attention).last_hidden_state for model in (eager, fused))
    assert_states_close(here, there, attention)
    one, other = (
        {name: p.grad for name, p in model.named_parameters() if p.grad is not None} for model in (eager, fused)
    )
    assert_gradients_close(other, one, len(ids))


def test_the_kind_of_attention_is_decided_by_the_length_once() -> None:
    assert [resolve_kind("auto", tokens) for tokens in (16, 1024, 1025)] == ["fused", "fused", "block_sparse"]
    assert resolve_kind("full", 5000) == "full"


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_converted_model_has_the_hidden_states_of_its_source(checkpoints, family) -> None:
    source = AutoModel.from_pretrained(checkpoints[family]).eval()
    target = to_bigbird(source, max_tokens=300)
    fuse(target)
    ids, attention = batch()
    ids = ids * attention  # the sources derive positions from padding ids
    here, there = (model(ids, attention_mask=attention).last_hidden_state for model in (target, source))
    assert_states_close(here, there, attention)
    assert target(torch.full((1, 300), 7)).last_hidden_state.isfinite().all()


def test_converted_minilm_has_the_hidden_states_of_minilm() -> None:
    try:
        folder = resolve(MINILM)
    except MissingInputError as error:
        pytest.skip(str(error))
    source = AutoModel.from_pretrained(folder).eval()
    target = to_bigbird(source, max_tokens=600)
    fuse(target)
    ids = AutoTokenizer.from_pretrained(folder)("who wrote hamlet, and where was its author born?", return_tensors="pt")
    with torch.inference_mode():
        here, there = (model(ids["input_ids"]).last_hidden_state for model in (target, source))
    # six layers of width 384: three products with 384 terms and one with 1,536 follow one another in each
    tolerance = fp32_tolerance(6 * (3 * 384 + 1536), there.abs().max().item())
    torch.testing.assert_close(here, there, atol=tolerance, rtol=0)


@pytest.mark.parametrize(
    ("family", "attention"),
    [*((family, "auto") for family in ("big_bird", "bert", "roberta", "longformer")), ("bert", "block_sparse")],
)
def test_a_score_depends_on_the_order_of_the_passages_not_on_company_or_padding(checkpoints, family, attention) -> None:
    classifier = TripleClassifier.build(str(checkpoints[family]), 96, attention).eval()
    decide(classifier.network)
    long = Passage.of("name5", "name4 " * 300)
    (alone,) = classifier.probabilities([("where", HAMLET, LONDON)])
    together = classifier.probabilities([("where", LONDON, HAMLET), ("where", HAMLET, LONDON), ("where", long, long)])
    assert together[1] == model_close(alone)
    assert together[0] != model_close(alone) != together[2]
    if attention == "block_sparse":  # no silent flip on short input
        assert classifier.network.bert.attention_type == "block_sparse"


def test_block_sparse_attention_leaves_numpys_random_state_alone(checkpoints) -> None:
    classifier = TripleClassifier.build(str(checkpoints["bert"]), 96, attention="block_sparse").eval()
    np.random.seed(5)
    classifier.probabilities([("where", HAMLET, LONDON)])
    assert np.random.rand() == np.random.RandomState(5).rand()


def test_the_format_is_what_it_says(checkpoints) -> None:
    encode = TripleEncoder(str(checkpoints["big_bird"]), 64)
    words = encode.tokenizer.convert_ids_to_tokens(encode("where is name1", HAMLET, Passage.of("", "no")))
    assert " ".join(words) == "[CLS] where is name1 [SEP] name1 . name1 was born in the city . [SEP] no [SEP]"


@pytest.fixture(scope="module")
def tokenizer(checkpoints) -> PreTrainedTokenizerBase:
    """BigBird's."""
    return AutoTokenizer.from_pretrained(checkpoints["big_bird"])


@given(st.integers(0, 60), st.integers(16, 64))
def test_both_passages_keep_a_fair_share(tokenizer, words, most) -> None:
    encode = TripleEncoder(tokenizer, most)
    passages = [Passage.of("", "name1 " * more + "name2") for more in (words, words + 3)]
    ids = encode("is name1", *passages)
    assert len(ids) == encode.length("is name1", *passages) <= most
    untruncated = encode.untruncated("is name1", *passages)
    assert len(ids) == most or untruncated == len(ids)
    separator = encode.tokenizer.sep_token_id
    parts = " ".join(map(str, ids)).split(f" {separator}")[1:-1]
    kept = [len(part.split()) for part in parts]
    assert kept == fair_shares([min(most, words + 1), min(most, words + 4)], most - 6)


@given(st.lists(st.integers(0, 500), min_size=1, max_size=6), st.integers(0, 900))
def test_shares_fill_the_budget_and_spare_the_shorter(lengths, budget) -> None:
    kept = fair_shares(lengths, budget)
    assert sum(kept) == min(budget, sum(lengths))
    assert all(0 <= part <= length for part, length in zip(kept, lengths, strict=True))
    cut = [part for part, length in zip(kept, lengths, strict=True) if part < length]
    assert not cut or max(kept) - min(cut) <= 1  # nobody keeps more than one who was cut, but for an odd token
    assert all(part == length for part, length in zip(kept, lengths, strict=True) if length <= budget // len(lengths))


def test_a_question_that_leaves_no_room_keeps_its_first_tokens_half_of_it(checkpoints) -> None:
    encode = TripleEncoder(str(checkpoints["big_bird"]), 64)  # 60 besides class and separators
    passages = (Passage.of("", "is " * 50), Passage.of("", "is " * 50))
    for words, kept, note in ((58, 58, ""), (59, 30, "reads the first 30 of the question's 59 tokens")):
        question = " ".join(["where"] * words)
        ids = encode(question, *passages)
        assert ids.count(encode.text_ids("where")[0]) == kept
        assert ids.count(encode.text_ids("is")[0]) == 60 - kept
        assert encode.cut_note(question) == note
    short = encode(question, Passage.of("", "is"), Passage.of("", "is"))
    assert len(short) == encode.length(question, Passage.of("", "is"), Passage.of("", "is")) == 36


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 200))
def test_length_batches_partition_and_keep_the_budget(lengths, budget) -> None:
    batches = length_batches(lengths, budget)
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    for rows in batches:
        assert len(rows) == 1 or len(rows) * max(lengths[row] for row in rows) <= budget


def test_a_tokenizer_has_the_same_digest_in_every_process(checkpoints) -> None:
    code = (
        "import sys; from models.drrag.triple_tokenizer import TripleEncoder as T; e = T(sys.argv[1], 32); "
        "e.tokenize(['a']); print(e.content_digest)"
    )
    another = subprocess.run(  # whose sets have another order than those of this one
        [sys.executable, "-c", code, str(checkpoints["bert"])], env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    encode = TripleEncoder(str(checkpoints["bert"]), 32)
    assert another.stdout == encode.content_digest + "\n"
    assert TripleEncoder(str(checkpoints["bert"]), 33).content_digest != encode.content_digest
