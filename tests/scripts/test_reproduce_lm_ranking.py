"""Contexts and ranking of `make reproduce-lm`: which passages a question keeps, and its measures by hand."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from common.records import Passage
from harness.retrievers import question_passages
from scripts.reproduce_lm import contexts, ranking

pytestmark = pytest.mark.numeric


def row(number: int, passages: int = 4) -> dict:
    """A question whose gold passage stands first, of whose passages each has one word of it more than the next."""
    words = [f"word{number}{place}" for place in range(passages)]
    texts = [" ".join(words[place:]) + " other words" for place in range(passages)]
    return {
        "question": " ".join(words), "answers": ["a"],
        "ctxs": [{"title": f"t{place}", "text": text, "isgold": not place, "hasanswer": not place, "score": place}
                 for place, text in enumerate(texts)],
    }  # fmt: skip


def written(files: list[Path], out: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> list[dict]:
    monkeypatch.setattr("sys.argv", ["contexts", *map(str, files), "--out", str(out), *options])
    contexts.main()
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_contexts_are_bm25s_first_or_in_an_order_that_no_file_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    rows = [row(number) for number in range(12)]
    files[0].write_text("".join(json.dumps(each) + "\n" for each in rows[:5]))
    files[1].write_text("".join(json.dumps({**each, "ctxs": each["ctxs"][::-1]}) + "\n" for each in rows[5:]))
    best = written(files, tmp_path / "best", monkeypatch, "--best", "2")
    assert [[each["title"] for each in one["ctxs"]] for one in best] == [["t0", "t1"]] * 12
    whole = written(files, tmp_path / "whole", monkeypatch)
    assert all("score" not in each for one in whole for each in one["ctxs"])
    places = [[each["isgold"] for each in one["ctxs"]].index(True) for one in whole]
    assert len(set(places)) > 2
    turned = written(files[::-1], tmp_path / "turned", monkeypatch)
    assert sorted(map(str, turned)) == sorted(map(str, whole))
    halves = [written(files, tmp_path / half, monkeypatch, "--half", half) for half in "01"]
    assert all(halves)
    assert sorted(map(str, halves[0] + halves[1])) == sorted(map(str, whole))


class TitleScorer:
    """Scores a passage by the number in its title: the gold one, t0, is the best, or with `worst` the last."""

    def __init__(self, name: str) -> None:
        self.sign = 1 if name == "worst" else -1

    def scores(self, pairs: list[tuple[str, Passage]]) -> list[float]:
        """The scores."""
        return [self.sign * float(passage.title[1:]) for _, passage in pairs]


def test_seeds_are_averaged_and_halves_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, numbers in (("a", range(2)), ("b", range(2, 3))):
        (tmp_path / name).write_text("".join(json.dumps(row(number)) + "\n" for number in numbers))
    one, other = str(tmp_path / "a"), str(tmp_path / "b")
    monkeypatch.setattr(ranking, "load_scorer", TitleScorer)
    monkeypatch.setattr("harness.indexing.sentence_encoder.SentenceEncoder", lambda name: name)
    monkeypatch.setattr(question_passages, "cosines", lambda pooled, _: [np.arange(4.0)] * len(pooled))  # gold is last
    systems = {
        "best": [("best", one), ("best", other)],
        "seeds": [("best", one), ("worst", one), ("best", other), ("best", other)],
        "worst": [("worst", one), ("worst", other)],
    }
    lines = ranking.table(systems)
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    untrained = ["BM25", "cosine", "BM25 and cosine", "the file's order"]
    assert head == ["3 questions, chance 25.0", "R@1", "R@5", "MRR", *(f"R@1 - {each}" for each in untrained)]
    means = {
        name: [float(cell.strip("*").split("*")[0].split(" ")[0]) for cell in cells]
        for name, *cells in rows
        if cells[1]
    }
    assert means["best"] == means["best, another question"] == [100, 100, 100, 0, 100, 0, 100]
    assert means["BM25"] == [100, 100, 100, 0, 100, 0, 100]
    assert means["cosine"] == means["worst"] == [0, 100, 25, -100, 0, -100, 0]
    assert means["seeds"][:5] == pytest.approx([66.7, 100, (0.625 + 0.625 + 1) * 100 / 3, -33.3, 66.7], abs=0.06)
    with pytest.raises(UserError, match="--system other has other files than the first system"):
        ranking.table({"best": systems["best"], "other": [("best", one)]})
    monkeypatch.setattr(sys, "argv", ["ranking", "--system", "best", str(tmp_path / "a")])
    with pytest.raises(UserError, match="--system best: give SERVING=FILE"):
        ranking.main()
