"""Rows of synthetic questions in the official layouts that training reads: HotpotQA's and FiD's."""

import re
from collections.abc import Sequence
from typing import Any, Literal

from common.answer_metrics import has_answer
from common.gold_copies import GoldCopies
from common.records import Passage, Ranked
from harness.synthesis.drafts import Draft, DraftTask

OutLayout = Literal["hotpotqa", "fid"]
_SENTENCE_END = re.compile(r"(?<=[.!?])(?=\s)")


def sentences(text: str) -> list[str]:
    """The sentences of a text; joined they are the text, as in HotpotQA's files."""
    return _SENTENCE_END.split(text)


def context_of(task: DraftTask, found: Sequence[Ranked], size: int, unique_titles: bool) -> list[Ranked | Passage]:
    """The passages of a row, at most `size`.

    Those that were found, best first, without copies of the task's, and the task's, at the end if they were not found.

    Args:
        task: Its passages are always among them.
        found: What a search for the question returned.
        size: Number of passages, at least that of the task's.
        unique_titles: Whether other passages with a title that is among them already are left out.
    """
    own, copies = {passage.id for passage in task.passages}, GoldCopies.of(task.passages)
    titles = {passage.title for passage in task.passages} if unique_titles else set()
    others = size - len(own)
    context: list[Ranked | Passage] = []
    for hit in found:
        if hit.passage.id in own:
            context.append(hit)
        elif others and hit.passage.title not in titles and hit.passage not in copies:
            others -= 1
            context.append(hit)
            titles |= {hit.passage.title} if unique_titles else set()
    present = {hit.passage.id for hit in context if isinstance(hit, Ranked)}
    return [*context, *(passage for passage in task.passages if passage.id not in present)]


def hotpotqa_row(id_: str, task: DraftTask, draft: Draft, context: Sequence[Ranked | Passage]) -> dict[str, Any]:
    """A row as in HotpotQA's files, `type` bridge for two passages and single for one.

    The supporting sentence of the last passage is the first that holds the answer; of the first passage, the first that
    names the title of the last.
    """
    *first, last = task.passages
    facts = [[passage.title, _sentence(passage.text, last.title)] for passage in first]
    return {
        "_id": id_,
        "question": draft.question,
        "answer": draft.answer,
        "type": "bridge" if first else "single",
        "level": "medium" if first else "easy",
        "supporting_facts": [*facts, [last.title, _sentence(last.text, draft.answer)]],
        "context": [[passage.title, sentences(passage.text)] for passage in map(_passage, context)],
    }


def fid_row(id_: str, task: DraftTask, draft: Draft, context: Sequence[Ranked | Passage]) -> dict[str, Any]:
    """A row as in FiD's files; a passage that the search did not find has no score."""
    own = {passage.id for passage in task.passages}
    items = []
    for one in context:
        passage = _passage(one)
        item: dict[str, Any] = {"id": passage.corpus_id or passage.id, "title": passage.title, "text": passage.text}
        if isinstance(one, Ranked):
            item["score"] = round(one.score, 6)
        items.append(item | {"hasanswer": has_answer(passage.text, [draft.answer]), "isgold": passage.id in own})
    return {"id": id_, "question": draft.question, "answers": [draft.answer], "ctxs": items}


ROWS = {"hotpotqa": hotpotqa_row, "fid": fid_row}


def _passage(one: Ranked | Passage) -> Passage:
    return one.passage if isinstance(one, Ranked) else one


def _sentence(text: str, words: str) -> int:
    """The number of the first sentence that holds the words; 0 if none does."""
    return next((number for number, each in enumerate(sentences(text)) if has_answer(each, [words])), 0)
