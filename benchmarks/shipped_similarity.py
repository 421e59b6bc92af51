"""The baseline of the distractor setting.

Of the passages that each question ships, the first k by a sentence encoder's cosine.

    python -m benchmarks.shipped_similarity data/hotpotqa/hotpot_distractor_dev.json.gz --k 2
    python -m benchmarks.shipped_similarity data/musique/musique_ans_dev.jsonl.gz --layout musique --k 2

Prints recall, EM and F1 of these passages in percent, with 95% bootstrap intervals over the questions.
"""

import argparse
from collections.abc import Sequence

from common.checks import check_at_least
from common.errors import exit_code
from common.records import Question, Ranked
from datamodules.formats.reading import read_questions
from harness.evaluation.answer_scores import Bootstrap, percent_cells
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.shipped import cosines

COMMAND = "python -m benchmarks.shipped_similarity"
ENCODER = "sentence-transformers/all-MiniLM-L6-v2"


def first_by_cosine(questions: Sequence[Question], encoder: SentenceEncoder, k: int) -> list[list[Ranked]]:
    """The first k shipped passages of each question, each once, best first."""
    found = []
    for question, cosine_P in zip(questions, cosines(questions, encoder), strict=True):
        ranked = {p.id: Ranked(p, float(s)) for p, s in zip(question.passages, cosine_P, strict=True)}
        found.append(sorted(ranked.values(), key=lambda hit: -hit.score)[:k])
    return found


def main(args: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog=COMMAND
    )
    options.add_argument("questions")
    options.add_argument("--layout", default="hotpotqa")
    options.add_argument("--encoder", default=ENCODER)
    options.add_argument("--k", type=int, default=2)
    given = options.parse_args(args)
    check_at_least(1, k=given.k)
    questions = list(read_questions(given.layout, given.questions))
    evidence = first_by_cosine(questions, SentenceEncoder(given.encoder), given.k)
    scores = retrieval_scores(questions, evidence, (given.k,))
    named = {"recall": scores[f"recall@{given.k}"], "EM": scores["EM"], "F1": scores["F1"]}
    print(f"{len(questions)} questions, the first {given.k} by {given.encoder}, per cent:")
    for name, cell in zip(named, percent_cells([*named.values()], Bootstrap()), strict=True):
        assert cell.interval is not None  # a mean of several questions
        print(f"  {name:<8}{cell.value:.1f} [{cell.interval[0]:.1f}, {cell.interval[1]:.1f}]")


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
