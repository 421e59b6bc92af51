"""`infer.py distill`: ask a language model for rewrites of questions, and save them as training examples."""

from pathlib import Path
from typing import Any

from common.errors import DataError, SomeFailedError
from common.outputs import partial_folder
from common.ranges import PositiveInt
from harness.commands.file_lists import listed
from harness.rewriters.distilled import STRATEGIES, check_layout, read_distinct
from harness.rewriters.llm import LlmRewriter
from harness.rewriters.strategy_checks import check_strategies


def distill(
    questions: list[str] | str,
    out: Path,
    layout: str = "auto",
    limit: PositiveInt | None = None,
    strategies: tuple[str, ...] = STRATEGIES,
    keep_unchanged: bool = True,
    strict: bool = False,
    **asked: Any,
) -> None:
    """Ask a language model for rewrites of questions, as files that a rewriter is trained on.

    Equal questions are asked once, all strategies by one call. A rewrite that the model does not give is dropped and
    counted. OUT receives rewrites.jsonl and distillation.json, which holds the counts, the costs and examples of what
    was dropped. A stopped run resumes: type it again.

    Args:
        questions: File of questions, packed or not; several as '[FILE, FILE]'. Its answers and passages are not read
            by the model.
        out: Folder to write; an earlier one of this command is replaced.
        layout: Layout of the questions, e.g. hotpotqa or fid; or one of rewrites (rrr, qrecc, canard, rewrites), whose
            questions are rewritten with the earlier turns of their dialogues.
        limit: Maximum number of different questions, from the beginning; all when omitted.
        strategies: How each question is rewritten; names of the pool.
        keep_unchanged: Whether a rewrite with the same words as its question is a training example; they are counted in
            any case.
        strict: Whether an unusual row (empty, null) is an error; else they are counted.
        asked: See `LlmRewriter`.
    """
    sources = listed(questions)
    check_layout(layout)
    from common.files import whole_folder
    from common.progress import say, say_facts
    from datamodules.formats.open_data import HUB
    from datamodules.formats.row_counts import RowCounts
    from harness.rewriters.distilled import distill as distill_questions
    from harness.rewriters.distilled_report import OUTPUT, costs_text, counts_text, write_folder
    from harness.runtime.journal import remove_saved
    from harness.runtime.provenance import configuration, hardware

    rewriter = LlmRewriter(**asked)
    check_strategies(rewriter, strategies)
    for source in sources:
        if not source.startswith(HUB):
            read_distinct(layout, [source], 1, RowCounts())
    OUTPUT.check_writable(out)
    rewriter.load()
    partial = partial_folder(out)
    with OUTPUT.locked(out):
        unusual = RowCounts(strict, without_gold=None)
        distinct, repeated = read_distinct(layout, sources, limit, unusual)
        say_facts(unusual.lines())
        model = configuration(rewriter.llm)
        of_llm = {name: value for name, value in asked.items() if name not in ("llm", "pool")}
        made_by = {"model": model, "strategies": list(strategies), **of_llm, **rewriter.recipe}
        depends_on = None if model is None else {**made_by, "hardware": hardware()}
        file = partial / "rewrites.jsonl"
        distilled = distill_questions(rewriter, distinct, strategies, keep_unchanged, file, depends_on)
        counts, costs = counts_text(distilled), costs_text(distilled.costs)
        if not distilled.rows:
            why = "".join(f" The last: {each['why']}." for each in distilled.dropped[-1:])
            raise DataError(f"No rewrite was kept: {counts}.{why} It took {costs}.")
        read = {"layout": layout, "limit": limit, "questions": len(distinct), "repeated": repeated}
        facts = {**read, "keep_unchanged": keep_unchanged, **made_by, "facts": rewriter.facts}
        with whole_folder(out) as folder:
            write_folder(folder, distilled, facts)
        if not distilled.failed.reasons:
            remove_saved(partial)
    print(f"{len(distinct):,} questions, {repeated:,} repeated ones not asked again\n{counts}\n{costs}")
    say(f"{out}: {', '.join(sorted(path.name for path in out.iterdir()))}.")
    if distilled.failed.reasons:
        raise SomeFailedError(
            f"{distilled.failed.failed}. Type the same command again to ask these once more; the others are kept in "
            f"{partial}."
        )
