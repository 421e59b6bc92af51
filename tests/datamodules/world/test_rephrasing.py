"""Rephrased questions of the synthetic world.

Existing files unchanged, one right answer each, disjoint splits, harder for BM25.
"""

import hashlib
import json
from pathlib import Path

from datamodules.formats.reading import read_passages, read_questions
from datamodules.world import rephrasing_phrases
from datamodules.world.phrases import SPLITS, Phrases
from datamodules.world.world import World

KINDS = ("noisy", "overlong", "underspecified")
ADDED = [getattr(rephrasing_phrases, n) for n in ("CHAT_OPENINGS", "CHAT_ENDINGS", "INSERTED", "RELATIVES", "TIMES")]
NOISE_WORDS = {
    split: {word for one in ADDED for phrase in one.of(split) for word in phrase.split()}
    | set(rephrasing_phrases.SPELLINGS[split].values())
    for split in SPLITS
}


def digest(path: Path) -> str:
    """sha256 of a file, or of the names and contents of a folder's files."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    named = b"".join(file.name.encode() + file.read_bytes() for file in files)
    return hashlib.sha256(named if path.is_dir() else path.read_bytes()).hexdigest()


def pinned(size: str) -> dict[str, str]:
    return json.loads(Path(__file__).with_name("digests.json").read_text())[size]


def test_files_that_existed_before_keep_their_bytes(folder: Path) -> None:
    assert {name: digest(folder / name) for name in pinned("small")} == pinned("small")
    new = {f"{kind}_{split}.{end}" for kind, end in (("rephrased", "json"), ("rewrites", "jsonl")) for split in SPLITS}
    assert {path.name for path in folder.iterdir()} - pinned("small").keys() == {*new, "world.json"}


def test_rows_have_the_gold_of_their_source_within_the_corpus(folder: Path, world: World) -> None:
    corpus = {p.id for p in read_passages("jsonl", [str(folder / "corpus.jsonl")])}
    record = json.loads((folder / "world.json").read_text())["rephrased_questions"]
    for split in SPLITS:
        rows = json.loads((folder / f"rephrased_{split}.json").read_text())
        questions = list(read_questions("hotpotqa", str(folder / f"rephrased_{split}.json")))
        multi = {q.id: q for q in read_questions("hotpotqa", str(folder / f"{split}.json"))}
        single = {q.id: q for q in read_questions("fid", str(folder / f"fid_{split}.json"))}
        assert len({row["source_id"] for row in rows}) == len(rows)
        assert {kind: sum(q.kind == kind for q in questions) for kind in KINDS} == record[split]
        for row, question in zip(rows, questions, strict=True):
            source = {**multi, **single}[row["source_id"]]
            assert question.answers == source.answers
            assert set(question.support) == set(source.support) <= corpus
            assert {p.id for p in question.passages} <= corpus
            assert len(question.passages) == 10
            assert not question.gold.titles
            assert question.text not in (source.text, row["clean_question"])


def test_no_template_and_no_noise_word_serves_two_splits() -> None:
    def phrases(value: object) -> list[Phrases]:
        if isinstance(value, dict):
            return [found for item in value.values() for found in phrases(item)]
        return [value] if isinstance(value, Phrases) else []

    every = [found for value in vars(rephrasing_phrases).values() for found in phrases(value)]
    assert len(every) > 15
    for used in (
        [{template for one in every for template in one.of(split)} - {"{l}", "{f}"} for split in SPLITS],
        [NOISE_WORDS[split] for split in SPLITS],
    ):
        assert all(used)
        assert not (used[0] & used[1] | used[0] & used[2] | used[1] & used[2])
