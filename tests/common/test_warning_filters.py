"""Hidden messages of libraries: only those that are listed, only within the block."""

import logging
import warnings

import pytest
from torch.utils import _pytree

from common.warning_filters import unwanted_hidden


def shown(message: str, category: type[Warning]) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with unwanted_hidden():
            warnings.warn(message, category, stacklevel=1)
    return bool(caught)


def test_the_real_notice_on_leaves_is_hidden() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with unwanted_hidden():
            isinstance(_pytree.LeafSpec(), _pytree.LeafSpec)
        assert caught == []


@pytest.mark.parametrize(
    ("message", "category"),
    [
        ("the loss of this run is infinite", UserWarning),
        ("`isinstance(treespec, OtherSpec)` is deprecated", FutureWarning),
        ("Checkpoint directory a exists and is not writable.", UserWarning),
        ("Checkpoint directory a exists and is not empty.", RuntimeWarning),
        ("# The axis name: labels will not be used, since it shares the same shape constraints", UserWarning),
    ],
)
def test_every_other_warning_is_shown(message: str, category: type[Warning]) -> None:
    assert shown(message, category)


def test_what_is_listed_is_hidden_and_levels_are_given_back() -> None:
    assert not shown("Checkpoint directory /a/b exists and is not empty.", UserWarning)
    library = logging.getLogger("pytorch_lightning")
    library.setLevel(logging.INFO)
    with unwanted_hidden():
        assert not library.isEnabledFor(logging.INFO)
        assert library.isEnabledFor(logging.WARNING)
    assert library.isEnabledFor(logging.INFO)
