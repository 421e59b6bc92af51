"""Another question for each question: a control of what a trained part knows of the question.

A trained part that is asked with another question's text, while all else stays the question's own, and still ranks,
rewrites or chooses as well, has learned something else than relevance: the style of gold passages, the name of a page.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256

from common.answer_metrics import squad
from common.records import Question, nfkc

FEWEST, MOST = 30, 200  # questions that are asked again; where fewer have another one, nothing is measured


def other_texts(questions: Sequence[Question], count: int) -> dict[int, str]:
    """The text of another question for `count` of the questions, by place; for fewer where fewer have one.

    Questions are in the order of sha256(text), so that no file's order counts. Another question is the first behind a
    question, from the end on again from the first, that shares with it no text, answer, gold passage, document, page or
    group. In a dialogue it is the last question of another turn under the same page, which is the first entry of its
    history; the turns stay the question's own.
    """
    order = sorted(range(len(questions)), key=lambda place: _digest(questions[place].text))
    alike: dict[tuple[str, ...], list[int]] = {}
    for place in order:
        alike.setdefault(questions[place].history[:1], []).append(place)
    keys = {place: {*_keys(questions[place])} for place in order}
    rank = {place: number for row in alike.values() for number, place in enumerate(row)}
    found: dict[int, str] = {}
    for place in order:
        row = alike[questions[place].history[:1]]
        behind = [*row[rank[place] + 1 :], *row[: rank[place]]]
        other = next((each for each in behind if keys[place].isdisjoint(keys[each])), None)
        if other is not None:
            found[place] = questions[other].text
        if len(found) == count:
            break
    return found


def _digest(text: str) -> bytes:
    return sha256(nfkc(text).encode(errors="surrogatepass")).digest()


def _keys(question: Question) -> Iterator[tuple[str, str]]:
    """What two questions must not have in common; questions of a dialogue may share its documents and its page."""
    yield "text", squad(nfkc(question.text))
    yield from (("answer", squad(nfkc(answer))) for answer in question.answers)
    yield from (("passage", id_) for id_ in question.support)
    if question.history:
        return
    yield from (("document", id_) for id_ in question.gold.corpus_ids)
    yield from (("document", passage.corpus_id) for passage in question.gold_passages if passage.corpus_id)
    yield from (("document", segment.document) for segment in question.gold.segments)
    yield from (("page", passage.title) for passage in question.gold_passages if passage.title)
    yield from (("page", title) for title in question.gold.titles)
    if question.source.group:
        yield "group", question.source.group
