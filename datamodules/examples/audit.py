"""Statistics of the training data, printed before training.

Class balance, lengths and noise of DR-RAG's triples.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from common.answer_metrics import has_answer
from common.records import Passage, Question
from datamodules.examples.triples import Triple


def audit(
    questions: Sequence[Question],
    triples: Sequence[Triple],
    mined: Mapping[str, Sequence[Passage]],
    lengths: Sequence[int],
    max_tokens: int,
    untruncated: Sequence[int],
) -> dict[str, object]:
    """Statistics of one epoch's triples.

    Args:
        questions: All training questions.
        triples: The triples sampled for one epoch.
        mined: Mined hard negatives by question id.
        lengths: Tokens of each triple as the model sees it.
        max_tokens: Maximum length, at which triples are truncated.
        untruncated: Tokens of each triple before truncation.

    Returns:
        JSON types only: class balance, triple and question kinds, noise sources, answers in noise, lengths.
    """
    kinds, question_kinds, noise = Counter[str](), Counter[str](), Counter[str]()
    used: set[str] = set()
    positives, of, mined_ids = 0, "", frozenset[str]()
    for triple in triples:  # those of a question follow one another
        question = triple.question
        kinds[triple.kind] += 1
        question_kinds[question.kind or "unnamed"] += 1
        positives += triple.positive
        if question.id != of or not used:
            of, mined_ids = question.id, frozenset(p.id for p in mined.get(question.id, ()))
        used.add(question.id)
        for passage in triple.texts[1:]:
            if passage.id not in question.support:
                noise["passages"] += 1
                noise["mined"] += passage.id in mined_ids
                noise["with_answer"] += has_answer(passage.text, question.answers)
    without, gold = 0, Counter[int]()
    for question in questions:
        without += question.id not in used
        gold[len(question.gold_passages)] += 1
    ordered = sorted(lengths)
    quantile = (
        {f"p{q}": ordered[min(len(ordered) - 1, len(ordered) * q // 100)] for q in (5, 50, 95)} if ordered else {}
    )
    return {
        "questions": len(questions),
        "questions_without_triples": without,
        "triples": len(triples),
        "positives": positives,
        "negatives": len(triples) - positives,
        "kinds": dict(kinds),
        "question_kinds": dict(question_kinds.most_common()),
        "gold_passages": dict(sorted(gold.items())),
        "noise": dict(noise),
        "tokens": {**quantile, "max": max(ordered, default=0), "max_tokens": max_tokens},
        "truncated": sum(length > max_tokens for length in untruncated),
    }


def lines(report: Mapping[str, object]) -> list[str]:
    """The statistics as a table: a row per number, those of a group indented below its name; then lists of lines."""
    rows, below = [], list[str]()
    for name, value in report.items():
        title = name.replace("_", " ")
        if isinstance(value, list):
            below += [f"{title}: {line}" for line in value]
            continue
        if isinstance(value, Mapping):
            rows += [(title, ""), *((f"  {key}".replace("_", " "), _format(count)) for key, count in value.items())]
        else:
            rows.append((title, _format(value)))
    names, values = (max(map(len, column), default=0) for column in zip(*rows, strict=True))
    rule = "-" * (names + 2 + values)
    table = (f"{name:<{names}}  {value:>{values}}".rstrip() for name, value in rows)
    return ["Training data", rule, *table, rule, *below]


def _format(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
