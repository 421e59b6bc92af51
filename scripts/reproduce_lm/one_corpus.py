"""Questions with BM25's first passages of one corpus, in which no style and no title says which passage is relevant.

    python -m scripts.reproduce_lm.one_corpus LAYOUT FILE [FILE ...] --out FOLDER [--best 20]

The corpus is the distinct passages of all FILEs.  A passage is relevant if it holds an answer by DPR's rule; answers of
one or two characters, yes and no are left out, and so are questions without another one, and those whose passages are
all relevant or all not.  Writes FOLDER/half-0.jsonl and half-1.jsonl, divided by the hash of the question, and
FOLDER/train-0.jsonl and train-1.jsonl with the first ten passages of each question, in FiD's layout and BM25's order.
Prints what was left out, and R@1 of BM25 and of chance for each FILE.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from common.answer_metrics import has_answer, squad
from common.errors import exit_code
from common.files import write_text
from common.records import Question
from datamodules.formats.reading import read_questions
from harness.indexing.passage_store import indexed_text
from harness.retrievers.question_passages import bm25_scores
from scripts.reproduce_lm.contexts import digest

COMMAND = "python -m scripts.reproduce_lm.one_corpus"
TRAINED = 10  # passages of each question in training
HALVES = (0, 1)


def usable(answers: tuple[str, ...]) -> list[str]:
    """The answers whose presence in a passage says something."""
    return [answer for answer in answers if len(squad(answer)) > 2 and squad(answer) not in ("yes", "no")]


def main() -> None:
    """Write the files, and print the counts."""
    options = argparse.ArgumentParser(description=__doc__, prog=COMMAND)
    options.add_argument("layout")
    options.add_argument("files", nargs="+")
    options.add_argument("--out", required=True, type=Path)
    options.add_argument("--best", type=int, default=20, help="passages of each question")
    given = options.parse_args()
    read = {file: list(read_questions(given.layout, file)) for file in given.files}
    corpus = [*{p.id: p for questions in read.values() for question in questions for p in question.passages}.values()]
    print(f"{len(corpus):,} distinct passages")
    asked: dict[str, tuple[str, Question]] = {}
    for file, questions in read.items():
        for question in questions:
            asked.setdefault(squad(question.text), (file, question))
    texts = [indexed_text(passage) for passage in corpus]
    lines: dict[int, list[tuple[list[dict], dict]]] = {half: [] for half in HALVES}
    relevant: dict[str, list[list[bool]]] = {file: [] for file in read}
    short = without = one_kind = 0
    scored = bm25_scores(texts, [question.text for _, question in asked.values()])
    for (file, question), scores_P in zip(asked.values(), scored, strict=True):
        answers = usable(question.answers)
        short += len(question.answers) - len(answers)
        without += not answers
        if not answers:
            continue
        best = [int(place) for place in np.argsort(-scores_P, kind="stable")[: given.best]]
        held = [has_answer(corpus[place].text, answers) for place in best]
        one_kind += len(set(held)) == 1
        if len(set(held)) == 1:
            continue
        relevant[file].append(held)
        contexts = [
            {"title": passage.title, "text": passage.text, "score": float(score), "hasanswer": hold}
            for passage, score, hold in zip((corpus[place] for place in best), scores_P[best], held, strict=True)
        ]
        row = {"question": question.text, "answers": answers}
        lines[digest(squad(question.text)) % len(HALVES)].append((contexts, row))
    for half, rows in lines.items():
        for name, depth in ("half", given.best), ("train", TRAINED):
            made = (json.dumps({**row, "ctxs": contexts[:depth]}, ensure_ascii=False) for contexts, row in rows)
            write_text(given.out / f"{name}-{half}.jsonl", "".join(f"{line}\n" for line in made))
    print(
        f"{len(asked):,} distinct questions; left out: {short:,} answers, {without:,} questions with no other answer, "
        f"{one_kind:,} whose passages are all of one kind; halves of {len(lines[0])} and {len(lines[1])}"
    )
    for file, held in relevant.items():
        first, chance = (100 * np.mean([of(each) for each in held]) for of in (lambda each: each[0], np.mean))
        print(f"{Path(file).name}: {len(held):,} questions, R@1 of BM25 {first:.1f}, of chance {chance:.1f}")


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
