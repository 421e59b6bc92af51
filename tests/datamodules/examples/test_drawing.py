"""What training draws: triples (Eq. 2) and steps, context sets, and what helps a young reader."""

import json
import math
import random
import re
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from common.errors import DataError, MissingInputError
from common.records import OTHER_TEXTS, Gold, Passage, Question
from datamodules.examples.audit import audit
from datamodules.examples.context_augmentation import AnswerSubstitutes, shape, swap_words
from datamodules.examples.context_sampling import ContextSampler, count_contexts
from datamodules.examples.context_sets import ContextSet, shares_of_grades
from datamodules.examples.step_loader import StepLoader, part, plan_steps
from datamodules.examples.triple_batches import TripleBatch
from datamodules.examples.triples import Sampling, draw, noise_of
from datamodules.formats.mined_negatives import Mined, is_mined
from models.t5.word_neighbours import nearest_words
from tests.conftest import word_level
from tests.helpers.mined_files import read_mined, write_mined
from tests.helpers.rerag_data import context_data, fid_rows
from trainers.rerag import ReRagTrainer
from trainers.t5_from_scratch import main

GOLD = [Passage.of(f"gold{i}", f"gold text {i}") for i in range(3)]
OWN = [Passage.of(f"own{i}", f"own text {i}") for i in range(8)]
MINED = [Passage.of(f"mined{i}", f"mined text {i}") for i in range(8)]


def question(golds: int = 2, id: str = "q") -> Question:
    gold = GOLD[:golds]
    return Question(id, "who?", ("x",), tuple([*OWN[:4], *gold, *OWN[4:]]), tuple(p.id for p in gold))


def test_two_gold_passages_give_both_orders_and_as_many_negatives_and_no_pair_or_noise_nothing() -> None:
    triples = draw(question(), MINED, Sampling(), seed=0, epoch=0)
    assert [(t.first, t.second) for t in triples if t.positive] == [(GOLD[0], GOLD[1]), (GOLD[1], GOLD[0])]
    assert Counter(t.kind for t in triples) == {"gold_gold": 2, "gold_noise": 1, "noise_noise": 1}
    assert draw(question(1), MINED, Sampling(), 0, 0) == []
    assert draw(replace(question(3), passages=tuple(GOLD)), [], Sampling(), 0, 0) == []


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
    here = draw(question(), MINED, Sampling(), 3, 4)
    random.seed(2)
    assert draw(question(), MINED, Sampling(), 3, 4) == here
    others = [(question(), 3, 5), (question(), 4, 4), (question(id="r"), 3, 4)]
    assert all([t.texts for t in draw(q, MINED, Sampling(), s, e)] != [t.texts for t in here] for q, s, e in others)


def test_gold_is_never_noise_even_when_mined_or_only_named() -> None:
    named = Question("q", "who?", ("x",), (*GOLD, *OWN), tuple(p.id for p in GOLD[:2]), gold=Gold(titles=("own3",)))
    own_copy, mined_copy = Passage.of("a", GOLD[0].text), Passage.of("b", f"b: {GOLD[1].text}")
    named = replace(named, passages=(*named.passages, own_copy))
    rest = [GOLD[2], *(each for each in OWN if each != OWN[3])]
    assert noise_of(named, [mined_copy, own_copy, GOLD[0], MINED[0]]) == (rest, [MINED[0]], 2)
    mined = Sampling(hard_negative_share=1.0)
    triples = [t for epoch in range(100) for t in draw(question(), [*GOLD, *MINED], mined, 0, epoch)]
    assert all(t.positive for t in triples if {t.first, t.second} <= set(GOLD[:2]))


lengths = st.lists(st.integers(5, 400), min_size=1, max_size=80)


@given(lengths, st.integers(1, 80), st.integers(0, 99))
def test_steps_partition_the_epoch_into_exactly_as_many_as_asked(lengths, steps, seed) -> None:
    steps = min(steps, len(lengths))
    plan = plan_steps(lengths, steps, random.Random(seed))
    assert len(plan) == steps
    assert all(plan)
    assert sorted(row for step in plan for row in step) == list(range(len(lengths)))


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 4))
def test_parts_of_a_step_cover_it_once_for_any_number_of_ranks(size, ranks, accumulate) -> None:
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
def test_a_loader_continues_where_another_stopped(stop) -> None:
    def run(loader: StepLoader, batches: int) -> list[TripleBatch]:
        """The next batches, in as many epochs as that takes."""
        endless = (batch for _ in range(batches) for batch in loader)
        return list(islice(endless, batches))

    whole, first, second = loader(), loader(), loader()
    expected = run(whole, 12)
    head = run(first, stop)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert head + run(second, 12 - stop) == expected


def test_mined_files_read_as_written_and_bad_lines_are_named(tmp_path) -> None:
    path, other = tmp_path / "mined.jsonl", tmp_path / "other.jsonl"
    write_mined(path, [("q", Mined(OWN[:2], {"a": ["b", "c"]})), ("r", Mined())])
    write_mined(other, [("q", Mined(OWN[2:3], {"a": ["c", "d"], "e": []}))])
    assert is_mined(path)
    assert is_mined(other)
    assert read_mined([str(path), str(path)]) == {"q": OWN[:2] * 2, "r": []}
    joined = read_mined([str(path), str(other)])["q"]
    assert joined == OWN[:3]
    assert joined.hits == {"a": ["b", "c", "d"], "e": []}
    good, row = path.read_text(), {"question_id": "s", "passages": [], "hits": {}}
    wrong = ({"question_id": None}, {"question_id": 7.0}, {"hits": {"a": [1]}}, {"hits": []}, {})
    for bad in ({"question_id": "s"}, *(row | change for change in wrong)):
        path.write_text(f"{good}{json.dumps(bad)}\n")
        with pytest.raises(DataError, match=r"mined\.jsonl, line 3: .*un `python infer\.py mine` again\.$") as caught:
            read_mined([str(path)])
    assert OTHER_TEXTS in str(caught.value)  # the last one names no version
    with pytest.raises(MissingInputError, match=r"infer\.py mine"):
        read_mined([str(tmp_path / "none.jsonl")])


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


BEST, GOOD, BAD = Passage.of("", "the best"), Passage.of("", "a good one"), Passage.of("", "a bad one")
COPY = Passage.of("copy", "the best")


def asked(*support: Passage, answers: tuple[str, ...] = (), **fields: object) -> Question:
    passages = (BEST, GOOD, BAD)
    return Question("q", "Which?", answers, passages, tuple(each.id for each in support), **fields)  # type: ignore[arg-type]


def test_grades_are_shares_of_the_highest_one() -> None:
    question = asked(BEST, GOOD, gold=Gold(grades=((BEST.id, 4.0), (GOOD.id, 1.0))))
    other, named = Passage.of("", "another one"), Passage.of("A good one", "A good one.")
    passages = (BAD, GOOD, BEST, COPY, other, named)  # a copy has the grade of what it is a copy of
    shares = (0.0, 0.25, 1.0, 1.0, 0.25, 0.25)
    assert shares_of_grades(question, passages, (False, True, True, True, True, True)) == shares
    twice = replace(question, gold=Gold(grades=((BEST.id, 4.0), (GOOD.id, 2.0), (COPY.id, 1.0))))
    assert shares_of_grades(twice, passages, (False, True, True, True, True, True))[2:] == (1.0, 0.25, 0.25, 0.5)
    assert shares_of_grades(asked(BEST), (BEST, BAD), (True, False)) == ()
    assert shares_of_grades(asked(gold=Gold(grades=(("of a corpus", 0.0),))), (BAD,), (False,)) == ()


def test_a_training_by_gold_passages_needs_no_answers(tmp_path) -> None:
    questions = [asked(BEST), asked(answers=("best",)), asked(), asked(GOOD, answers=("x",))]

    def places(labels: str, answered: bool, labelled: bool = False) -> list[int]:
        sampler = ContextSampler({}, labels, False, seed=0)  # type: ignore[arg-type]

        def selected(question: Question) -> ContextSet:
            return sampler.selected(question, 3, "sampled", sampler.rng_of(question, 0))

        return count_contexts(questions, selected, answered, labelled)["place"].tolist()

    assert places("has_answer", True) == [1, 3]
    assert places("gold", True) == [1, 3]
    assert places("gold", False) == [0, 1, 3]  # the third has neither an answer nor a gold passage
    questions += [asked(BEST, answers=("yes",))]  # of which has-answer says nothing
    assert places("has_answer", True) == places("gold", True) == [1, 3, 4]
    assert places("has_answer", True, True) == [1, 3]
    assert places("gold", False, True) == [0, 1, 3, 4]


PIECES = ["<pad>", "</s>", "<unk>", "▁teacher", "▁tutor", "▁coach", "▁lake", "▁river"]
NO_WORDS = ["▁Teacher", "▁1987", "teach", "▁of", "▁question", "▁true", "▁a1b", "▁", "▁co-op", "<extra_id_0>"]
NEAREST = {"small": ["little", "tiny"], "house": ["home"], "red": ["blue"], "op": ["xx"], "mall": ["shop"]}


def test_nearest_words_by_hand() -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=word_level([*PIECES, *NO_WORDS], "<unk>"), unk_token="<unk>")
    degrees = torch.tensor([0.0, 0, 0, 10, 20, 50, 180, 200] + [10.0] * len(NO_WORDS)) * math.pi / 180
    lengths = torch.linspace(0.5, 9, len(degrees))  # the angle alone counts
    embeddings_VH = torch.stack([degrees.cos(), degrees.sin()], dim=1) * lengths[:, None]
    nearest = nearest_words(tokenizer, embeddings_VH, count=2)
    assert nearest == {
        "teacher": ["tutor", "coach"],  # 10 and 40 degrees away
        "tutor": ["teacher", "coach"],
        "coach": ["tutor", "teacher"],
        "lake": ["river", "coach"],  # 20, 130
        "river": ["lake", "coach"],  # 20, 150
    }
    assert nearest_words(tokenizer, embeddings_VH)["coach"] == ["tutor", "teacher", "lake", "river"]


def test_swapped_words_by_hand() -> None:
    rng = random.Random(0)
    text = "The small house, a red-brick House's red co-op of Small Red (small)."
    assert swap_words(text, NEAREST, 0.0, (), rng) == text
    swapped = {swap_words(text, NEAREST, 1.0, ("house",), rng) for _ in range(40)}
    both = [(one, other) for one in NEAREST["small"] for other in NEAREST["small"]]
    assert swapped == {f"The {one} house, a red-brick House's blue co-op of Small Red ({two})." for one, two in both}
    many = swap_words("red " * 4000, NEAREST, 0.25, (), rng)
    assert many.count("blue") == pytest.approx(1000, abs=120)


SOME = st.sampled_from(["small", "Small", "house.", "red", "it's", "co-op", "(red)", "é", "1", "x"])


@given(text=st.lists(SOME).map(" ".join) | st.text(max_size=60), share=st.floats(0, 1), seed=st.integers(0, 9))
def test_swapping_changes_words_one_by_one(text, share, seed) -> None:
    swapped = swap_words(text, NEAREST, share, {"red"}, random.Random(seed))
    before, after = re.split(r"([^\W_]+)", text), re.split(r"([^\W_]+)", swapped)
    assert len(before) == len(after)
    assert all(old == new or new in NEAREST.get(old, ()) for old, new in zip(before, after, strict=True))
    assert before.count("red") == after.count("red")


def answered(text: str, *answers: str) -> Question:
    return Question(text, text, answers)


def test_a_stand_in_is_of_the_same_shape_and_kind() -> None:
    companies = [answered(f"which company made the {thing} lamp", f"Acme{thing} Corp") for thing in "abcdefgh"]
    people = [answered(f"who was born in the town {thing}", f"Ann {thing.upper()}son") for thing in "abcdefgh"]
    years = [answered("when was the company made", "1987")]
    stand_ins = AnswerSubstitutes([*people, *years, *companies])
    rng = random.Random(0)
    drawn = {stand_ins.draw(companies[0], "Acmea Corp", rng) for _ in range(200)}
    assert drawn <= {one.answers[0] for one in companies[1:]}  # alike words: a company, and not the one asked for
    assert len(drawn) > 3
    assert {stand_ins.draw(people[0], "Ann Ason", rng) for _ in range(99)} <= {one.answers[0] for one in people[1:]}
    assert stand_ins.draw(answered("when", "2001"), "2001", rng) == "1987"
    for alone in ("1987", "a b c", "Ann of York"):  # no other of that shape
        assert stand_ins.draw(answered("when was the company made", alone), alone, rng) == alone
    both = [answered("which company", "Acme Corp", "Beta Ltd")]
    assert AnswerSubstitutes(both).draw(both[0], "Acme Corp", rng) == "Acme Corp"  # not by its own other spelling
    assert all(shape(answer) == "A A" for answer in drawn)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ReRagTrainer]:
    """A file of questions, and a reader that has neighbours for its words."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "fid.json").write_text(json.dumps(fid_rows(24)))
    sizes = ["--vocabulary=600", "--sizes.d_model=16", "--sizes.d_ff=16", "--sizes.layers=1", f"--out={folder / 't5'}"]
    main(["--corpus", str(folder / "fid.json"), "--layout", "fid", *sizes])
    return folder / "fid.json", ReRagTrainer(None, str(folder / "t5"), max_tokens=128).load()


def texts(data, epoch: int) -> list[tuple[str, ...]]:
    sets = [data.draws.draw(one, 5, "sampled", epoch) for one in data.questions]
    return [(one.question.text, one.answer, *(p.text for p in one.passages)) for one in sets]


def test_words_are_swapped_anew_in_every_epoch_of_training_alone(reader) -> None:
    plain, swapping, again = (context_data(*reader, word_swaps=share) for share in (0.0, 0.5, 0.5))
    assert {"director", "born", "city"} <= swapping.draws.nearest.keys()
    assert texts(swapping, 1) == texts(again, 1)
    assert texts(swapping, 1) != texts(swapping, 2)
    other = context_data(*reader, word_swaps=0.5, sampling_seed=1)
    assert texts(swapping, 1) != texts(other, 1)
    for old, new in zip(texts(plain, 1), texts(swapping, 1), strict=True):
        words = [list(zip(a.split(), b.split(), strict=True)) for a, b in zip(old, new, strict=True)]
        changed = [pair for text in words for pair in text if pair[0] != pair[1]]
        assert changed
        assert all(b in swapping.draws.nearest[a] for a, b in changed)
        assert new[1] == old[1]  # the answer
        assert sum(new[1] in text for text in new[2:]) >= 1
    assert list(swapping.validation_sets) == list(plain.validation_sets)
    assert texts(swapping, -1) == texts(plain, -1)
    assert list(swapping.questions) == list(plain.questions)


def test_windows_grow_with_the_epochs(reader) -> None:
    data, whole = context_data(*reader, crop_words=3, crop_growth_words=2), context_data(*reader)
    for epoch in (0, 1, 3):
        for one, full in zip(texts(data, epoch), texts(whole, epoch), strict=True):
            assert one[:2] == full[:2]
            for cut, text in zip(one[2:], full[2:], strict=True):
                assert len(cut.split()) == min(3 + 2 * epoch, len(text.split()))
                assert cut in text
    assert list(data.validation_sets) == list(whole.validation_sets)
