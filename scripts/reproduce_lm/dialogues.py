"""Questions of dialogues: labels for the encoder that chooses words, and what rewriters are worth.

    python -m scripts.reproduce_lm.dialogues labels FILE OUT
    python -m scripts.reproduce_lm.dialogues report FILE OUT CANARD [--models REWRITER SELECTOR]

labels    FILE has the layout `rewrites`.  The encoder reads the question with its history, the newest turn first, in
          the place of a passage: a word of the question should stay, a word of the history should join, if the rewrite
          has it.
report    Of the questions, of what the serving folders REWRITER and SELECTOR make of them, of the human rewrites, and
          of the questions behind their turns: token F1 to the human rewrite, and how BM25 and MiniLM rank the turn's
          own answer among the answers in CANARD's dialogues, but "I don't know."; among those of its page; and among
          those of its page that its turns do not have.  Passages have no titles.  Answers with equal scores count as
          in every order.  With paired differences to the question alone, and to all turns with the question.

          "another question" is a control: what the rewriter makes of another question of the page behind the turn's
          own history.  "floor" is the search without a rewriter: all turns with the question.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import usual_scores
from common.errors import exit_code
from common.files import write_text
from common.other_questions import MOST, other_texts
from common.records import Passage, Question, Ranked
from common.rewrites import RewriteExample, Rewrites
from common.words import new_words, word_texts
from datamodules.formats.rewrites import read_rewrites
from datamodules.formats.word_labels import WordLabels, to_row
from harness.evaluation.bootstrap import paired_intervals
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.bm25 import bm25_scores
from harness.retrievers.question_passages import cosines
from harness.rewriters.extractive import STRATEGIES, ExtractiveRewriter
from harness.rewriters.trained import TrainedRewriter
from harness.runtime.memo import Values

COMMAND = "python -m scripts.reproduce_lm.dialogues"
AT_ONCE = 40  # turns; what a stopped run resumes by
MEASURES = {"recall@10": lambda ranks: ranks <= 10, "R@1": lambda ranks: ranks == 1, "MRR": lambda ranks: 1 / ranks}
QUESTION, TITLES, ALL = "question", "page title, section title, question", "all turns, question"
NO_ANSWER = "I don't know."

Answers = dict[tuple[tuple[str, ...], str], Passage]  # by history and question
Texts = dict[str, list[str]]  # one for each turn, by name of the tables' row


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

    depends = {"rows": [row.question for row in rows], "rewriter": str(rewriter), "selector": str(selector)}
    values, places = Values(journal, depends, "rewrites"), [str(place) for place in range(len(rows))]
    found = values(places, lambda own: write([rows[place] for place in own]), "rewriting", AT_ONCE)
    return {name: [row[name] for row in found] for name in found[0]}


def answers_of(canard: str) -> Answers:
    """The answers of turns: later turns of the dialogue have them in their histories."""
    found = {}
    for row in read_rewrites("canard", canard):
        for place in range(2, len(row.history) - 1, 2):  # behind the titles of page and section
            if (answer := row.history[place + 1]) != NO_ANSWER:
                found[row.history[:place], row.history[place]] = Passage.of("", answer)
    return found


def other_turns(rows: Sequence[RewriteExample], answers: Answers) -> dict[int, RewriteExample]:
    """Turns that ask another question of their page, by their place in the rows."""
    own = [Question("", row.question, (answers[row.history, row.question].text,), history=row.history) for row in rows]
    return {place: replace(rows[place], question=text) for place, text in other_texts(own, MOST).items()}


def table(title: str, values: dict[str, list[float]]) -> list[str]:
    """Means and their differences to the first and the last row, per cent, with 95% intervals."""
    rows_RN, names = 100 * np.array([*values.values()]), [*values]
    columns = [names]
    for sign, shown_RN in ("", rows_RN), ("+", rows_RN - rows_RN[0]), ("+", rows_RN - rows_RN[-1]):
        shown = zip(shown_RN.mean(1), *paired_intervals(shown_RN).T, strict=True)
        columns.append([f"{mean:{sign}.2f} [{low:{sign}.2f}, {high:{sign}.2f}]" for mean, low, high in shown])
    head = f"| text | {title}, %, n = {rows_RN.shape[1]} | minus {names[0]} | minus {names[-1]} |"
    return [head, "|---|---|---|---|", *(f"| {' | '.join(row)} |" for row in zip(*columns, strict=True)), ""]


def measured(measure: str, scores_P: NDArray, gold: int, among: Sequence[int]) -> float:
    """A measure of a gold passage among some, the mean over its ranks: as many as of these have its score."""
    higher, at_least = (scores_P[among] > scores_P[gold]).sum(), (scores_P[among] >= scores_P[gold]).sum()
    return MEASURES[measure](1 + np.arange(higher, at_least)).mean()


def searched(texts: Texts, rows: Sequence[RewriteExample], answers: Answers, encoder: SentenceEncoder) -> list[str]:
    """Tables of the ranks of the turns' own answers."""
    corpus = tuple({each.id: each for each in answers.values()}.values())
    place = {each.id: number for number, each in enumerate(corpus)}
    gold = [place[answers[row.history, row.question].id] for row in rows]
    page = [[*{place[a.id] for (history, _), a in answers.items() if history[0] == row.history[0]}] for row in rows]
    new = [[n for n in page[i] if n == gold[i] or corpus[n].text not in rows[i].history] for i in range(len(rows))]
    kinds = {"all answers": [range(len(corpus))] * len(rows), "the page's": page, "the page's not in the turns": new}
    lines: list[str] = []
    for engine in ("BM25", "MiniLM"):
        scores: dict[str, Sequence[NDArray]] = {QUESTION: [], "chance": [np.zeros(len(corpus))] * len(rows)}
        for name, own in texts.items():
            bm25 = bm25_scores([each.text for each in corpus], own)
            asked = [Question("", text, passages=corpus) for text in own]
            scores[name] = [*bm25] if engine == "BM25" else cosines(asked, encoder)
        for kind, measure in ("all answers", "recall@10"), *product([*kinds][1:], ("R@1", "MRR")):
            among = kinds[kind]
            kept = [turn for turn, each in enumerate(among) if len(each) > 1]
            values = {
                name: [measured(measure, own[n], gold[n], among[n]) for n in kept] for name, own in scores.items()
            }
            lines += table(f"{measure} among {kind}, {engine}", values)
    return lines


def report(rows: Sequence[RewriteExample], made: Texts, others: Sequence[int], answers: Answers) -> str:
    """All tables.

    Args:
        rows: The turns.
        made: What models make of them, and then of another question of some turns.
        others: The places of these turns.
        answers: Of all dialogues.
    """
    human, encoder = [row.rewrite for row in rows], SentenceEncoder()
    texts = {QUESTION: [row.question for row in rows]} | {name: own[: len(rows)] for name, own in made.items()}
    texts |= {"human rewrite": human, TITLES: [" ".join((*row.history[:2], row.question)) for row in rows]}
    texts[ALL] = [" ".join((*row.history, row.question)) for row in rows]
    f1 = {name: [usual_scores(text, [own])[1] for text, own in zip(texts[name], human, strict=True)] for name in texts}
    lines = table("token F1", f1) + searched(texts, rows, answers, encoder)
    if made:
        control = {name: [texts[name][place] for place in others] for name in (QUESTION, "rewriter")}
        control["another question"] = made["rewriter"][len(rows) :]
        control["floor"] = [texts[ALL][place] for place in others]
        lines += searched(control, [rows[place] for place in others], answers, encoder)
    return "\n".join(lines)


def main() -> None:
    """Write the labels or the report."""
    options = argparse.ArgumentParser(description=__doc__, prog=COMMAND)
    parts = options.add_subparsers(dest="part", required=True)
    for part in (parts.add_parser(name) for name in ("labels", "report")):
        part.add_argument("file")
        part.add_argument("out", type=Path)
    part.add_argument("canard")
    part.add_argument("--models", nargs=2, type=Path, metavar=("REWRITER", "SELECTOR"))
    given = options.parse_args()
    rows = list(read_rewrites("rewrites", given.file))
    if given.part == "labels":
        labelled = (json.dumps(to_row(labels(row, number))) for number, row in enumerate(rows))
        write_text(given.out, "".join(f"{line}\n" for line in labelled))
        return
    answers = answers_of(given.canard)
    others = other_turns(rows, answers)
    asked, journal = [*rows, *others.values()], given.out.with_suffix(".jsonl")
    made = rewritten(asked, journal, *given.models) if given.models else {}
    text = report(rows, made, [*others], answers)
    write_text(given.out, text)
    print(text, end="")


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
