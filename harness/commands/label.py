"""`infer.py label`: label words of training questions and of the passages found by how much they change retrieval."""

from pathlib import Path
from typing import Any

from common.outputs import OutputFile
from common.ranges import PositiveInt
from datamodules.formats.word_labels import from_row, is_word_labels, to_row
from harness.commands.file_lists import listed
from harness.interfaces import Retriever
from harness.rewriters.word_labels import VALUE, LabelCounts, WordLabeler

LABELS = OutputFile("`infer.py label`", "a file of word labels", is_word_labels)
# one search of about 200 queries per question; also the unit in which an interrupted run resumes, and that ranks share
QUESTIONS_AT_ONCE = 16


def label(
    retriever: Retriever,
    questions: list[str] | str,
    out: Path,
    layout: str = "auto",
    limit: PositiveInt | None = None,
    corpus: str | None = None,
    min_grade: PositiveInt | None = None,
    strict: bool = False,
    **searches: Any,
) -> None:
    """Write, for each training question, the change in retrieval without each of its words.

    Also with each word of the best passages.

    A question's value is the mean over its gold passages of C² / (C² + rank²), C = half_rank, 0 for those that are not
    found. The changes are what an extractive rewriter learns from. Questions whose gold passages are not in the index
    are skipped. A stopped run resumes: type it again. Under torchrun all processes share the work.

    Args:
        retriever: The labels are of this retriever, e.g. harness.retrievers.bm25.Bm25Retriever.
        questions: Official training file, several as '[FILE, FILE]'; never the file you evaluate on.
        out: JSON Lines file to write, replaced if it holds word labels.
        layout: Layout of the files; auto: of each by the fields of its first row (docs/data.md).
        limit: Use only this many questions, from the beginning.
        corpus: Corpus file by whose ids the questions name their gold passages.
        min_grade: Lowest grade of a gold passage, where the files grade them; null: all above 0.
        strict: Whether an unusual row (empty, null, repeated, without gold) is an error; else they are counted.
        searches: See `WordLabeler`.
    """
    sources = listed(questions)
    import json
    from itertools import islice

    from common.errors import DataError
    from common.progress import say, say_facts
    from common.words import WORDS
    from datamodules.formats.gold_in_corpus import read_questions_with_gold
    from datamodules.formats.reading import check_questions
    from datamodules.formats.row_counts import RowCounts
    from harness.evaluation.serialization import digest
    from harness.retrievers.corpora import absent_gold, check_same_corpus, gold_of
    from harness.runtime.loading import load
    from harness.runtime.provenance import configuration, hardware
    from harness.runtime.shared_lines import check_unless_shared, write_shared

    check_questions(layout, sources)
    check_unless_shared(LABELS, out)
    labeler = WordLabeler(retriever, **searches)
    load(*labeler.retrievers)
    check_same_corpus(labeler.retrievers)
    unusual = RowCounts(strict)
    read = (
        each
        for source in sources
        for each in read_questions_with_gold(layout, source, None, corpus, unusual, min_grade)
    )
    asked = list(islice(read, limit))
    say_facts(unusual.lines())
    absent = absent_gold(retriever, gold_of(asked)) or set()
    known = [question for question in asked if set(question.support) - absent]
    if not known:
        raise DataError(f"None of the {len(asked):,} questions has a gold passage: choose a file that ships them.")
    configured = [*map(configuration, labeler.retrievers)]
    depends_on = {
        **searches, "value": VALUE, "words": WORDS, "retriever": configured[0], "feedback_retrievers": configured[1:],
        "questions": digest(known), "hardware": hardware(),
    }  # fmt: skip
    counts = LabelCounts()
    failed = write_shared(
        LABELS,
        out,
        lambda: (len(known), None if None in configured else depends_on),
        lambda: iter(known),
        QUESTIONS_AT_ONCE,
        lambda batch: [json.dumps(to_row(labels), ensure_ascii=False) for labels in labeler.label(batch)],
        "labelling",
        lambda question: question.id,
        lambda line: counts.add(from_row(json.loads(line))),
    )
    skipped = len(asked) - len(known)
    say(f"{out}: {counts}" + (f"; {skipped:,} questions skipped (no gold passage in the index)." if skipped else "."))
    failed.check()
