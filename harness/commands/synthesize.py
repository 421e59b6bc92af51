"""`infer.py synthesize`: write questions about a user's passages, check them by a round trip, save training files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from common.errors import DataError, UserError
from common.ranges import PositiveInt, Share
from harness.commands.file_lists import listed
from harness.interfaces import LanguageModel, Reader, Retriever
from harness.synthesis.layouts import OutLayout

if TYPE_CHECKING:
    from harness.synthesis.pipeline import SynthesisOutcome

HOPS = {"hotpotqa": 2, "fid": 1}  # by layout, where none is given


def synthesize(
    corpus: list[str] | str,
    out: Path,
    llm: LanguageModel,
    reader: Reader | None = None,
    layout: str = "auto",
    out_layout: OutLayout = "hotpotqa",
    hops: Literal[1, 2] | None = None,
    limit: PositiveInt | None = 1000,
    per_passage: PositiveInt = 2,
    contexts: PositiveInt = 10,
    min_f1: Share | None = None,
    alone: bool = True,
    found_within: PositiveInt | None = None,
    retriever: Retriever | None = None,
    validation_share: Share = 0.1,
    test_share: Share = 0.1,
    seed: int = 0,
    strict: bool = False,
) -> None:
    """Write questions with answers and supporting passages from a corpus without questions, as training files.

    A language model drafts a question about a passage, or about two passages of which the first mentions the
    second. A reader then answers it from these passages; the question is kept if the answer comes back. OUT receives
    train.json, validation.json, test.json and synthesis.json, which counts why drafts were dropped. A stopped run
    resumes: type it again.

    Args:
        corpus: File of passages, or of questions that ship with passages, packed or not; several as '[FILE, FILE]'.
        out: Folder to write; an earlier one of this command is replaced.
        llm: The language model that drafts the questions, and answers them again if there is no reader: a class, or a
            file such as configs/llm/openai.yaml.
        reader: Answers the drafted questions again, e.g. harness.readers.t5.PackedReader.
        layout: Layout of the corpus files; auto: of each by the fields of its first row (docs/data.md).
        out_layout: Layout of the written files: hotpotqa or fid.
        hops: Passages that a question is about: 1, or 2 of which the first mentions the title of the second; 2 for
            hotpotqa and 1 for fid when omitted.
        limit: Maximum number of questions, all splits together; null for as many as the corpus gives.
        per_passage: Maximum number of drafts about a passage, or pair of passages.
        contexts: Passages of a written question: its own, and others that BM25 finds for it.
        min_f1: Token F1 from which the reader's answer counts as the drafted one; exact match when omitted.
        alone: Whether a question about two passages is dropped if the reader gives the answer from one of them.
        found_within: Drop a question if the retriever finds none of its passages within this many; not asked for when
            omitted.
        retriever: For --found_within; BM25 over the corpus when omitted.
        validation_share: Share of the passages that only validation questions are about; no split shares a passage with
            another.
        test_share: The same for test questions.
        seed: Of splits, order and choice of answers.
        strict: Whether an unusual row of the corpus (empty, null, repeated) is an error; else they are counted.
    """
    sources = listed(corpus, "corpus")
    if contexts <= (hops or HOPS[out_layout]):
        raise UserError(f"contexts is {contexts}: a question has its own passages and at least one other; raise it.")
    if validation_share + test_share >= 1:
        raise UserError(
            f"validation_share {validation_share} and test_share {test_share} leave no passage for training: lower "
            "them."
        )
    if retriever is not None and found_within is None:
        raise UserError(
            "--retriever is for --found_within K, the number of passages to look at: give both, or neither."
        )
    from common.files import whole_folder
    from common.progress import say
    from datamodules.formats.reading import read_passages
    from harness.runtime.failures import FailedQuestions
    from harness.runtime.journal import remove_saved
    from harness.runtime.loading import load
    from harness.synthesis.report import OUTPUT, advice, counts_text, write_folder

    next(read_passages(layout, sources))
    OUTPUT.check_writable(out)
    load(llm, reader, retriever)
    settings = {
        "layout": out_layout, "hops": hops or HOPS[out_layout], "per_passage": per_passage, "contexts": contexts,
        "min_f1": min_f1, "alone": alone, "found_within": found_within, "seed": seed,
        "shares": {"train": 1 - validation_share - test_share, "validation": validation_share, "test": test_share},
    }  # fmt: skip
    partial = out.parent / f"{out.name}.partial"
    with OUTPUT.locked(out):
        outcomes, facts = _outcomes(sources, layout, partial, llm, reader, retriever, limit, settings, strict)
        counts = counts_text(outcomes)
        if hint := advice(outcomes):
            say(hint)
        if not any(outcome.rows for outcome in outcomes.values()):
            raise DataError(f"No question was kept. {' '.join(counts.split())}. Try another --reader, or --min_f1 0.5.")
        with whole_folder(out) as folder:
            write_folder(folder, outcomes, facts)
        remove_saved(partial)
    print(counts)
    say(f"{out}: {', '.join(sorted(path.name for path in out.iterdir()))}.")
    failed = FailedQuestions("drafts")
    for split, outcome in outcomes.items():
        failed.asked += outcome.drafts
        failed.reasons |= {f"{split} {name}": why for name, why in outcome.failed.items()}
    failed.check()


def _outcomes(
    corpus: list[str],
    layout: str,
    partial: Path,
    llm: LanguageModel,
    reader: Reader | None,
    retriever: Retriever | None,
    limit: int | None,
    settings: dict[str, Any],
    strict: bool,
) -> "tuple[dict[str, SynthesisOutcome], dict[str, Any]]":
    """The questions of every split, and what they depend on."""
    from common.files import scratch_folder
    from common.progress import say
    from datamodules.formats.reading import read_passages
    from datamodules.formats.row_counts import RowCounts
    from harness.indexing.passage_store import PassageStore
    from harness.readers.llm import LlmReader
    from harness.retrievers.bm25 import Bm25Retriever, build_bm25
    from harness.runtime.provenance import configuration, hardware
    from harness.synthesis.checks import RoundTrip
    from harness.synthesis.llm_writer import CHECK, LlmWriter
    from harness.synthesis.pipeline import Synthesizer
    from harness.synthesis.tasks import plan_tasks

    records = {
        name: configuration(one)
        for name, one in (("llm", llm), ("reader", reader), ("retriever", retriever))
        if one is not None
    }
    writer, reader = LlmWriter(llm), reader or LlmReader(llm, CHECK)
    with scratch_folder(partial) as scratch:
        counts = RowCounts(strict)
        build_bm25(read_passages(layout, corpus, repeated=True, counts=counts), scratch / "bm25", counts=counts)
        for line in counts.lines():
            say(f"{line}.")
        bm25 = Bm25Retriever(scratch / "bm25")
        passages = list(PassageStore(scratch / "bm25"))
        if settings["layout"] == "hotpotqa":
            passages = [passage for passage in passages if passage.title]
            if not passages:
                raise DataError(
                    "no passage has a title, by which HotpotQA's layout names passages: type --out_layout fid."
                )
        shares = {split: share for split, share in settings["shares"].items() if share > 0}
        plan = plan_tasks(passages, settings["hops"], settings["per_passage"], shares, settings["seed"])
        check = RoundTrip(reader, settings["min_f1"], settings["alone"])
        synthesizer = Synthesizer(
            writer, check, bm25, plan, shares, settings["layout"], settings["contexts"], retriever or bm25,
            settings["found_within"],
        )  # fmt: skip
        facts = {"corpus": bm25.index.corpus, **settings, **records}
        prompts = {"written by": writer.fact, "read by": getattr(reader, "recipe", {})}
        depends_on = None if None in records.values() else {**facts, **prompts, "hardware": hardware()}
        seen: set[str] = set()
        quotas = _quotas(limit, shares)
        outcomes = {split: synthesizer.run(split, quotas[split], seen, partial, depends_on) for split in shares}
    counted = {"limit": limit, "passages": len(passages), "links": plan.links}
    used = [f"writer: {writer.fact}", *(reader.facts(alone=False) if isinstance(reader, LlmReader) else ())]
    return outcomes, {**facts, **counted, "facts": used}


def _quotas(limit: int | None, shares: dict[str, float]) -> dict[str, int | None]:
    """The maximum number of questions of every split; training has what the others leave."""
    if limit is None:
        return dict.fromkeys(shares)
    quotas: dict[str, int | None] = {split: round(limit * share) for split, share in shares.items()}
    quotas["train"] = limit - sum(quotas[split] or 0 for split in shares if split != "train")
    return quotas
