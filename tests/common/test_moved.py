"""Advice on names of earlier releases: moved classes, nested options, renamed flags; other messages stay."""

import importlib

import pytest

from common.moved import CLASSES, advice


@pytest.mark.parametrize(
    ("message", "new_name"),
    [
        ("Option 'k1' is not accepted", "in DR-RAG selection: {k1: ...}"),
        ("unrecognized arguments: --protocol squad", "--normalization"),
        ("unrecognized arguments: --open-singles 3", "--open_singles"),
    ],
)
def test_a_renamed_option_is_named_beside_the_message(message: str, new_name: str) -> None:
    assert advice(message, "no such key") == f"no such key (renamed since an earlier release; now: {new_name})"


def test_other_messages_stay() -> None:
    assert (
        advice("unrecognized arguments: --protocols 3", "--protocols: no such option") == "--protocols: no such option"
    )


def test_every_new_class_exists() -> None:
    for name in CLASSES.values():
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute)
