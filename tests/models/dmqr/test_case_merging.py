"""Case merging: lower case is read with capitals' pieces; ids and special tokens stay; saved and loaded alike."""

from pathlib import Path

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from common.errors import UserError
from models.dmqr.case_merging import merge_case
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.t5.tokenizer_training import train_tokenizer
from tests.helpers.mt5 import mt5_tokenizer

TEXTS = ["Saltine Union met Felix Southett", "the Union of the Saltine", "The end <extra_id_0>"]


def trained() -> PreTrainedTokenizerBase:
    return train_tokenizer(TEXTS * 20, 600)


def ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return list(tokenizer(text)["input_ids"])


def test_a_name_has_the_pieces_that_its_capitalized_form_had() -> None:
    before, after = trained(), merge_case(trained())
    assert len(ids(before, "saltine union")) > len(ids(before, "Saltine Union"))
    assert ids(after, "saltine union") == ids(after, "SALTINE Union") == ids(before, "Saltine Union")
    assert after.decode(ids(after, "SALTINE Union"), skip_special_tokens=True) == "saltine union"


def test_a_piece_that_exists_in_lower_case_keeps_its_id() -> None:
    before, after = trained(), merge_case(trained())
    the = ids(before, "the")
    assert len(the) == 2  # and the end
    assert ids(before, "The") != the
    assert ids(after, "The") == ids(after, "the") == the


@pytest.mark.parametrize("make", [trained, mt5_tokenizer])
def test_it_is_saved_with_the_tokenizer(make: object, tmp_path: Path) -> None:
    """Also that of a class which, loaded from its own files, would ignore the normalizer."""
    merged = merge_case(make())  # type: ignore[operator]
    merged.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded.get_vocab() == merged.get_vocab()
    assert ids(loaded, "Name1 The END") == ids(loaded, "name1 the end") == ids(merged, "name1 the end")
    assert loaded.all_special_tokens == merged.all_special_tokens


def test_other_tokenizers_are_refused(checkpoints: dict[str, Path], plain_lm: Path) -> None:
    with pytest.raises(
        UserError, match=r"merge_case is for Unigram tokenizers, such as a T5's, and .* has a WordLevel"
    ):
        merge_case(AutoTokenizer.from_pretrained(checkpoints["bert"]))
    with pytest.raises(UserError, match=r"merge_case is for a T5, and .*: set it to false"):
        RewriterModel.build(str(plain_lm), 40, 20, POOL, merge_case=True)
