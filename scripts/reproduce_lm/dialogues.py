"""Questions of dialogues: labels for the encoder that chooses words, and what rewriters are worth.

    python -m scripts.reproduce_lm.dialogues labels FILE OUT
    python -m scripts.reproduce_lm.dialogues corpus CANARD OUT
    python -m scripts.reproduce_lm.dialogues report FILE OUT REWRITER SELECTOR CANARD BM25 DENSE

labels    FILE has the layout `rewrites`.  The encoder reads the question with its history, the newest turn first, in
          the place of a passage: a word of the question should stay, a word of the history should join, if the rewrite
          has it.
corpus    The answers in CANARD's dialogues as passages under their page's title, but "I don't know.".
report    Of the questions, of what the serving folders REWRITER and SELECTOR make of them, of the human rewrites, and
          of the questions behind their turns: token F1 to the human rewrite, and recall@10 of the turn's own answer
          among the corpus, in the indexes BM25 and DENSE; with paired differences to the question alone.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common.answer_metrics import usual_scores
from common.errors import exit_code
from common.files import write_text
from common.records import Passage, Question, Ranked
from common.rewrites import RewriteExample, Rewrites
from common.words import new_words, word_texts
from datamodules.formats.rewrites import read_rewrites
from datamodules.formats.word_labels import WordLabels, to_row
from harness.evaluation.bootstrap import paired_intervals
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.dense import DenseRetriever
from harness.rewriters.extractive import STRATEGIES, ExtractiveRewriter
from harness.rewriters.trained import TrainedRewriter
from harness.runtime.resumable import ResumableBatches

COMMAND = "python -m scripts.reproduce_lm.dialogues"
AT_ONCE = 40  # turns; what a stopped run resumes by
DEPTH = 10
QUESTION = "question"
NO_ANSWER = "I don't know."


def history_of(row: RewriteExample) -> Passage:
    """The turns before a question, the newest first."""
    return Passage.of("", " ".join(reversed(row.history)))


def labels(row: RewriteExample, number: int) -> WordLabels:
    """Which words are in the rewrite."""
    kept, history = set(word_texts(row.rewrite)), history_of(row)
    own = dict.fromkeys(word_texts(row.question))
    return WordLabels(
        str(number),
        row.question,
        0.5,  # of no use here: words say by themselves whether the rewrite has them
        {word: -0.5 if word in kept else 0.5 for word in own},
        {word: 0.5 for word in new_words(row.question, [history.text]) if word in kept},
        (history,),
    )


def rewritten(rows: Sequence[RewriteExample], journal: Path, rewriter: Path, selector: Path) -> dict[str, list[str]]:
    """What the rewriter and each strategy of the encoder make of every question."""
    trained, encoder = TrainedRewriter(rewriter), ExtractiveRewriter(selector, passages=1)

    def write(batch: Sequence[RewriteExample]) -> list[dict[str, str]]:
        questions = [Question("", row.question, history=row.history) for row in batch]
        generated = trained.rewrite(questions, ["gqr"])
        chosen = encoder.rewrite(questions, STRATEGIES, [[Ranked(history_of(row), 1.0)] for row in batch])
        return [
            {"rewriter": text(one, "gqr")} | {f"encoder, {name}": text(other, name) for name in STRATEGIES}
            for one, other in zip(generated, chosen, strict=True)
        ]

    def text(found: Rewrites, name: str) -> str:
        return " ".join(found.queries[name])

    batches = [rows[start : start + AT_ONCE] for start in range(0, len(rows), AT_ONCE)]
    depends = {"rows": [row.question for row in rows], "rewriter": str(rewriter), "selector": str(selector)}
    found = [row for each in ResumableBatches(journal, depends).run(batches, write, "rewriting") for row in each]
    return {name: [row[name] for row in found] for name in found[0]}


def answers_of(canard: str) -> dict[tuple[tuple[str, ...], str], Passage]:
    """The answers of turns, by history and question: later turns of the dialogue have them in their histories."""
    found = {}
    for row in read_rewrites("canard", canard):
        for place in range(2, len(row.history) - 1, 2):  # behind the titles of page and section
            answer = row.history[place + 1]
            if answer != NO_ANSWER:
                found[row.history[:place], row.history[place]] = Passage.of(row.history[0], answer)
    return found


def table(title: str, values: dict[str, Sequence[float]]) -> list[str]:
    """Means and their differences to the first row, per cent, with 95% intervals."""
    rows_RN = 100 * np.array([*values.values()])
    own, gains = paired_intervals(rows_RN), paired_intervals(rows_RN - rows_RN[0])
    lines = [f"| text | {title}, n = {rows_RN.shape[1]} | difference to the question |", "|---|---|---|"]
    for name, mean, ends, gain, low_high in zip(
        values, rows_RN.mean(1), own, (rows_RN - rows_RN[0]).mean(1), gains, strict=True
    ):
        shown = "" if name == QUESTION else f"{gain:+.2f} [{low_high[0]:+.2f}, {low_high[1]:+.2f}]"
        lines.append(f"| {name} | {mean:.2f} [{ends[0]:.2f}, {ends[1]:.2f}] | {shown} |")
    return [*lines, ""]


def report(rows: Sequence[RewriteExample], made: dict[str, list[str]], canard: str, bm25: Path, dense: Path) -> str:
    """The three tables."""
    texts = {QUESTION: [row.question for row in rows], **made, "human rewrite": [row.rewrite for row in rows]}
    texts["page title, section title, question"] = [" ".join((*row.history[:2], row.question)) for row in rows]
    texts["all turns, question"] = [" ".join((*row.history, row.question)) for row in rows]
    f1 = {
        name: [usual_scores(text, [row.rewrite])[1] for text, row in zip(own, rows, strict=True)]
        for name, own in texts.items()
    }
    lines, answers = table("token F1, %", f1), answers_of(canard)
    known = [place for place, row in enumerate(rows) if (row.history, row.question) in answers]
    gold = [answers[rows[place].history, rows[place].question].id for place in known]
    for title, retriever in {"BM25": Bm25Retriever(bm25), "MiniLM": DenseRetriever(dense)}.items():
        recall = {}
        for name, own in texts.items():
            found = retriever.search([own[place] for place in known], DEPTH)
            ids = [{hit.passage.id for hit in hits} for hits in found]
            recall[name] = [float(one in those) for one, those in zip(gold, ids, strict=True)]
        lines += table(f"recall@{DEPTH} of the answer, {title}, %", recall)
    return "\n".join(lines)


def main() -> None:
    """Write the labels, the corpus or the report."""
    options = argparse.ArgumentParser(description=__doc__, prog=COMMAND)
    parts = options.add_subparsers(dest="part", required=True)
    for part in (parts.add_parser(name) for name in ("labels", "corpus", "report")):
        part.add_argument("file")
        part.add_argument("out", type=Path)
    for name in ("rewriter", "selector", "canard", "bm25", "dense"):
        part.add_argument(name, type=str if name == "canard" else Path)
    given = options.parse_args()
    if given.part == "corpus":
        passages = {passage.id: passage for passage in answers_of(given.file).values()}
        made = [{"id": name, "title": each.title, "text": each.text} for name, each in passages.items()]
        write_text(given.out, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in made))
        return
    rows = list(read_rewrites("rewrites", given.file))
    if given.part == "labels":
        labelled = (json.dumps(to_row(labels(row, number))) for number, row in enumerate(rows))
        write_text(given.out, "".join(f"{line}\n" for line in labelled))
        return
    texts = rewritten(rows, given.out.with_suffix(".jsonl"), given.rewriter, given.selector)
    text = report(rows, texts, given.canard, given.bm25, given.dense)
    write_text(given.out, text)
    print(text, end="")


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
