"""Training, validation and test files of rewriters in the layout `rewrites`, drawn by the hash of their questions.

    python -m scripts.reproduce_lm.rewrite_files dialogues QRECC CANARD OUT
    python -m scripts.reproduce_lm.rewrite_files queries RRR.source OUT --not_in HOTPOTQA_DEV ...
    python -m scripts.reproduce_lm.rewrite_files passages NQ OUT.jsonl

dialogues   OUT/qrecc-train.jsonl (1,500 turns), qrecc-validation.jsonl (200), canard-test.jsonl (600); whole dialogues
            of QReCC as far as they fit, but those that share any question or rewrite with CANARD, and those whose
            questions or rewrites have the title of a page of CANARD, without its "(band)"
queries     OUT/rrr-train.jsonl (2,000), rrr-validation.jsonl (200): HotpotQA's questions with search queries, none of
            them in the files after --not_in
passages    NQ's questions, each with the title and the first sentence of its gold passage
"""

import argparse
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from common.errors import exit_code
from common.files import write_text
from common.records import Passage, passage_text
from common.rewrites import RewriteExample
from datamodules.formats.reading import read_questions
from datamodules.formats.rewrites import read_rewrites
from scripts.reproduce_lm.dialogues import answers_of

COMMAND = "python -m scripts.reproduce_lm.rewrite_files"
TURNS, VALIDATION, TEST, PAIRS = 1500, 200, 600, 2000
_SENTENCE_END = re.compile(r"(?<=[.!?])(?=\s)")


def words(text: str) -> str:
    """A question as it is compared."""
    return " ".join(re.findall(r"\w+", text.lower()))


def digest(*texts: str) -> str:
    """What rows are ordered by."""
    return hashlib.sha256("\n".join(("0", *texts)).encode()).hexdigest()


def write(file: Path, rows: Iterable[RewriteExample]) -> None:
    """A file in the layout `rewrites`."""
    write_text(file, "".join(f"{json.dumps(asdict(row), ensure_ascii=False)}\n" for row in rows))


def asked(turns: Iterable[RewriteExample]) -> set[str]:
    """All questions of dialogues, those of their histories too, and all rewrites."""
    return {words(text) for row in turns for text in (*row.history[::2], row.question, row.rewrite)}


def dialogues(qrecc: str, canard: str, out: Path) -> None:
    """Dialogues of QReCC, and turns of CANARD, whose histories begin with the titles of page and section."""

    def first(row: RewriteExample) -> str:
        return words((*row.history, row.question)[0])

    tests, answers = list(read_rewrites("canard", canard)), answers_of(canard)
    theirs = sorted(read_rewrites("qrecc", qrecc), key=lambda row: digest(first(row)))  # stable: turns stay in order
    whole = [[*turns] for _, turns in groupby(theirs, key=first)]
    questions, titles = asked(tests), {f" {words(row.history[0].partition(' (')[0])} " for row in tests}
    apart = [turns for turns in whole if questions.isdisjoint(asked(turns))]
    kept = [turns for turns in apart if not any(title in f" {text} " for title in titles for text in asked(turns))]
    print(f"dialogues of QReCC: {len(whole):,}, without an equal question {len(apart):,}, without a page {len(kept):,}")
    train: list[RewriteExample] = []
    validation: list[RewriteExample] = []
    for turns in kept:
        (train if len(train) < TURNS else validation).extend(turns)
    tests = [row for row in tests if (row.history, row.question) in answers]
    tests = sorted(tests, key=lambda row: digest(row.question, *row.history))[:TEST]
    parts = {"qrecc-train": train[:TURNS], "qrecc-validation": validation[:VALIDATION], "canard-test": tests}
    for name, rows in parts.items():
        write(out / f"{name}.jsonl", rows)
        pages, distinct = (len({(*row.history, row.question)[:texts] for row in rows}) for texts in (1, 3))
        print(f"{name}: {len(rows):,} turns of {distinct if rows is tests else pages:,} dialogues")
    print(f"canard-test: {pages:,} pages")


def queries(rrr: str, out: Path, not_in: Sequence[str]) -> None:
    """Search queries of HotpotQA's questions."""
    dev = {words(question.text) for file in not_in for question in read_questions("hotpotqa", file)}
    pairs = {words(row.question): row for row in read_rewrites("rrr", rrr)}
    drawn = [pairs[name] for name in sorted(pairs.keys() - dev, key=digest)]
    write(out / "rrr-train.jsonl", drawn[:PAIRS])
    write(out / "rrr-validation.jsonl", drawn[PAIRS : PAIRS + VALIDATION])


def passages(nq: str, out: Path) -> None:
    """Pseudo-answers of NQ's questions, in the form in which passages are indexed."""
    answered = [
        (question.text, question.gold_passages[0]) for question in read_questions("fid", nq) if question.gold_passages
    ]
    write(out, (RewriteExample(text, "par", passage_text(_beginning(gold))) for text, gold in answered))


def _beginning(passage: Passage) -> Passage:
    return Passage.of(passage.title, _SENTENCE_END.split(passage.text, 1)[0])


def main() -> None:
    """Write the files."""
    options = argparse.ArgumentParser(description=__doc__, prog=COMMAND)
    parts = options.add_subparsers(dest="part", required=True)
    for name, files in {"dialogues": ("qrecc", "canard"), "queries": ("rrr",), "passages": ("nq",)}.items():
        part = parts.add_parser(name)
        for file in files:
            part.add_argument(file)
        part.add_argument("out", type=Path)
        if name == "queries":
            part.add_argument("--not_in", nargs="*", default=[])
    given = vars(options.parse_args())
    {"dialogues": dialogues, "queries": queries, "passages": passages}[given.pop("part")](**given)


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
