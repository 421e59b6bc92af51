"""`infer.py score`: write a question file whose passages have scores: a sentence encoder's, or a retriever's."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import DataError, UserError
from common.files import parse_json
from common.outputs import OutputFile
from common.ranges import PositiveInt, Precision
from harness.interfaces import Retriever

if TYPE_CHECKING:
    from common.records import Question, Ranked

LAYOUT = "fid"  # the only layout whose passages have scores
QUESTIONS_AT_ONCE = 256  # bounds memory; also the unit in which an interrupted run resumes, and that ranks share


def is_scored(path: Path) -> bool:
    """Whether a file was written by this command, by its first line."""
    try:
        with path.open(encoding="utf-8") as file:
            row = parse_json(file.readline())
    except ValueError:  # not UTF-8 or not JSON
        return False
    return isinstance(row, dict) and "scored_by" in row


SCORED = OutputFile("`infer.py score`", "a question file with scores", is_scored)


def scored_item(hit: "Ranked") -> dict[str, Any]:
    """A found passage as fid's layout has it."""
    passage = hit.passage
    own_id = {"id": passage.corpus_id} if passage.corpus_id else {}
    return {**own_id, "title": passage.title, "text": passage.text, "score": hit.score}


def score(
    questions: str,
    out: Path,
    encoder: str | None = None,
    device: str = "auto",
    precision: Precision = "auto",
    retriever: Retriever | None = None,
    candidates: PositiveInt | None = None,
) -> None:
    """Write a copy of a question file in which every passage has a score: the encoder's cosine with the question.

    A generator can be trained on these scores (model.relevance retriever), an estimator adds them to its logit
    (model.relevance sum), and `evaluate` uses them instead of its own cosine. Scores that the file gives already are
    replaced, so that all are of one kind; all else in the rows stays, and each names the encoder as `scored_by`. With a
    retriever, what it finds takes the place of the passages. A stopped run resumes: type it again. Under torchrun all
    processes share the work.

    Args:
        questions: Question file in the layout fid, with passages.
        out: JSON Lines file to write, replaced if this command wrote it.
        encoder: Folder or hub id of the sentence encoder; MiniLM when omitted.
        device: Device of the encoder: auto, cpu or cuda.
        precision: Of the encoder: auto (bf16 where the device has it in hardware), fp32 or bf16.
        retriever: Finds other passages, with its scores; a passage that holds an answer is relevant then.
        candidates: Passages of each question that it finds; 20 when omitted.

    Raises:
        UserError: If both an encoder and a retriever are given, or candidates without a retriever.
    """
    from hashlib import sha256

    from common.progress import say, say_facts, track
    from common.records import passage_id
    from common.retrieval import search_for
    from datamodules.formats.reading import check_questions, read_questions
    from datamodules.formats.row_counts import RowCounts
    from harness.indexing.sentence_encoder import SentenceEncoder
    from harness.retrievers.question_passages import cosines
    from harness.retrievers.rerank_prior import scorer_name
    from harness.runtime.loading import load
    from harness.runtime.provenance import configuration, hardware
    from harness.runtime.shared_lines import check_unless_shared, write_shared
    from models.pretrained import MINILM

    check_questions(LAYOUT, [questions])
    check_unless_shared(SCORED, out)
    if retriever is not None and encoder is not None:
        raise UserError("give encoder, which scores the passages of the file, or retriever, which finds others.")
    if retriever is None and candidates is not None:
        raise UserError("candidates is of a retriever: give one, or omit it.")
    candidates = candidates or 20
    load(retriever)
    model = SentenceEncoder(encoder or MINILM, device, precision=precision) if retriever is None else None
    name = model.name if model else scorer_name(retriever)
    counts = {"questions": 0, "passages": 0, "replaced": 0}
    unusual = RowCounts(without_gold=None)

    def read() -> "Iterator[tuple[Question, dict[str, Any]]]":
        for question in read_questions(LAYOUT, questions, counts=unusual):
            yield question, dict(unusual.row)

    def survey() -> tuple[int, dict[str, object] | None]:
        """Number of questions, and what their lines depend on."""
        hashed = sha256()
        for question, row in track(read(), None, "reading questions"):
            hashed.update(json.dumps(row).encode())
            counts["questions"] += 1
            counts["passages"] += len(row["ctxs"])
            counts["replaced"] += bool(question.scores)
        say_facts(unusual.lines())
        if not counts["passages"] and model is not None:
            raise DataError(f"{questions}: no question has passages to score. Choose a file with passages (ctxs).")
        if model is None:
            found_by = configuration(retriever)
            depends_on = {"retriever": found_by, "candidates": candidates, "hardware": hardware()}
            return counts["questions"], None if found_by is None else {**depends_on, "rows": hashed.hexdigest()}
        return counts["questions"], {
            "encoder": model.recipe, "name": model.name, "dtype": model.dtype, "device": model.device.type,
            "rows": hashed.hexdigest(),
        }  # fmt: skip

    def lines(batch: "Sequence[tuple[Question, dict[str, Any]]]") -> list[str]:
        if model is None:
            assert retriever is not None
            hits = search_for(retriever, [question for question, _ in batch], candidates)
            rows = [{**row, "ctxs": [*map(scored_item, own)]} for (_, row), own in zip(batch, hits, strict=True)]
            return [json.dumps({**row, "scored_by": name}) for row in rows]
        found = cosines([question for question, _ in batch], model)
        for (question, row), cosine_C in zip(batch, found, strict=True):
            score_of = dict(zip((passage.id for passage in question.passages), cosine_C.tolist(), strict=True))
            for item in filter(None, row["ctxs"]):  # one may be null
                score = score_of.get(passage_id(item.get("title") or "", item["text"] or ""))  # none if it is empty
                item["score"] = None if score is None else round(score, 6)
        return [json.dumps({**row, "scored_by": name}) for _, row in batch]

    failed = write_shared(SCORED, out, survey, read, QUESTIONS_AT_ONCE, lines, "scoring", lambda each: each[0].id)
    replaced = f"; scores of {counts['replaced']:,} questions were replaced" if counts["replaced"] else ""
    if model is None:
        say(f"{out}: {counts['questions']:,} questions, each with the first {candidates} passages of {name}.")
    else:
        scored = f"{counts['passages']:,} passages of {counts['questions']:,} questions"
        say(f"{out}: {scored} scored by the cosine of {name}{replaced}.")
    failed.check()
