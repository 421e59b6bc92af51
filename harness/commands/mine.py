"""`infer.py mine`: mine hard negatives for a classifier of document pairs with the retriever used at inference."""

from pathlib import Path

from common.checks import check_at_least
from common.errors import UserError
from common.outputs import OutputFile
from datamodules.formats.mined_negatives import is_mined
from harness.interfaces import Retriever

MINED = OutputFile("`infer.py mine`", "a file of mined negatives", is_mined)


def mine(
    retriever: Retriever,
    questions: list[str] | str,
    out: Path,
    layout: str = "hotpotqa",
    per_question: int = 24,
    anchors: int = 3,
    depth: int = 8,
) -> None:
    """Write, for each training question, the passages that both retrieval stages find and that are not gold.

    The classifier must learn to reject these: the first documents of Retriever(q), and those of Retriever(Concat(q, d))
    for the first `anchors` documents d and for each gold document d.

    Args:
        retriever: E.g. harness.retrievers.dense.DenseRetriever.
        questions: Official training file, several as '[FILE, FILE]'; never the file you evaluate on.
        out: JSON Lines file to write, replaced if it holds mined negatives; training reads it as data.mined.
        layout: Layout of the files: which data set's official format they have.
        per_question: Maximum passages per question, best ranks first.
        anchors: Number of first-stage documents to concatenate with the question.
        depth: Documents taken from each ranking.
    """
    from common.progress import say, track
    from common.records import Passage, Question, Ranked, clean
    from datamodules.formats.mined_negatives import write_mined
    from datamodules.formats.reading import read_questions
    from harness.retrievers.corpora import gold_not_in_index
    from harness.retrievers.two_stage import concatenate

    check_mine(questions, out, layout, per_question, anchors, depth)
    with MINED.locked(out):
        sources = [questions] if isinstance(questions, str) else questions
        all_questions = [question for source in sources for question in read_questions(layout, source)]

        gold_not_in_index(retriever, all_questions, count=False)

        def hard_negatives(question: Question, rankings: list[list[Ranked]]) -> list[Passage]:
            """Round robin over the rankings, without gold passages, also without those of which only the title is known."""
            gold_titles = {clean(title) for title in question.unshipped_support}
            negatives: dict[str, Passage] = {}
            for rank in range(depth + anchors + len(question.support)):
                for passage in (hits[rank].passage for hits in rankings if rank < len(hits)):
                    if passage.id not in question.support and passage.title not in gold_titles:
                        negatives.setdefault(passage.id, passage)
            return list(negatives.values())[:per_question]

        mined: list[tuple[str, list[Passage]]] = []
        chunk = 256
        for start in track(range(0, len(all_questions), chunk), -(-len(all_questions) // chunk), "mining"):
            batch = all_questions[start : start + chunk]
            first = retriever.search(
                [q.text for q in batch], depth + len(max(batch, key=lambda q: len(q.support)).support)
            )
            queries = [
                (row, concatenate(question.text, passage))
                for row, (question, hits) in enumerate(zip(batch, first, strict=True))
                for passage in {p.id: p for p in [*(h.passage for h in hits[:anchors]), *question.gold]}.values()
            ]
            second = retriever.search([text for _, text in queries], depth + anchors)
            rankings: list[list[list[Ranked]]] = [[hits] for hits in first]
            for (row, _), hits in zip(queries, second, strict=True):
                rankings[row].append(hits)
            mined += [(q.id, hard_negatives(q, lists)) for q, lists in zip(batch, rankings, strict=True)]
        write_mined(out, mined)
        say(f"{out}: {sum(len(found) for _, found in mined):,} hard negatives for {len(mined):,} questions.")


def check_mine(questions: list[str] | str, out: Path, layout: str, per_question: int, anchors: int, depth: int) -> None:
    """Check numbers, files and folders; called before anything is loaded.  Raises UserError or a subclass."""
    from datamodules.formats.reading import check_questions

    check_at_least(1, per_question=per_question, anchors=anchors, depth=depth)
    if not questions:
        raise UserError("questions names no file. Type --questions FILE; several files as '[FILE, FILE]'.")
    check_questions(layout, [questions] if isinstance(questions, str) else questions)
    MINED.check_writable(out)
