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
    question_weight: int = 1,
) -> None:
    """Write, for each training question, the passages that both retrieval stages find and that are not gold.

    The classifier must learn to reject these: the first documents of Retriever(q), and those of Retriever(Concat(q, d))
    for the first `anchors` documents d and for each gold document d.  The file also says which d found which.

    Args:
        retriever: E.g. harness.retrievers.dense.DenseRetriever.
        questions: Official training file, several as '[FILE, FILE]'; never the file you evaluate on.
        out: JSON Lines file to write, replaced if it holds mined negatives; training reads it as data.mined.
        layout: Layout of the files: which data set's official format they have.
        per_question: Maximum passages per question, best ranks first.
        anchors: Number of first-stage documents to concatenate with the question.
        depth: Documents taken from each ranking.
        question_weight: How often the question stands before d in Concat(q, d); as in the selection's options.
    """
    from common.progress import say, track
    from common.records import Passage, Question, Ranked, clean
    from datamodules.formats.mined_negatives import Mined, write_mined
    from datamodules.formats.reading import read_questions
    from harness.retrievers.corpora import gold_not_in_index
    from harness.retrievers.two_stage import concatenate

    check_mine(questions, out, layout, per_question, anchors, depth, question_weight)
    with MINED.locked(out):
        sources = [questions] if isinstance(questions, str) else questions
        all_questions = [question for source in sources for question in read_questions(layout, source)]

        gold_not_in_index(retriever, all_questions, count=False)

        def hard_negatives(question: Question, rankings: list[list[Ranked]], anchors_of: list[str]) -> Mined:
            """Round robin over the rankings, without gold passages, also without those of which only the title is known.

            The first ranking is Retriever(q); `anchors_of` has the d of each further one.
            """
            gold_titles = {clean(title) for title in question.unshipped_support}
            negatives: dict[str, Passage] = {}
            for rank in range(depth + anchors + len(question.support)):
                for passage in (hits[rank].passage for hits in rankings if rank < len(hits)):
                    if passage.id not in question.support and passage.title not in gold_titles:
                        negatives.setdefault(passage.id, passage)
            kept = list(negatives.values())[:per_question]
            known = {passage.id for passage in kept} | set(question.support)
            hits = {
                d: [hit.passage.id for hit in found if hit.passage.id in known and hit.passage.id != d]
                for d, found in zip(anchors_of, rankings[1:], strict=True)
                if d in known
            }
            return Mined(kept, hits)

        mined: list[tuple[str, Mined]] = []
        chunk = 256
        for start in track(range(0, len(all_questions), chunk), -(-len(all_questions) // chunk), "mining"):
            batch = all_questions[start : start + chunk]
            first = retriever.search(
                [q.text for q in batch], depth + len(max(batch, key=lambda q: len(q.support)).support)
            )
            queries = [
                (row, passage.id, concatenate(question.text, passage, question_weight))
                for row, (question, hits) in enumerate(zip(batch, first, strict=True))
                for passage in {p.id: p for p in [*(h.passage for h in hits[:anchors]), *question.gold]}.values()
            ]
            second = retriever.search([text for *_, text in queries], depth + anchors)
            rankings: list[list[list[Ranked]]] = [[hits] for hits in first]
            anchors_of: list[list[str]] = [[] for _ in batch]
            for (row, anchor, _), hits in zip(queries, second, strict=True):
                rankings[row].append(hits)
                anchors_of[row].append(anchor)
            found = zip(batch, map(hard_negatives, batch, rankings, anchors_of), strict=True)
            mined += [(question.id, negatives) for question, negatives in found]
        write_mined(out, mined)
        say(f"{out}: {sum(len(found) for _, found in mined):,} hard negatives for {len(mined):,} questions.")


def check_mine(
    questions: list[str] | str,
    out: Path,
    layout: str,
    per_question: int,
    anchors: int,
    depth: int,
    question_weight: int,
) -> None:
    """Check numbers, files and folders; called before anything is loaded.  Raises UserError or a subclass."""
    from datamodules.formats.reading import check_questions

    check_at_least(1, per_question=per_question, anchors=anchors, depth=depth, question_weight=question_weight)
    if not questions:
        raise UserError("questions names no file. Type --questions FILE; several files as '[FILE, FILE]'.")
    check_questions(layout, [questions] if isinstance(questions, str) else questions)
    MINED.check_writable(out)
