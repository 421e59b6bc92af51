"""Hidden messages of libraries: only those that are listed, only within the block."""

import logging
import warnings

from torch.utils import _pytree

from common.warning_filters import unwanted_hidden


def shown(message: str, category: type[Warning]) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with unwanted_hidden():
            warnings.warn(message, category, stacklevel=1)
    return bool(caught)


def test_the_real_notice_on_leaves_is_hidden() -> None:
    with warnings.catch_warnings(record=True) as caught, unwanted_hidden():
        isinstance(_pytree.LeafSpec(), _pytree.LeafSpec)
    assert caught == []


def test_every_other_warning_is_shown() -> None:
    assert shown("the loss of this run is infinite", UserWarning)
    assert shown("`isinstance(treespec, OtherSpec)` is deprecated", FutureWarning)
    assert shown("Checkpoint directory a exists and is not writable.", UserWarning)
    assert shown("Checkpoint directory a exists and is not empty.", RuntimeWarning)
    assert shown("# The axis name: labels will not be used, since it shares the same shape constraints", UserWarning)


def test_what_is_listed_is_hidden_and_levels_are_given_back() -> None:
    assert not shown("Checkpoint directory /a/b exists and is not empty.", UserWarning)
    library = logging.getLogger("pytorch_lightning")
    library.setLevel(logging.INFO)
    with unwanted_hidden():
        assert not library.isEnabledFor(logging.INFO)
        assert library.isEnabledFor(logging.WARNING)
    assert library.isEnabledFor(logging.INFO)
