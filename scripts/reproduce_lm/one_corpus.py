"""Questions with BM25's first passages of one corpus, in which no style and no title says which passage is relevant.

    python -m scripts.reproduce_lm.one_corpus LAYOUT FILE [FILE ...] --out FOLDER

The corpus is the distinct passages of all FILEs.  A passage is relevant if it holds an answer by DPR's rule; answers of
one or two characters, yes and no are left out, and so are questions without another one, and those whose passages are
all relevant or all not.  Writes FOLDER/half-0.jsonl and half-1.jsonl, divided by the hash of the question, and
FOLDER/train-0.jsonl and train-1.jsonl with the first ten passages of each question, in FiD's layout and BM25's order.
Prints what was left out, and R@1 of BM25 and of chance for each FILE.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from common.answer_metrics import has_answer, squad
from common.errors import exit_code
from common.files import write_text
from common.records import Question
from datamodules.formats.reading import read_questions
from harness.indexing.passage_store import indexed_text
from harness.retrievers.bm25 import bm25_scores
from scripts.reproduce_lm.contexts import digest

COMMAND = "python -m scripts.reproduce_lm.one_corpus"
RANKED, TRAINED = 20, 10  # passages of each question


def main() -> None:
    """Write the files, and print the counts."""
    options = argparse.ArgumentParser(description=__doc__, prog=COMMAND)
    options.add_argument("layout")
    options.add_argument("files", nargs="+")
    options.add_argument("--out", required=True, type=Path)
    given = options.parse_args()
    read = {file: list(read_questions(given.layout, file)) for file in given.files}
    asked: dict[str, tuple[str, Question]] = {}
    for file, one in ((file, one) for file, questions in read.items() for one in questions):
        asked.setdefault(squad(one.text), (file, one))
    corpus = [*{p.id: p for questions in read.values() for one in questions for p in one.passages}.values()]
    halves: tuple[list[dict[str, Any]], ...] = ([], [])
    relevant: dict[str, list[list[bool]]] = {file: [] for file in read}
    left_out: Counter[str] = Counter()
    scored = bm25_scores([*map(indexed_text, corpus)], [one.text for _, one in asked.values()])
    for (text, (file, one)), scores_P in zip(asked.items(), scored, strict=True):
        answers = [each for each in one.answers if len(squad(each)) > 2 and squad(each) not in ("yes", "no")]
        best = np.argsort(-scores_P, kind="stable")[:RANKED].tolist()
        held = [has_answer(corpus[place].text, answers) for place in best]
        left_out["answers"] += len(one.answers) - len(answers)
        if len(set(held)) == 1:
            left_out["questions whose passages are all of one kind" if answers else "questions without an answer"] += 1
            continue
        relevant[file].append(held)
        passages = [
            {
                "title": corpus[place].title,
                "text": corpus[place].text,
                "score": float(scores_P[place]),
                "hasanswer": hold,
            }
            for place, hold in zip(best, held, strict=True)
        ]
        halves[digest(text) % 2].append({"question": one.text, "answers": answers, "ctxs": passages})
    for half, rows in enumerate(halves):
        for name, depth in ("half", RANKED), ("train", TRAINED):
            made = (json.dumps({**row, "ctxs": row["ctxs"][:depth]}, ensure_ascii=False) for row in rows)
            write_text(given.out / f"{name}-{half}.jsonl", "".join(f"{line}\n" for line in made))
    print(f"{len(corpus)} distinct passages, {len(asked)} questions, halves of {len(halves[0])} and {len(halves[1])}")
    print("left out:", ", ".join(f"{count} {name}" for name, count in left_out.items()))
    for file, rows_of_file in relevant.items():
        first, chance = (100 * np.mean([of(each) for each in rows_of_file]) for of in (lambda each: each[0], np.mean))
        print(f"{Path(file).name}: {len(rows_of_file)} questions, R@1 of BM25 {first:.1f}, of chance {chance:.1f}")


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
