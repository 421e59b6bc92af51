"""Every line of `lines.yaml` is refused in one line, with its exit code, before anything is loaded or written."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

from common.files import digests
from tests.helpers.commands import command, refused
from tests.helpers.runs import ROOT

SECRET = "sk-proj-Abc0123456789defghijkl"  # made up; no line repeats it
NAMES = {
    "BM25": "harness.retrievers.bm25.Bm25Retriever",
    "DENSE": "harness.retrievers.dense.DenseRetriever",
    "FUSED": "harness.retrievers.fusion.FusedRetriever",
    "BOARD": "pytorch_lightning.loggers.TensorBoardLogger",
    "QDRANT": "harness.retrievers.qdrant.QdrantRetriever",
    "WEB": "harness.retrievers.web.WebRetriever",
    "DRRAG": "harness.systems.drrag.DrRag",
    "RERAG": "harness.systems.rerag.ReRag",
    "PLAIN": "harness.systems.retrieve_read.RetrieveRead",
    "LM": "harness.llm.local.CausalLm",
    "CHAT": "harness.llm.endpoint.ChatEndpoint",
    "CONFIGS": str(ROOT / "configs"),
    "SECRET": SECRET,
}


def lines() -> Iterator[Any]:
    """Place, arguments, exit code, and what the line must contain."""
    for section in yaml.safe_load(Path(__file__).with_name("lines.yaml").read_text()):
        for rest, code, *parts in section["refused"]:
            typed = f"{section['typed']} {rest}"
            yield pytest.param(section["place"], typed, code, parts, id=typed[-90:])


@pytest.mark.parametrize(("place", "typed", "code", "parts"), lines())
def test_it_is_refused(
    made: Callable[[str], Path], place: str, typed: str, code: int, parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "BRAVE_API_KEY", "TAVILY_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    folder = made(place)
    before = digests(folder)
    words = shlex.split(Template(typed).substitute(NAMES))
    while not words[0].endswith(".py"):
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    ended = command(folder, *words)
    refused(ended, code, *parts)
    assert words[0] == "train.py" or ended.out == ""
    assert SECRET[8:] not in ended.err
    assert digests(folder) == before
