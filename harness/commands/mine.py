"""`infer.py mine`: mine hard negatives for a classifier or an estimator with the retriever used at inference."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from common.outputs import OutputFile
from common.ranges import PositiveInt
from common.records import Question
from datamodules.formats.mined_negatives import is_mined, mined_line
from harness.commands.file_lists import listed
from harness.interfaces import Retriever
from harness.retrievers.hard_negatives import HardNegatives

MINED = OutputFile("`infer.py mine`", "a file of mined negatives", is_mined)
QUESTIONS_AT_ONCE = 256  # bounds memory; also the unit in which an interrupted run resumes, and that ranks share


def mine(
    retriever: Retriever,
    questions: list[str] | str,
    out: Path,
    layout: str = "auto",
    corpus: str | None = None,
    min_grade: PositiveInt | None = None,
    exclude_self: bool = False,
    strict: bool = False,
    **searches: Any,
) -> None:
    """Write, for each training question, the passages that retrieval finds and that are not gold.

    A classifier of pairs must learn to reject what both of its stages find: the first documents of Retriever(q), and
    those of Retriever(Concat(q, d)) for the first `anchors` documents d and for each gold document d. The file also
    says which d found which. A relevance estimator ranks what Retriever(q) alone finds: set `anchors` to 0, and `depth`
    and `per_question` to the number of passages that it will rank.

    A stopped run resumes: type it again.  Under torchrun all processes share the work:
    `torchrun --nproc-per-node 8 infer.py mine --config FILE`.

    Args:
        retriever: E.g. harness.retrievers.dense.DenseRetriever.
        questions: Official training file, several as '[FILE, FILE]'; never the file you evaluate on.
        out: JSON Lines file to write, replaced if it holds mined negatives; training reads it as data.hard_negatives.
        layout: Layout of the files; auto: of each by the fields of its first row (docs/data.md).
        corpus: Corpus file by whose ids the questions name their gold passages.
        min_grade: Lowest grade of a gold passage, where the files grade them; null: all above 0.
        exclude_self: Leave the passage that is the question itself, by its id in the corpus or its text, out of what is
            retrieved.
        strict: Whether an unusual row (empty, null, repeated, without gold) is an error; else they are counted.
        searches: See `HardNegatives`.
    """
    import json
    from itertools import chain

    from common.progress import say, say_facts, track
    from datamodules.formats.gold_in_corpus import CORPUS_LAYOUT, read_questions_with_gold
    from datamodules.formats.reading import check_questions, read_passages
    from datamodules.formats.row_counts import RowCounts
    from harness.evaluation.serialization import digest
    from harness.retrievers.corpora import absent_gold, check_same_corpus
    from harness.runtime.loading import load
    from harness.runtime.provenance import configuration, hardware, recorded
    from harness.runtime.shared_lines import check_unless_shared, write_shared

    sources = listed(questions)
    check_questions(layout, sources)
    if corpus is not None:
        next(read_passages(CORPUS_LAYOUT, [corpus]))
    check_unless_shared(MINED, out)
    negatives = HardNegatives(retriever, **searches)
    retrievers = [each for each in (retriever, negatives.second_retriever) if each is not None]
    load(*retrievers, negatives.false_negatives)
    check_same_corpus(retrievers)
    counts = Counter[str]()

    def read(counts: RowCounts | None = None) -> Iterator[Question]:
        found = chain.from_iterable(
            read_questions_with_gold(layout, source, None, corpus, counts, min_grade) for source in sources
        )
        return (question.excluding_self() for question in found) if exclude_self else found

    def survey() -> tuple[int, dict[str, object] | None]:
        """Number of questions, and what their lines depend on."""
        count, gold = 0, set[str]()
        unusual = RowCounts(strict, without_gold="mined all the same")

        def looked_at() -> Iterator[Question]:
            nonlocal count
            for question in track(read(unusual), None, "reading questions"):
                count += 1
                gold.update(question.support)
                yield question

        searched = [*map(configuration, retrievers)]
        depends_on: dict[str, object] = {
            **searches, "retriever": searched[0], "second_retriever": searched[1:], "questions": digest(looked_at()),
            "hardware": hardware(), "false_negatives": recorded(negatives.false_negatives),
        }  # fmt: skip
        absent_gold(retriever, gold)  # refuses an index of another corpus
        say_facts(unusual.lines())
        return count, None if None in searched else depends_on

    def lines(batch: Sequence[Question]) -> list[str]:
        found = zip(batch, negatives.of(batch), strict=True)
        return [mined_line(question.id, mined) for question, mined in found]

    def seen(line: str) -> None:
        counts["questions"] += 1
        row = json.loads(line)
        counts["passages"] += len(row["passages"])
        counts["copies"] += row["copies"]
        counts["relevant"] += row.get("relevant", 0)

    failed = write_shared(MINED, out, survey, read, QUESTIONS_AT_ONCE, lines, "mining", lambda each: each.id, seen)
    copies = f"; {counts['copies']:,} passages with a gold passage's text are none" if counts["copies"] else ""
    relevant = f"; {counts['relevant']:,} passages may be relevant and were left out" if counts["relevant"] else ""
    say(f"{out}: {counts['passages']:,} hard negatives for {counts['questions']:,} questions{copies}{relevant}.")
    failed.check()
