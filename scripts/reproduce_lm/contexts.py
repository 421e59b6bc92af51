"""Questions with a few of their passages, in files of FiD's layout: shuffled, or the first ones of BM25.

    python -m scripts.reproduce_lm.contexts FILE [FILE ...] --out OUT [--best 10] [--half 0]

FILE is in FiD's layout.  The order of passages, and the half that a question is in, come from hashes of texts, so that
no file's order says which passage holds the answer.  Scores that FILE gives are left out.
"""

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from common.errors import exit_code
from common.files import write_text
from common.records import Question, passage_id
from datamodules.formats.reading import read_questions
from datamodules.formats.row_counts import RowCounts
from harness.retrievers.question_passages import bm25_of_shipped

COMMAND = "python -m scripts.reproduce_lm.contexts"


def digest(*texts: str) -> int:
    """A number by which texts are ordered and divided."""
    return int.from_bytes(hashlib.sha256("\n".join(texts).encode()).digest(), "big")


def line(question: Question, row: dict[str, Any], scores: dict[str, float], best: int | None) -> str:
    """A question's row with its passages, as JSON."""
    contexts = sorted(
        ({key: each[key] for key in ("title", "text", "hasanswer", "isgold") if key in each} for each in row["ctxs"]),
        key=lambda each: digest(question.text, each["title"], each["text"]),
    )
    if best is not None:
        contexts = sorted(contexts, key=lambda each: -scores.get(passage_id(each["title"], each["text"]), 0.0))[:best]
    return json.dumps({"question": row["question"], "answers": row["answers"], "ctxs": contexts}, ensure_ascii=False)


def main() -> None:
    """Write the file."""
    options = argparse.ArgumentParser(description=__doc__, prog=COMMAND)
    options.add_argument("files", nargs="+")
    options.add_argument("--out", required=True, type=Path)
    options.add_argument("--best", type=int, help="passages of each question, by BM25; all of them when omitted")
    options.add_argument("--half", type=int, choices=(0, 1), help="which half of the questions; all when omitted")
    given = options.parse_args()
    counts = RowCounts(without_gold=None)
    read = [(each, dict(counts.row)) for file in given.files for each in read_questions("fid", file, counts=counts)]
    scores = bm25_of_shipped([question for question, _ in read])
    lines = [
        line(question, row, scored, given.best)
        for (question, row), scored in zip(read, scores, strict=True)
        if given.half is None or digest(question.text) % 2 == given.half
    ]
    write_text(given.out, "".join(f"{each}\n" for each in lines))


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
