"""The memo: what another process has computed is reused, a killed one harms nobody, other parts have other values."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from common.context_sources import SourceContext
from common.records import Answer, Passage, Question, Ranked, Source
from harness.runtime.memo import Memo
from tests.helpers.river_corpus import PASSAGES, TableScorer


class Named(TableScorer):
    """A scorer that says what it is."""

    def __init__(self, *pairs: tuple[str, str], name: str = "a") -> None:
        super().__init__(*pairs)
        self.identity = {"name": name}


def test_values_of_another_process_are_taken_over_but_never_change_one_in_use(tmp_path: Path) -> None:
    """Another part has values of its own, an unnamed one in this process alone."""
    one, other = Memo(tmp_path), Memo(tmp_path)
    none, first = Named(), Named(("Alba", "Brune"))
    assert one.of("scores", none).count == other.of("scores", first).count == 0  # both have read the file
    alba, brune = PASSAGES["Alba"], PASSAGES["Brune"]
    both = [("q", alba, brune), ("q", brune, alba)]
    assert one.scores(none, both[:1]) == [0.1]
    assert other.scores(first, [*both, ("r", brune, alba)]) == [0.9, 0.1, 0.1]
    assert one.scores(none, [("s", alba, brune)]) == [0.1]
    asked = len(none.asked)
    assert one.scores(none, [*both, ("r", brune, alba)]) == [0.1] * 3
    assert len(none.asked) == asked  # they came from the file
    assert one.of("scores", none).count == 4  # that it was asked for
    assert other.scores(Named(name="b"), both[:1]) == [0.1]
    assert other.scores(TableScorer(("Alba", "Brune")), [both[0], ("r", alba, brune)]) == [0.9, 0.9]
    assert other.scores(TableScorer(), both[:1]) == [0.1]
    assert len([*tmp_path.iterdir()]) == 2


def test_a_stopped_command_computes_the_rest_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stops(Named):
        def probabilities(self, asked):
            if len(self.asked) + len(asked) > 8:
                raise KeyboardInterrupt
            return super().probabilities(asked)

    monkeypatch.setattr("harness.runtime.memo.PAIRS_AT_ONCE", 4)
    pairs = itertools.islice(itertools.permutations(PASSAGES.values(), 2), 10)
    stopped, resumed, wanted = Stops(), Named(), [("q", *pair) for pair in pairs]
    with pytest.raises(KeyboardInterrupt):
        Memo(tmp_path).scores(stopped, wanted)
    (file,) = tmp_path.iterdir()
    with file.open("ab") as killed:
        killed.write(b'{"seconds": 1.0, "val')  # a torn line
    memo = Memo(tmp_path)
    assert memo.scores(resumed, wanted) == [0.1] * 10
    assert sorted(stopped.asked + resumed.asked) == sorted((q, a.title, b.title) for q, a, b in wanted)
    assert memo.scores(resumed, wanted[::-1]) == [0.1] * 10
    assert len(resumed.asked) == 2
    assert memo.of("scores", resumed).count == 10


class Searcher:
    """Finds passages whose names are the numbers from 0, and remembers how deep it was asked."""

    def __init__(self, candidates: int | None = None) -> None:
        self.asked: list[tuple[str, int]] = []
        self.prefix_depth = inf if candidates is None else candidates

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        self.asked += [(query, k) for query in queries]
        return [[Ranked(Passage(str(n), str(n)), 1 / (n + 1)) for n in range(k)] for _ in queries]


def test_the_beginning_of_a_deeper_search_is_served() -> None:
    deep, deeper = [("a", 5), ("b", 3), ("a", 7)], [("a", 5), ("a", 3), ("b", 3), ("a", 7), ("a", 4)]
    for candidates, asked in ((None, deep), (5, deep), (4, deeper)):  # beyond them a list depends on the depth
        memo, retriever = Memo(), Searcher(candidates)
        for queries, k in ((["a"], 5), (["a", "b", "a"], 3), (["a"], 7), (["a"], 4), (["b"], 3)):
            found = memo.searches("stage")(retriever, queries, k)
            assert [[hit.passage.id for hit in hits] for hits in found] == [[*map(str, range(k))]] * len(queries)
        assert retriever.asked == asked


class Reader:
    """Answers with the name of the first passage; its call for question 1 may fail."""

    identity = {"reader": "test"}  # noqa: RUF012

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.asked = fails, list[str]()

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        self.asked += [question.id for question in questions]
        costs = {"1": {"failed_calls": 1.0}} if self.fails else {}
        texts = [hits[0].passage.id if hits else "" for hits in evidence]
        return [Answer(q.id, text, (), costs=costs.get(q.id, {})) for q, text in zip(questions, texts, strict=True)]


def test_equal_choices_are_read_once_and_only_with_a_gold_answer() -> None:
    memo, reader = Memo(), Reader()
    questions = [Question("1", "a", ("x",)), Question("2", "a", ("x",)), Question("3", "b")]
    first, second = [Ranked(Passage("p", ""), 1.0)], [Ranked(Passage("r", ""), 1.0)]
    for hits in (first, second, first):
        found = memo.read(reader, questions, [hits] * 3)
        assert [each.text for each in found] == [hits[0].passage.id] * 2 + [""]
        assert [each.question_id for each in found] == ["1", "2", "3"]
    assert reader.asked == ["1", "2", "1", "2"]
    assert memo.read(reader, questions, [first] * 3, every=True)[2].text == "p"
    memo.read(reader, questions[:1], [[Ranked(Passage("p", "a part of it"), 1.0)]])  # a cut passage keeps its id
    assert reader.asked[4:] == ["3", "1"]


def test_a_record_for_which_a_call_failed_is_asked_for_again_by_the_next_run(tmp_path: Path) -> None:
    class Source:
        identity = {"source": "test"}  # noqa: RUF012

    def ask(part: Source, questions: Sequence[Question]) -> list[SourceContext]:
        asked.append([question.id for question in questions])
        return [contexts[question.id] for question in questions]

    asked: list[list[str]] = []
    context = SourceContext((Ranked(Passage("p", "x", metadata={"link": "l"}), 0.5),), costs={"failed_calls": 0.0})
    failed = replace(context, costs={"failed_summary_calls": 1.0})
    contexts = {"1": context, "2": failed, "3": SourceContext((), "no server", lost=True)}
    questions = [Question(id_, "a") for id_ in contexts]
    for memo in (Memo(tmp_path), Memo(tmp_path)):
        for part in (Source(), Source()):
            rows = memo.by_question("contexts", part, questions, ask, 64)
            assert [*map(SourceContext.from_row, rows)] == [*contexts.values()]
    assert asked == [["1", "2", "3"], ["2", "3"], ["2", "3"], ["2", "3"]]
    memo.by_question("contexts", part, [Question("1", "b")], ask, 64)
    assert asked[4:] == [["1"]]


def test_a_failed_reading_is_read_again_by_the_next_run_and_an_unanswerable_question_is_read(tmp_path: Path) -> None:
    questions = [Question("1", "a", ("x",)), Question("2", "b", source=Source(withheld=("y",))), Question("3", "c")]
    readers = [Reader(fails=True), Reader(), Reader()]
    for reader in readers:
        Memo(tmp_path).read(reader, questions, [[]] * 3)
    assert [each.asked for each in readers] == [["1", "2"], ["1"], []]
    assert [len(Memo().reading(readers[0], question)) for question in questions] == [1, 1, 0]


def test_searches_of_two_stages_have_their_own_times_and_are_freed_with_their_batch() -> None:
    memo, retriever = Memo(), Searcher()
    memo.searches("one")(retriever, ["a"], 5)
    memo.searches("two")(retriever, ["a", "b"], 5)
    assert retriever.asked == [("a", 5), ("a", 5), ("b", 5)]
    memo.end_batch()
    memo.searches("one")(retriever, ["a"], 5)
    assert retriever.asked[3:] == [("a", 5)]
    assert [memo.searched(stage, retriever, 1, 3).values.count for stage in ("one", "two")] == [2, 2]
