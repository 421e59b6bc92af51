"""Memo: what the parts of systems compute, once; scores and readings in journals, which a stopped command goes on from.

It is given to the places that call a part: search (retriever, query), score (part, texts), read (reader, question,
context). Each line of a journal is {"seconds": 1.2, "tokens": 300, "values": {key: value}}, one chunk. Several
processes may use one file at the same time: each appends its chunks under a lock, and reads those of the others before.

Searches are in no journal: their passages are a thousand times as large as a score, and a search is quickly repeated
(0.05 of the 0.34 s of a question of DR-RAG's quickstart).
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.progress import say, track
from common.records import Answer, Passage, Question, Ranked
from common.retrieval import Search
from harness.interfaces import PairScorer, Reader, Retriever
from harness.runtime.journal import Journal
from harness.runtime.provenance import configuration, hardware, library_versions, models_of
from models.token_count import tokens_read

if TYPE_CHECKING:
    from models.cross_encoder import RelevanceEstimator

Ask = Callable[[Any, Sequence[Question]], Sequence[Any]]
Triple = tuple[str, Passage, Passage]  # question text, d1, d2
NEEDED = "needed"  # note of an answer, while rows are asked: what it needs by itself (`Needed`)
FOR_STUDY = "for the study"  # note of an answer, while rows are asked: what the tables of its study need besides
PAIRS_AT_ONCE, READ_AT_ONCE, SEARCHED_AT_ONCE = 512, 64, 4096  # computed, then saved: an interruption loses one chunk
_FORMAT = 1  # version of the lines; increase it when their meaning changes
_WAIT_SECONDS = 60.0  # for another process that is appending, which takes it a fraction of a second


@dataclass(frozen=True, slots=True)
class _Remembered:
    value: Any
    seconds: float  # its share of those of its chunk
    tokens: float  # the same
    before: bool  # read from the file, not computed here


class Values:
    """Values by key, of JSON types where they are saved.

    Args:
        file: Of the journal; None keeps the values in memory alone.
        head: What determines the values besides their keys: those under another head are not used.
        what: The values, for what is said of them, such as "pair scores".
        option: Of the command line, which names the file's folder; for error lines.

    Raises:
        ArtifactError: If the file is corrupt before its last line (an interruption may leave an incomplete last line).
            A call raises it if saving fails.
    """

    def __init__(
        self, file: Path | None = None, head: Mapping[str, object] | None = None, what: str = "", option: str = "--out"
    ) -> None:
        self.count, self.seconds, self.tokens = 0, 0.0, 0.0  # of the values that were asked for
        self.seconds_before = 0.0  # of those of them that were in the file
        self._known: dict[str, _Remembered] = {}
        self._asked: set[str] = set()
        self._journal = None if file is None else Journal(file, head or {}, option)
        self._read()
        if self._known:
            say(f"{file}: reusing {len(self._known):,} {what} from earlier runs.")

    @property
    def seconds_each(self) -> float:
        """Mean time of a value; 0 before the first one."""
        return self.seconds / self.count if self.count else 0.0

    @property
    def tokens_each(self) -> float:
        """Mean tokens of a value; 0 before the first one."""
        return self.tokens / self.count if self.count else 0.0

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __len__(self) -> int:
        return len(self._known)

    def __call__(
        self,
        keys: Sequence[str],
        work: Callable[[Sequence[int]], Sequence[Any]],
        doing: str | None,
        at_once: int,
        length: Callable[[int], int] | None = None,
        tokens: Callable[[], int] = lambda: 0,
        lasts: Callable[[Any], bool] = lambda _: True,
    ) -> list[Any]:
        """The value of every key, in order; unknown ones are computed and saved, chunk by chunk.

        Args:
            keys: May repeat.
            work: The values of the keys at some places.
            doing: Of the progress line; None for none.
            at_once: Most keys of a chunk.
            length: Of what stands at a place: similar ones are computed together, the longest first.
            tokens: Those that were read so far.
            lasts: Whether a value is saved; one that is not is computed again by the next run.
        """
        todo: dict[str, int] = {}
        for place, key in enumerate(keys):
            if key not in self._known:
                todo.setdefault(key, place)
        order = sorted(todo, key=lambda key: -length(todo[key])) if length else [*todo]
        chunks = [order[start : start + at_once] for start in range(0, len(order), at_once)]
        for chunk in chunks if doing is None else track(chunks, len(todo), doing, len):
            started, before = time.perf_counter(), tokens()
            values = work([todo[key] for key in chunk])
            self._add(dict(zip(chunk, values, strict=True)), time.perf_counter() - started, tokens() - before, lasts)
        new = {key: self._known[key] for key in keys if key not in self._asked}
        self._asked.update(new)
        self.count += len(new)
        self.seconds += sum(each.seconds for each in new.values())
        self.tokens += sum(each.tokens for each in new.values())
        self.seconds_before += sum(each.seconds for each in new.values() if each.before)
        return [self._known[key].value for key in keys]

    def seconds_of(self, key: str) -> float:
        """The share of a value in the time of its chunk."""
        return self._known[key].seconds

    def forget(self) -> None:
        """Free the values; counts and times stay."""
        self._known.clear()
        self._asked.clear()

    def _add(self, values: Mapping[str, Any], seconds: float, tokens: int, lasts: Callable[[Any], bool]) -> None:
        self._remember(values, seconds, tokens, before=False)
        kept = {key: value for key, value in values.items() if lasts(value)}
        if self._journal is None or not kept:
            return
        share = len(kept) / len(values)
        with self._journal.locked(_WAIT_SECONDS):
            self._read()
            self._journal.append({"seconds": seconds * share, "tokens": int(tokens * share), "values": kept})

    def _read(self) -> None:
        """Take over the chunks that are new in the journal."""
        for chunk in self._journal.read(lambda _, line: line) if self._journal else ():
            self._remember(chunk["values"], float(chunk["seconds"]), int(chunk["tokens"]), before=True)

    def _remember(self, values: Mapping[str, Any], seconds: float, tokens: int, before: bool) -> None:
        """Add a chunk; a value that is known already stays as it was used."""
        for key, value in values.items():
            self._known.setdefault(key, _Remembered(value, seconds / len(values), tokens / len(values), before))


@dataclass(frozen=True, slots=True)
class Needed:
    """What an answer needs of a part by itself, whatever the memo has saved it."""

    stage: str
    values: Values
    count: float


class Memo:
    """The values of all parts of the systems that one command asks.

    A part is saved under what it is: its `recipe`, and its `identity` (another class has another one) or the arguments
    that the command line built it from. One without is remembered within the process.

    Args:
        folder: For the journals; None saves nothing.
        option: Of the command line, which names the folder; for error lines.
    """

    def __init__(self, folder: Path | None = None, option: str = "--out") -> None:
        self.folder, self.option = folder, option
        self._values: dict[tuple[str, int, int], tuple[Values, object]] = {}  # with the part, whose id stays its own
        self._strategies: dict[int, list[Sequence[str]]] = {}  # that a rewriter was asked for, by its id

    def of(self, kind: str, part: object, depth: int = 0) -> Values:
        """The values of a part, such as `scores` or `answers`; the searches of a stage at a depth are not saved."""
        key = kind, id(part), depth
        if key not in self._values:
            known = identity_of(part) if self.folder is not None and depth == 0 else None
            file = None
            if known is not None and self.folder is not None:
                head = {"part": known, "hardware": hardware(), "versions": library_versions(), "format": _FORMAT}
                name = hashlib.sha256(json.dumps(head, sort_keys=True).encode()).hexdigest()[:16]
                file = self.folder / f"{kind}-{name}.jsonl"
            self._values[key] = Values(file, head if file else None, f"values of {kind}", self.option), part
        return self._values[key][0]

    @property
    def seconds_before(self) -> float:
        """Computing time of what was reused from earlier runs."""
        return sum(values.seconds_before for values, _ in self._values.values())

    def searches(self, stage: str) -> Search:
        """As `Retriever.search`; the beginning of a deeper list is served where it is that of a search for k.

        The texts of one stage are not those of another, and take another time.
        """
        return partial(self._search, stage)

    def end_batch(self) -> None:
        """Free the searches: later questions are others."""
        for (_, _, depth), (values, _) in self._values.items():
            if depth:
                values.forget()

    def _search(self, stage: str, retriever: Retriever, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        depth_of = {text: self._depth(stage, retriever, text, k) for text in dict.fromkeys(queries)}
        found: dict[str, list[Ranked]] = {}
        for depth in dict.fromkeys(depth_of.values()):
            texts = [text for text, own in depth_of.items() if own == depth]

            def work(places: Sequence[int], texts: Sequence[str] = texts, depth: int = depth) -> list[list[Ranked]]:
                return retriever.search([texts[place] for place in places], depth)

            lists = self.of(stage, retriever, depth)(texts, work, None, SEARCHED_AT_ONCE)
            found |= {text: hits[:k] for text, hits in zip(texts, lists, strict=True)}
        return [list(found[text]) for text in queries]

    def _depth(self, stage: str, retriever: Retriever, text: str, k: int) -> int:
        """That of a known search whose beginning is the search for k; else k."""
        most: float = getattr(retriever, "prefix_depth", 0)
        deeper = (depth for depth in self._depths(stage, retriever, k) if depth == k or depth <= most)
        return next((depth for depth in deeper if text in self.of(stage, retriever, depth)), k)

    def _depths(self, stage: str, retriever: Retriever, k: int) -> list[int]:
        """Those of at least k."""
        own = (depth for kind, part, depth in self._values if (kind, part) == (stage, id(retriever)))
        return sorted(depth for depth in own if depth >= k)

    def searched(self, stage: str, retriever: Retriever, count: int, k: int) -> Needed:
        """So many searches for k, at the mean time of a depth that serves them."""
        return Needed(stage, self.of(stage, retriever, next(iter(self._depths(stage, retriever, k)), k)), count)

    def widest(self, rewriter: object, strategies: Sequence[str]) -> Sequence[str]:
        """The strategies of the first row that asked a rewriter for all of these."""
        asked = self._strategies.setdefault(id(rewriter), [])
        found = next((each for each in asked if {*strategies} <= {*each}), None)
        if found is None:
            asked.append(strategies)
        return found or strategies

    def reading(self, reader: Reader | None, question: Question) -> list[Needed]:
        """One reading; none without a reader, or of a question that is not read."""
        return [Needed("reading", self.of("answers", reader), 1)] if reader and _is_read(question) else []

    def scores(self, scorer: PairScorer, triples: Sequence[Triple]) -> list[float]:
        """P(positive | q, d1, d2) of every triple, in order."""
        keys = [key_of_texts(q, d1.title, d1.text, d2.title, d2.text) for q, d1, d2 in triples]

        def score(places: Sequence[int]) -> list[float]:
            return [float(each) for each in scorer.probabilities([triples[place] for place in places])]

        def length(place: int) -> int:
            question, d1, d2 = triples[place]
            return len(question) + len(d1.text) + len(d2.text)

        values = self.of("scores", scorer)
        return values(keys, score, "scoring pairs", PAIRS_AT_ONCE, length, lambda: tokens_read(scorer))

    def relevance(
        self, estimator: "RelevanceEstimator", questions: Sequence[str], passages: Sequence[Sequence[Passage]]
    ) -> list[list[float]]:
        """As `harness.retrievers.rerank.relevance`: the logits, in nats, of each question's passages, in order."""
        pairs = [(q, passage) for q, own in zip(questions, passages, strict=True) for passage in own]
        keys = [key_of_texts(question, passage.title, passage.text) for question, passage in pairs]

        def score(places: Sequence[int]) -> list[float]:
            return [float(each) for each in estimator.scores([pairs[place] for place in places])]

        def length(place: int) -> int:
            return sum(map(len, (pairs[place][0], pairs[place][1].title, pairs[place][1].text)))

        values = self.of("relevance", estimator)
        found = values(keys, score, "scoring passages", PAIRS_AT_ONCE, length, lambda: tokens_read(estimator))
        logits = iter(found)
        return [[next(logits) for _ in own] for own in passages]

    def by_question(self, kind: str, part: object, questions: Sequence[Question], ask: Ask, at_once: int) -> list[Any]:
        """The fields of what a part gives for each question: a record with costs and notes.

        One for which a call failed is asked for again by the next run.
        """
        keys = [digest_of(question) for question in questions]

        def work(places: Sequence[int]) -> list[dict[str, Any]]:
            return [asdict(each) for each in ask(part, [questions[place] for place in places])]

        return self.of(kind, part)(keys, work, None, at_once, lasts=has_succeeded)

    def read(
        self, reader: Reader, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]], every: bool = False
    ) -> list[Answer]:
        """As `Reader.read`, with the time of each reading as its cost `seconds/reading`.

        An answer that a call failed for is read again by the next run.

        Args:
            reader: The reader.
            questions: The questions.
            evidence: Of each question.
            every: Whether a question without a gold answer is read, too, such as for a choice among answers; else it is
                not, because nothing could be compared.
        """
        asked = [each for each in zip(questions, evidence, strict=True) if every or _is_read(each[0])]
        keys = [
            digest_of(question, *((hit.passage.id, hit.passage.title, hit.passage.text, hit.score) for hit in hits))
            for question, hits in asked
        ]

        def read(places: Sequence[int]) -> list[list[Any]]:
            batch = [asked[place] for place in places]
            answers = reader.read([question for question, _ in batch], [hits for _, hits in batch])
            return [[each.text, each.logprob, each.costs, each.notes] for each in answers]

        values = self.of("answers", reader)
        known = values(keys, read, "reading", READ_AT_ONCE, lasts=lambda each: not each[2].get("failed_calls"))
        answers = (
            Answer(each.id, text, (), logprob, {**costs, "seconds/reading": values.seconds_of(key)}, notes)
            for (each, _), key, (text, logprob, costs, notes) in zip(asked, keys, known, strict=True)
        )
        return [next(answers) if every or _is_read(each) else Answer(each.id, "", ()) for each in questions]


def settled(answer: Answer) -> Answer:
    """An answer with the seconds and tokens that it needs by itself: counts times the means of the parts."""
    needed: Sequence[Needed] = answer.notes.get(NEEDED, ())  # type: ignore[assignment]
    seconds: dict[str, float] = {}
    for each in needed:
        stage = f"seconds/{each.stage}"
        seconds[stage] = seconds.get(stage, 0.0) + each.count * each.values.seconds_each
    tokens = sum(each.count * each.values.tokens_each for each in needed)
    notes = {name: value for name, value in answer.notes.items() if name != NEEDED}
    if NEEDED not in answer.notes:
        return answer
    counts = {name: cost for name, cost in answer.costs.items() if not name.startswith("seconds/")}
    costs = {**counts, "tokens": answer.costs.get("tokens", 0.0) + tokens, **seconds}
    return replace(answer, costs=costs, notes=notes)


def has_succeeded(row: Mapping[str, Any]) -> bool:
    failed = any(count for name, count in row["costs"].items() if name.startswith("failed_"))
    return not (failed or row.get("lost") or row["notes"].get("error"))


def identity_of(part: object) -> Mapping[str, object] | None:
    """What determines a part's results, JSON types only; None if that is not known, or the part says `unsaved`."""
    if getattr(part, "unsaved", False):
        return None
    known = getattr(part, "identity", None) or configuration(part)
    recipes = {name: each.recipe for name, each in {"": part, **models_of(part)}.items() if hasattr(each, "recipe")}
    return {"recipes": recipes, "part": known} if known else None


def digest_of(question: Question, *further: object) -> str:
    """A key: what a part is asked about a question, JSON types only."""
    return key_of_texts(*(repr(getattr(question, each.name)) for each in fields(question)), json.dumps(further))


def key_of_texts(*texts: str) -> str:
    """A key: the texts that a part is asked about."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]


def _is_read(question: Question) -> bool:
    return bool(question.answers or question.source.withheld)
