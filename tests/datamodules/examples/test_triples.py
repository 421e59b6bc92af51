"""Triples (Eq. 2): what is drawn, how it is balanced, and how steps are cut."""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError, MissingInputError
from common.records import OTHER_TEXTS, Gold, Passage, Question
from datamodules.examples.audit import audit
from datamodules.examples.step_loader import StepLoader, part, plan_steps
from datamodules.examples.triple_batches import TripleBatch
from datamodules.examples.triples import Sampling, draw, noise_of
from datamodules.formats.mined_negatives import Mined, is_mined
from tests.helpers.mined_files import read_mined, write_mined

GOLD = [Passage.of(f"gold{i}", f"gold text {i}") for i in range(3)]
OWN = [Passage.of(f"own{i}", f"own text {i}") for i in range(8)]
MINED = [Passage.of(f"mined{i}", f"mined text {i}") for i in range(8)]


def question(golds: int = 2, id: str = "q") -> Question:
    gold = GOLD[:golds]
    return Question(id, "who?", ("x",), tuple([*OWN[:4], *gold, *OWN[4:]]), tuple(p.id for p in gold))


def test_two_gold_passages_give_both_orders_and_as_many_negatives() -> None:
    triples = draw(question(), MINED, Sampling(), seed=0, epoch=0)
    assert [(t.first, t.second) for t in triples if t.positive] == [(GOLD[0], GOLD[1]), (GOLD[1], GOLD[0])]
    assert Counter(t.kind for t in triples) == {"gold_gold": 2, "gold_noise": 1, "noise_noise": 1}


def test_labels_follow_eq_2_in_every_draw() -> None:
    gold = {p.id for p in GOLD}
    for epoch in range(50):
        for triple in draw(question(3), MINED, Sampling(negatives_per_positive=1.5), 1, epoch):
            hits = (triple.first.id in gold) + (triple.second.id in gold)
            assert {2: "gold_gold", 1: "gold_noise", 0: "noise_noise"}[hits] == triple.kind
            assert triple.first.id != triple.second.id
            assert triple.positive == (hits == 2)


def test_shares_hold_on_average() -> None:
    sampling = Sampling(negatives_per_positive=2.5, mixed_share=0.7, hard_negative_share=0.25)
    triples = [t for epoch in range(800) for t in draw(question(), MINED, sampling, 0, epoch)]
    kinds = Counter(t.kind for t in triples)
    negatives = kinds["gold_noise"] + kinds["noise_noise"]
    assert negatives / kinds["gold_gold"] == pytest.approx(2.5, abs=0.02)
    assert kinds["gold_noise"] / negatives == pytest.approx(0.7, abs=0.03)
    noise = [p for t in triples for p in (t.first, t.second) if p not in GOLD]
    assert sum(p in MINED for p in noise) / len(noise) == pytest.approx(0.25, abs=0.03)
    first = sum(t.first in GOLD for t in triples if t.kind == "gold_noise") / kinds["gold_noise"]
    assert first == pytest.approx(0.5, abs=0.05)  # both orders


def test_drawing_depends_on_seed_epoch_and_question_alone() -> None:
    random.seed(1)
    here = draw(question(), MINED, Sampling(), 3, 4)
    random.seed(2)
    assert draw(question(), MINED, Sampling(), 3, 4) == here
    others = [(question(), 3, 5), (question(), 4, 4), (question(id="r"), 3, 4)]
    assert any([t.texts for t in draw(q, MINED, Sampling(), s, e)] != [t.texts for t in here] for q, s, e in others)


def test_questions_without_a_pair_or_without_noise_give_nothing() -> None:
    assert draw(question(1), MINED, Sampling(), 0, 0) == []
    bare = Question("q", "who?", ("x",), tuple(GOLD), tuple(p.id for p in GOLD))
    assert draw(bare, [], Sampling(), 0, 0) == []


def test_gold_is_never_noise_even_when_mined_or_only_named() -> None:
    named = Question("q", "who?", ("x",), (*GOLD, *OWN), tuple(p.id for p in GOLD[:2]), gold=Gold(titles=("own3",)))
    own_copy, mined_copy = Passage.of("a", GOLD[0].text), Passage.of("b", f"b: {GOLD[1].text}")
    named = replace(named, passages=(*named.passages, own_copy))
    rest = [GOLD[2], *(each for each in OWN if each != OWN[3])]
    assert noise_of(named, [mined_copy, own_copy, GOLD[0], MINED[0]]) == (rest, [MINED[0]], 2)
    triples = [
        t for e in range(100) for t in draw(question(), [*GOLD, *MINED], Sampling(hard_negative_share=1.0), 0, e)
    ]
    assert all(t.positive for t in triples if {t.first, t.second} <= set(GOLD[:2]))


lengths = st.lists(st.integers(5, 400), min_size=1, max_size=80)


@given(lengths, st.integers(1, 80), st.integers(0, 99))
def test_steps_partition_the_epoch_into_exactly_as_many_as_asked(lengths: list[int], steps: int, seed: int) -> None:
    steps = min(steps, len(lengths))
    plan = plan_steps(lengths, steps, random.Random(seed))
    assert len(plan) == steps
    assert all(plan)
    assert sorted(row for step in plan for row in step) == list(range(len(lengths)))


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 4))
def test_parts_of_a_step_cover_it_once_for_any_number_of_ranks(size: int, ranks: int, accumulate: int) -> None:
    step = list(range(size))
    parts = [part(step, i, ranks * accumulate) for i in range(ranks * accumulate)]
    assert sorted(row for rows in parts for row in rows) == step
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def loader(rank: int = 0, ranks: int = 1, accumulate: int = 1) -> StepLoader:
    plans = {epoch: plan_steps([10] * 23, 4, random.Random(epoch)) for epoch in range(9)}
    return StepLoader(plans.__getitem__, lambda epoch, rows, step: (epoch, rows, len(step)), 4, rank, ranks, accumulate)  # type: ignore[arg-type,return-value]


def test_any_ranks_and_accumulation_see_the_same_steps() -> None:
    def steps(ranks: int, accumulate: int) -> list[list[int]]:
        per_rank = [list(loader(rank, ranks, accumulate)) for rank in range(ranks)]
        assert len({len(batches) for batches in per_rank}) == 1
        groups = [[] for _ in range(4)]
        for batches in per_rank:
            for number, (_, rows, _) in enumerate(batches):
                groups[number // accumulate] += rows
        return [sorted(group) for group in groups]

    assert steps(1, 1) == steps(2, 1) == steps(1, 3) == steps(3, 2)


@pytest.mark.parametrize("stop", [0, 1, 3, 4, 5, 8])
def test_a_loader_continues_where_another_stopped(stop: int) -> None:
    def run(loader: StepLoader, batches: int) -> list[TripleBatch]:
        seen: list[TripleBatch] = []
        while len(seen) < batches:
            for batch in loader:
                seen.append(batch)
                if len(seen) == batches:
                    break
        return seen

    whole, first, second = loader(), loader(), loader()
    expected = run(whole, 12)
    head = run(first, stop) if stop else []
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert head + run(second, 12 - stop) == expected


def test_mined_files_read_as_written_and_bad_lines_are_named(tmp_path: Path) -> None:
    path = tmp_path / "mined.jsonl"
    write_mined(path, [("q", Mined(OWN[:2], {"a": ["b", "c"]})), ("r", Mined())])
    assert read_mined([str(path), str(path)]) == {"q": OWN[:2] * 2, "r": []}
    good = path.read_text()
    row = {"question_id": "s", "passages": [], "hits": {}}
    for bad in ({**row, "question_id": None}, {**row, "question_id": 7.0}, {"question_id": "s"},
                {**row, "hits": {"a": [1]}}, {**row, "hits": []}, row):  # fmt: skip
        path.write_text(f"{good}{json.dumps(bad)}\n")
        with pytest.raises(DataError, match=r"mined\.jsonl, line 3: .*un `python infer\.py mine` again\.$") as caught:
            read_mined([str(path)])
    assert OTHER_TEXTS in str(caught.value)  # the last one names no version
    with pytest.raises(MissingInputError, match=r"infer\.py mine"):
        read_mined([str(tmp_path / "none.jsonl")])


def test_hits_of_several_files_are_joined(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one.jsonl", "two.jsonl")]
    write_mined(files[0], [("q", Mined(OWN[:2], {"a": ["b", "c"]}))])
    write_mined(files[1], [("q", Mined(OWN[2:3], {"a": ["c", "d"], "e": []}))])
    assert all(map(is_mined, files))
    (found,) = read_mined([str(file) for file in files]).values()
    assert found == OWN[:3]
    assert found.hits == {"a": ["b", "c", "d"], "e": []}


HITS = {
    GOLD[0].id: [MINED[0].id, GOLD[1].id, MINED[1].id],  # the second is a positive pair
    MINED[2].id: [MINED[3].id, GOLD[0].id, "not kept"],
    OWN[0].id: [MINED[4].id],  # no mined passage
}


def test_paired_negatives_are_what_was_found_with_what_in_this_order() -> None:
    sampling = Sampling(negatives_per_positive=4.0, mixed_share=0.75, paired_share=1.0)
    triples = [t for epoch in range(60) for t in draw(question(), MINED, sampling, 0, epoch, HITS)]
    pairs = {kind: {(t.first, t.second) for t in triples if t.kind == kind} for kind in ("gold_noise", "noise_noise")}
    assert pairs["gold_noise"] == {(GOLD[0], MINED[0]), (GOLD[0], MINED[1]), (MINED[2], GOLD[0])}
    assert pairs["noise_noise"] == {(MINED[2], MINED[3])}
    assert Counter(t.kind for t in triples) == {"gold_gold": 120, "gold_noise": 360, "noise_noise": 120}


def test_without_a_share_or_without_hits_the_draws_are_those_of_earlier_releases() -> None:
    plain = [draw(question(), MINED, Sampling(), 0, epoch) for epoch in range(20)]
    assert [draw(question(), MINED, Sampling(), 0, epoch, HITS) for epoch in range(20)] == plain
    assert [draw(question(), MINED, Sampling(paired_share=1.0), 0, epoch) for epoch in range(20)] == plain
    titles = [(t.first.title, t.second.title) for t in plain[0]]
    assert titles == [("gold0", "gold1"), ("gold1", "gold0"), ("own5", "gold1"), ("mined3", "own4")]


def test_the_audit_counts_what_was_drawn() -> None:
    holder = Passage.of("holder", "this text has x in it")
    asked = Question("q", "who?", ("x",), (*GOLD[:2], holder), tuple(p.id for p in GOLD[:2]), kind="bridge")
    single = Question("s", "what?", ("y",), (*GOLD[:1], *OWN), (GOLD[0].id,))
    triples = draw(asked, [], Sampling(), 0, 0)
    report = audit([asked, single], triples, {}, [10, 20, 30, 40], 30, [10, 20, 30, 50])
    assert report["positives"] == report["negatives"] == 2
    assert report["questions_without_triples"] == 1
    assert report["question_kinds"] == {"bridge": 4}
    assert report["gold_passages"] == {1: 1, 2: 1}
    assert report["truncated"] == 1
    assert report["noise"] == {"passages": 3, "mined": 0, "with_answer": 3}
