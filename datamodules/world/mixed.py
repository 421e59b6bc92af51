"""Questions of every kind that the world has in one file, in equal numbers: for comparing systems.

Each has its gold passages or gold segments.

single      one fact, and the clean question of `fid_SPLIT.json`
multi-hop   two to four facts, `SPLIT.json`
noisy       noisy, over-long and under-specified questions, `rephrased_SPLIT.json`
web-only    one or two facts that only the web corpus states, `test_web.json`; the splits draw different ones
manuals     the library's questions, `library_SPLIT.jsonl`
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random

from common.errors import UserError
from common.records import Question
from datamodules.formats.reading import read_questions

SINGLE, WEB = "single", "web-only"
SOURCES = {  # kind -> layout and file of the questions
    SINGLE: ("fid", "fid_{split}.json"),
    "multi-hop": ("hotpotqa", "{split}.json"),
    "noisy": ("hotpotqa", "rephrased_{split}.json"),
    WEB: ("hotpotqa", "test_web.json"),
    "manuals": ("flashrag", "library_{split}.jsonl"),
}
LEFT_OUT = {"multi-hop": SINGLE, "noisy": "overlong"}  # kind -> the source's own kind


def mixed_questions(folder: Path, count: int, seed: int) -> dict[str, list[dict]]:
    """Rows of FlashRAG's layout, in random order: `count` of each kind for test, half as many for validation.

    Args:
        folder: The world, whose other question files are written.
        count: Test questions of each kind.
        seed: Of the draw.

    Raises:
        UserError: If the world has too few questions of a kind.
    """
    random = Random(f"{seed}/mixed")
    made: dict[str, list[dict]] = {}
    used: set[str] = set()
    for split, wanted in ("test", count), ("validation", count // 2):
        drawn: list[tuple[str, Question]] = []
        for kind in SOURCES:
            asked = [question for question in _read(folder, kind, split) if question.id not in used]
            if len(asked) < wanted:
                raise UserError(
                    f"mixed is {count}: the world has only {len(asked):,} {split} questions of the kind {kind}, and "
                    f"{wanted:,} are needed. Give a smaller number, or a larger world."
                )
            chosen = random.sample(asked, wanted)
            used.update(question.id for question in chosen)
            drawn += [(kind, question) for question in chosen]
        random.shuffle(drawn)
        made[split] = [_row(f"{split}_mixed_{n:05d}", kind, question) for n, (kind, question) in enumerate(drawn)]
    return made


def _read(folder: Path, kind: str, split: str) -> Sequence[Question]:
    layout, name = SOURCES[kind]
    found = read_questions(layout, str(folder / name.format(split=split)))
    return [question for question in found if question.kind != LEFT_OUT.get(kind)]


def _row(name: str, kind: str, question: Question) -> dict:
    metadata: dict[str, object] = {"type": kind, "source_id": question.id, "source_type": question.kind}
    if question.gold.segments:
        metadata["gold_segments"] = [asdict(segment) for segment in question.gold.segments]
    else:
        metadata["gold_passages"] = [{"title": each.title, "text": each.text} for each in question.gold_passages]
    return {"id": name, "question": question.text, "golden_answers": [*question.answers], "metadata": metadata}
