"""An answer as text for the terminal: the passages in the order of choice with the reasons, the answer, the costs.

What any system can put into an answer so that it is shown:

    notes    Every list of dictionaries that have the `id` of a passage, whatever its key, explains the passages of the
             evidence: `stage` (first, second, web, ...), `rank` (in the retriever's list for the question, from 1),
             `partner` (id of another passage) and `probability` (that both are relevant together), `probability`
             without `partner` (that the passage is relevant), `share` (of the answer's probability, 0 to 1), `alone`
             (the answer from this passage alone) or `error` (why there is none). Other texts and numbers are shown by
             their names; None is not.
             `error`: why there is no answer. `cut`: by the name of a model, what it reads of a long question.
             `unknown_words`: which indexes have no word of the question.
             `candidates`: probability by answer; `answerable` and `threshold`: whether a passage reaches that
             P(relevant).
             `queries`: dictionaries with a `query` that was searched with, `made_by` (names of what made it), `found`
             (ids of passages), `alone` (`id` and `title` of those that no other query found) and `error` (why the
             search failed), shown unless it is the question alone without a `reason`; `fallbacks`: why by the name of
             what should have made a query; `reason`: for the choice of the queries.
             `sources`: dictionaries with a `source` that was asked, its `answer` and `logprob`, `passages` (`title`,
             `link` or `links`) or why it has none (`missing`, `error`), and the selector's `score`; with `chosen`, the
             name of the one whose answer is given, `selector` and `why`; `lost`: why by the name of a source that
             failed.
    costs    `seconds/<stage>` are times, `usd` is in US dollars; all others are counts, named in the plural:
             retriever_calls, model_calls, tokens.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from common.records import Answer, Question
from harness.runtime.passage_lines import passage_lines, wrapped

_OTHER_CANDIDATES = 3  # candidate answers shown besides the answer
_ALONE = 5  # passages named that one query alone found
_KNOWN = ("id", "stage", "rank", "partner", "probability", "share", "alone", "error")


def answer_text(question: Question, answer: Answer, width: int = 80, characters: int | None = None) -> str:
    """An answer as text.

    Args:
        question: What was asked.
        answer: The answer to it.
        width: Columns at which lines are wrapped, between words; a longer word has a line to itself.
        characters: At most this many of each passage, cut between words; all when None.
    """
    notes = _notes_by_id(answer.notes)
    places = {hit.passage.id: place for place, hit in enumerate(answer.evidence, start=1)}
    scores = _scores_shown(answer, notes)
    lines = [*wrapped(f"Question: {question.text}", width, ""), ""]
    lines += _query_lines(question, answer, places, width)
    for place, hit in enumerate(answer.evidence, start=1):
        reasons = [fact for note in notes.get(hit.passage.id, ()) for fact in _facts(note, places)]
        if scores:
            reasons.append(f"score {hit.score:.3f}")
        lines += passage_lines(f"{place}.", hit.passage, reasons, width, characters)
    if not answer.evidence and answer.costs.get("retriever_calls", 1) and not {"sources", "error"} & {*answer.notes}:
        lines += ["No document was found.", ""]
    if answer.notes.get("unknown_words"):
        lines += [*wrapped(f"Note: {answer.notes['unknown_words']}.", width, ""), ""]
    lines += _source_lines(answer, width)
    for line in _answer_lines(question, answer):
        lines += wrapped(line, width, "")
    if answer.costs:
        lines += wrapped(f"Cost: {costs_text(answer.costs)}", width, "")
    return "\n".join(lines)


def costs_text(costs: Mapping[str, float]) -> str:
    """Costs in words: `2 retriever calls, 12 model calls, 1.3 s: retrieval 0.2, scoring 1.1`."""
    seconds = {name.partition("/")[2]: value for name, value in costs.items() if name.startswith("seconds/")}
    counts = {name: n for name, n in costs.items() if not name.startswith("seconds/") and name != "usd"}
    parts = [_counted(name.replace("_", " "), n) for name, n in counts.items()]
    if "usd" in costs:
        parts.append(f"{costs['usd']:.6f} US dollars")
    if seconds:
        total = sum(seconds.values())
        per_unit, unit, decimals = (1000, "ms", 0) if total < 0.1 else (1, "s", 1 if total >= 1 else 2)
        stages = [(name.replace("_", " "), _rounded(value * per_unit, decimals)) for name, value in seconds.items()]
        if len(stages) == 1:
            parts.append(f"{stages[0][0]} {stages[0][1]} {unit}")
        else:
            whole = _rounded(total * per_unit, decimals)
            parts.append(f"{whole} {unit}: {', '.join(f'{name} {value}' for name, value in stages)}")
    return ", ".join(parts)


def _counted(name: str, count: float) -> str:
    """A number and what it counts; the plural ending goes where it is 1."""
    if count == 1:
        name = " ".join(word[:-1] if word.endswith("s") and not word.endswith("ss") else word for word in name.split())
    return f"{count:,.0f} {name}" if count == round(count) else f"{count:,.1f} {name}"


def _rounded(number: float, decimals: int) -> str:
    least = 10**-decimals
    return f"<{least:.{decimals}f}" if 0 < number < least / 2 else f"{number:.{decimals}f}"


def _query_lines(question: Question, answer: Answer, places: Mapping[str, int], width: int) -> Iterator[str]:
    """The queries that were searched with, what each found and what it alone found, and why a query is missing."""
    noted = answer.notes.get("queries")
    queries = [each for each in noted if isinstance(each, dict) and "query" in each] if isinstance(noted, list) else []
    plain = [each["query"] for each in queries if not each.get("error")] == [question.text]
    if not queries or (plain and len(queries) == 1 and not answer.notes.get("reason")):
        return
    yield "Queries:"
    for number, each in enumerate(queries, start=1):
        makers = ", ".join(each.get("made_by", ())) or f"query {number}"
        yield from wrapped(f"{makers}: {each['query']}", width, "      ", first="  ")
        yield from wrapped(f"({_found(each, places)})", width, "      ")
    fallbacks = answer.notes.get("fallbacks")
    for name, why in fallbacks.items() if isinstance(fallbacks, dict) else ():
        yield from wrapped(f"{name}: the question itself, because {why}", width, "      ", first="  ")
    if answer.notes.get("reason"):
        yield from wrapped(f"Reason for these queries: {answer.notes['reason']}", width, "      ", first="  ")
    yield ""


def _source_lines(answer: Answer, width: int) -> Iterator[str]:
    """The answer of every source with what it rests on, and why one was chosen."""
    noted = answer.notes.get("sources")
    sources = [each for each in noted if isinstance(each, dict) and "source" in each] if isinstance(noted, list) else []
    if not sources:
        return
    yield "Answers by source:"
    for each in sources:
        facts = ["chosen"] * (each["source"] == answer.notes.get("chosen"))
        facts += [f"P {math.exp(each['logprob']):.3f}"] if each.get("logprob") is not None else []
        facts += [f"score {each['score']:.3f}"] if each.get("score") is not None else []
        told = f"{each['source']}: {each.get('answer') or '(no answer)'}"
        if facts:
            told += f"  ({'; '.join(facts)})"
        yield from wrapped(told, width, "      ", first="  ")
        for why in ("missing", "error"):
            if each.get(why):
                yield from wrapped(f"nothing: {each[why]}", width, "      ")
        for passage in each.get("passages", ()):
            links = passage.get("links") or [passage.get("link")]
            named = " ".join([passage.get("title") or "(no title)", *(f"<{link}>" for link in links if link)])
            yield from wrapped(f"from {named}", width, "        ", first="      ")
    if answer.notes.get("why"):
        why = (
            f"Chosen by {answer.notes.get('selector', 'the selector')}: {answer.notes.get('chosen')}, "
            f"{answer.notes['why']}"
        )
        yield from wrapped(why, width, "      ", first="  ")
    lost = answer.notes.get("lost")
    for name, reason in lost.items() if isinstance(lost, dict) else ():
        yield from wrapped(f"Lost: {name}, {reason}", width, "      ", first="  ")
    yield ""


def _found(query: Mapping[str, Any], places: Mapping[str, int]) -> str:
    """What one query found, in words: `found 10 passages, 3 of them alone: passage 2, Alba, Brune`."""
    if query.get("error"):
        return f"the search failed: {query['error']}"
    alone = query.get("alone", ())
    shown = sorted((places.get(each["id"], math.inf), each["title"] or "(no title)") for each in alone)
    names = [f"passage {place}" if math.isfinite(place) else title for place, title in shown]
    further = [f"{len(names) - _ALONE} more"] if len(names) > _ALONE else []
    listed = f"{len(names)} of them alone: {', '.join([*names[:_ALONE], *further])}" if names else "none of them alone"
    return (
        f"found {_counted('passages', len(query.get('found', ())))}, {listed}"
        if query.get("found")
        else "found nothing"
    )


def _notes_by_id(notes: Mapping[str, object]) -> dict[str, list[dict[str, Any]]]:
    """What the notes say of each passage, by its id."""
    found: dict[str, list[dict[str, Any]]] = {}
    for value in notes.values():
        for note in value if isinstance(value, list) else ():
            if isinstance(note, dict) and isinstance(note.get("id"), str):
                found.setdefault(note["id"], []).append(note)
    return found


def _scores_shown(answer: Answer, notes: Mapping[str, list[dict[str, Any]]]) -> bool:
    """Whether the passages are in the order of their scores, which then say why.

    They are not if a model's probabilities chose them, if several stages found them, whose scores do not compare, or if
    all scores are equal, as for shipped passages without scores.
    """
    every = [note for hit in answer.evidence for note in notes.get(hit.passage.id, ())]
    scores = [hit.score for hit in answer.evidence]
    return (
        all(note.get("probability") is None for note in every)
        and len({note.get("stage") for note in every if note.get("stage")}) < 2
        and all(one >= other for one, other in pairwise(scores))
        and (len(set(scores)) > 1 or scores not in ([], [0.0] * len(scores)))
    )


def _facts(note: Mapping[str, Any], places: Mapping[str, int]) -> Iterator[str]:
    """One note on a passage in words."""
    if note.get("stage"):
        yield f"found in the {note['stage']} stage"
    if note.get("rank") is not None:
        yield f"retriever's rank {note['rank']}"
    if note.get("probability") is not None:
        partner = places.get(note.get("partner") or "")
        yield f"P(relevant{f' with passage {partner}' if partner else ''}) {note['probability']:.3f}"
    if note.get("share") is not None:
        yield f"{note['share']:.1%} of the answer's probability"
    if note.get("error"):
        yield f"alone it gives no answer: {note['error']}"
    elif note.get("alone") is not None:
        yield f"alone it gives {note['alone']!r}" if note["alone"] else "alone it gives no answer"
    for name, value in note.items():
        if name not in _KNOWN and isinstance(value, str | int | float):
            yield (
                f"{name.replace('_', ' ')} {value:.3f}"
                if isinstance(value, float)
                else f"{name.replace('_', ' ')} {value}"
            )


def _answer_lines(question: Question, answer: Answer) -> Iterator[str]:
    """The answer with its probability, other candidates, a warning if it is likely unanswerable, gold answers."""
    if answer.logprob is not None:
        yield f"Answer: {answer.text or '(empty)'}  (P {math.exp(answer.logprob):.3f})"
    elif answer.text:
        yield f"Answer: {answer.text}"
    elif answer.notes.get("error") or (answer.evidence and answer.costs.get("failed_calls")):
        yield f"Answer: none, {str(answer.notes.get('error', 'all calls of the language model failed')).rstrip('.')}."
    else:
        yield "Answer: none, " + ("no reader is configured." if answer.evidence else "no document to read.")
    candidates = answer.notes.get("candidates")
    if isinstance(candidates, dict):
        others = [f"{text!r} (P {p:.3f})" for text, p in candidates.items() if text != answer.text][:_OTHER_CANDIDATES]
        if others:
            yield f"Other candidates: {', '.join(others)}"
    cut = answer.notes.get("cut")
    for name, note in cut.items() if isinstance(cut, dict) else ():
        yield f"Cut: {name} {note}."
    if answer.notes.get("answerable") is False:
        yield f"No context reaches P(relevant) {answer.notes['threshold']:.3f}: likely unanswerable."
    if question.answers:
        yield f"Gold: {' | '.join(question.answers)}"
