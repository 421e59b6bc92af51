"""`infer.py preferences`: reward the rewrites of questions by what they find, as training data of rewriters."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import DataError, UserError
from common.preferences import Reward
from common.ranges import NonNegativeInt, OpenShare, PositiveFloat, PositiveInt
from harness.commands.file_lists import listed
from harness.interfaces import FeedbackRewriter, Retriever, Rewriter

if TYPE_CHECKING:
    from common.records import Question

QUESTIONS_AT_ONCE = 64  # one search with all their queries; also the unit in which an interrupted run resumes


def preferences(
    rewriter: Rewriter,
    strategies: tuple[str, ...],
    reward: Reward,
    questions: list[str] | str,
    out: Path,
    retriever: Retriever | None = None,
    layout: str = "auto",
    samples: NonNegativeInt = 16,
    temperature: PositiveFloat = 1.0,
    seed: int = 0,
    fused: bool = True,
    depth: PositiveInt | None = None,
    limit: PositiveInt | None = None,
    validation_split: OpenShare | None = None,
    feedback_retriever: Retriever | None = None,
    strict: bool = False,
) -> None:
    """Write, for each training question, candidate rewrites with their rewards: what a rewriter learns from.

    The candidates of a strategy are the rewrite that would be used, and samples of a trained generative rewriter. OUT
    receives preferences.jsonl and preferences.json. A stopped run resumes: type it again.

    Args:
        rewriter: Whose rewrites are rewarded, e.g. harness.rewriters.trained.TrainedRewriter.
        strategies: Of the rewriter.
        reward: E.g. harness.preferences.rewards.GoldRecall.
        questions: Official training file, several as '[FILE, FILE]'; never the file you evaluate on.
        out: Folder to write; an earlier one of this command is replaced.
        retriever: Searches with the queries, e.g. harness.retrievers.bm25.Bm25Retriever.
        layout: Layout of the files; auto: of each by the fields of its first row (docs/data.md).
        samples: Samples per question and strategy; 0: only the rewrite that would be used, of any rewriter.
        temperature: Of the samples: greater values make them more different.
        seed: Of the samples; those of a question do not depend on the other questions, but for rounding.
        fused: Reward the list of the question and the rewrite, fused by reciprocal ranks, as a system finds that
            searches with both; false: the rewrite's own list.
        depth: Passages per query; as many as the reward looks at when omitted.
        limit: Use only this many questions, from the beginning.
        validation_split: Use only the questions that a training holds out whose data.validation_fraction this is: those
            that the rewriter has not learned from.
        feedback_retriever: Finds the passages that an extractive rewriter reads; `retriever` itself when omitted.
        strict: Whether an unusual row (empty, null, repeated, without gold) is an error; else they are counted.
    """
    sources = listed(questions)
    import time

    from common.files import whole_folder
    from common.progress import say
    from datamodules.formats.preferences import rewrite_preferences
    from datamodules.formats.reading import check_questions
    from harness.evaluation.serialization import digest
    from harness.preferences.collecting import Collector, collected_apart
    from harness.preferences.drafts import Drafter
    from harness.preferences.report import OUTPUT, counts_of, counts_text, sampler_facts, write_folder
    from harness.retrievers.corpora import check_same_corpus
    from harness.rewriters.strategy_checks import check_strategies
    from harness.runtime.failures import FailedQuestions
    from harness.runtime.journal import remove_saved
    from harness.runtime.loading import load
    from harness.runtime.provenance import configuration, hardware
    from harness.runtime.resumable import ResumableBatches

    check_questions(layout, sources)
    check_strategies(rewriter, strategies)
    OUTPUT.check_writable(out)
    load(rewriter, reward, retriever, feedback_retriever)
    partial = out.parent / f"{out.name}.partial"
    began = time.perf_counter()
    with OUTPUT.locked(out):
        first = rewriter.feedback_passages if isinstance(rewriter, FeedbackRewriter) else 0
        if feedback_retriever is not None and not first:
            raise UserError(
                "feedback_retriever finds the passages that a rewriter reads, but this rewriter reads none: omit "
                "feedback_retriever."
            )
        check_same_corpus([each for each in (retriever, feedback_retriever) if each is not None])
        if retriever is None and (reward.depth or first):
            raise UserError(
                "The reward or the rewriter reads passages. Type --retriever CLASS --retriever.index FOLDER."
            )
        drafts = Drafter(rewriter, strategies, samples, temperature, seed)
        asked, skipped = _asked(sources, layout, limit, validation_split, reward, retriever, strict)
        depth = depth or max(1, reward.depth)
        facts = {
            **sampler_facts(rewriter), **drafts.facts, "reward": reward.facts, "retriever": configuration(retriever),
            "strategies": list(strategies), "samples": samples, "seed": seed, "fused": fused, "depth": depth,
            "questions": digest(asked),
            **({} if feedback_retriever is None else {"feedback_retriever": configuration(feedback_retriever)}),
        }  # fmt: skip
        parts = [configuration(part) if part else {} for part in (rewriter, reward, retriever, feedback_retriever)]
        depends_on = {**facts, "configured": parts, "hardware": hardware()}
        saved = ResumableBatches(None if None in parts else partial / "preferences.jsonl", depends_on)
        collect = Collector(drafts, reward, retriever, fused, depth, first, feedback_retriever)
        batches = [asked[start : start + QUESTIONS_AT_ONCE] for start in range(0, len(asked), QUESTIONS_AT_ONCE)]
        results = [*saved.run(batches, collected_apart(collect), "rewarding rewrites, batches")]
        rows = [rewrite_preferences(row) for result in results for row in result["rows"]]
        failed = FailedQuestions()
        failed.asked = len(asked)
        for result in results:
            skipped.update(result["skipped"])
            failed.reasons |= result["failed"]
        if not rows:
            why = "; ".join([*skipped, *filter(None, [failed.failed])])
            raise DataError(f"None of the {len(asked):,} questions has a rewrite: {why}.")
        counts = counts_of(rows, skipped)
        stages = dict.fromkeys(name for result in results for name in result["seconds"])
        seconds = {name: round(sum(each["seconds"].get(name, 0.0) for each in results), 1) for name in stages}
        seconds["in_all"] = round(time.perf_counter() - began + saved.seconds, 1)
        with whole_folder(out) as folder:
            write_folder(folder, rows, {**facts, "counts": counts, "seconds": seconds})
        remove_saved(partial)
    say(f"{out}: {counts_text(counts)}")
    failed.check()


def _asked(
    sources: Sequence[str],
    layout: str,
    limit: int | None,
    validation_split: float | None,
    reward: Reward,
    retriever: Retriever | None,
    strict: bool,
) -> "tuple[list[Question], Counter[str]]":
    """The different questions that the reward is defined for, and how many others there are, by reason.

    Raises:
        DataError: If there is none.
        UserError: If training holds out none.
        ArtifactError: If the reward searches gold passages and the index is of another corpus.
    """
    from itertools import islice

    from common.progress import say
    from common.records import nfkc
    from common.validation_split import held_out
    from datamodules.formats.reading import read_joined_questions
    from datamodules.formats.row_counts import RowCounts
    from harness.retrievers.corpora import with_gold_in_index

    unusual = RowCounts(strict)
    every = (each for source in sources for each in read_joined_questions(layout, source, counts=unusual))
    read = list(islice(held_out(every, validation_split), limit))
    for line in unusual.lines():
        say(f"{line}.")
    if validation_split is not None and not read:
        raise UserError(
            f"A training with validation_fraction {validation_split:g} holds out none of {[*sources]}: raise "
            "validation_split."
        )
    distinct: dict[str, Question] = {}
    for question in read:
        distinct.setdefault(nfkc(question.text), question)
    skipped = Counter({"repeated": len(read) - len(distinct)})
    asked = []
    for question in distinct.values():
        if why := reward.missing(question):
            skipped[why] += 1
        else:
            asked.append(question)
    if not asked:
        why = "; ".join(name for name, count in skipped.items() if count)
        raise DataError(f"The reward is defined for none of the {len(read):,} questions: {why}.")
    if retriever is not None and getattr(reward, "searches_gold", False):
        known = with_gold_in_index(retriever, asked)
        skipped["no gold passage in the index"] = len(asked) - len(known)
        asked = known
    return asked, +skipped
