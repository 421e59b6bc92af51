"""What helps a young reader: words swapped for their neighbours, answers replaced by like ones, windows that grow."""

import json
import math
import random
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from common.records import Question
from datamodules.examples.context_augmentation import AnswerSubstitutes, shape, swap_words
from models.t5.word_neighbours import nearest_words
from tests.conftest import word_level
from tests.helpers.rerag_data import context_data, fid_rows
from trainers.rerag import ReRagTrainer
from trainers.t5_from_scratch import main

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
    assert swapped == {
        f"The {one} house, a red-brick House's blue co-op of Small Red ({other})."
        for one in NEAREST["small"]
        for other in NEAREST["small"]
    }
    many = swap_words("red " * 4000, NEAREST, 0.25, (), rng)
    assert many.count("blue") == pytest.approx(1000, abs=120)


@given(
    text=st.lists(st.sampled_from(["small", "Small", "house.", "red", "it's", "co-op", "(red)", "é", "1", "x"])).map(
        " ".join)
    | st.text(max_size=60),
    share=st.floats(0, 1),
    seed=st.integers(0, 9),
)  # fmt: skip
def test_swapping_changes_words_one_by_one(text: str, share: float, seed: int) -> None:
    swapped = swap_words(text, NEAREST, share, {"red"}, random.Random(seed))
    before, after = re.split(r"([^\W_]+)", text), re.split(r"([^\W_]+)", swapped)
    assert len(before) == len(after)
    assert all(old == new or new in NEAREST.get(old, ()) for old, new in zip(before, after, strict=True))
    assert before.count("red") == after.count("red")


def question(text: str, *answers: str) -> Question:
    return Question(text, text, answers)


def test_a_stand_in_is_of_the_same_shape_and_kind() -> None:
    companies = [question(f"which company made the {thing} lamp", f"Acme{thing} Corp") for thing in "abcdefgh"]
    people = [question(f"who was born in the town {thing}", f"Ann {thing.upper()}son") for thing in "abcdefgh"]
    years = [question("when was the company made", "1987")]
    stand_ins = AnswerSubstitutes([*people, *years, *companies])
    rng = random.Random(0)
    drawn = {stand_ins.draw(companies[0], "Acmea Corp", rng) for _ in range(200)}
    assert drawn <= {one.answers[0] for one in companies[1:]}  # alike words: a company, and not the one asked for
    assert len(drawn) > 3
    assert {stand_ins.draw(people[0], "Ann Ason", rng) for _ in range(99)} <= {one.answers[0] for one in people[1:]}
    assert stand_ins.draw(question("when", "2001"), "2001", rng) == "1987"
    for alone in ("1987", "a b c", "Ann of York"):  # no other of that shape
        assert stand_ins.draw(question("when was the company made", alone), alone, rng) == alone
    both = [question("which company", "Acme Corp", "Beta Ltd")]
    assert AnswerSubstitutes(both).draw(both[0], "Acme Corp", rng) == "Acme Corp"  # not by its own other spelling
    assert all(shape(answer) == "A A" for answer in drawn)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ReRagTrainer]:
    """A file of questions, and a reader that has neighbours for its words."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "fid.json").write_text(json.dumps(fid_rows(24)))
    sizes = [
        "--vocabulary", "600", "--sizes.d_model", "16", "--sizes.d_ff", "16", "--sizes.layers", "1", "--out",
        str(folder / "t5")
    ]  # fmt: skip
    main(["--corpus", str(folder / "fid.json"), "--layout", "fid", *sizes])
    return folder / "fid.json", ReRagTrainer(None, str(folder / "t5"), max_tokens=128).load()


def texts(data, epoch: int) -> list[tuple[str, ...]]:
    sets = [data.draws.draw(one, 5, "sampled", epoch) for one in data.questions]
    return [(one.question.text, one.answer, *(p.text for p in one.passages)) for one in sets]


def test_words_are_swapped_anew_in_every_epoch_of_training_alone(reader: tuple[Path, ReRagTrainer]) -> None:
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


def test_two_ranks_share_the_batch_of_one(reader: tuple[Path, ReRagTrainer]) -> None:
    options = {"word_swaps": 0.5, "substitution": 1.0, "crop_words": 4, "crop_growth_words": 2}

    def rows(ranks: int, rank: int) -> list[set[tuple[int, ...]]]:
        """Per step, what each row says: tokens without padding."""
        data = context_data(*reader, ranks, rank, **options)
        steps = [[(b.ids_MT, b.attention_MT) for b in batch.buckets] for batch in data.train_dataloader()]
        return [
            {tuple(i[a.bool()].tolist()) for ids, at in step for i, a in zip(ids, at, strict=True)} for step in steps
        ]

    one, two = rows(1, 0), [rows(2, rank) for rank in range(2)]
    assert len(one) == len(two[0]) == len(two[1]) > 1
    for step, (whole, first, second) in enumerate(zip(one, *two, strict=True)):
        assert first | second == whole, step
        assert not first & second


def test_windows_grow_with_the_epochs(reader: tuple[Path, ReRagTrainer]) -> None:
    data = context_data(*reader, crop_words=3, crop_growth_words=2)
    whole = context_data(*reader)
    for epoch in (0, 1, 3):
        for one, full in zip(texts(data, epoch), texts(whole, epoch), strict=True):
            assert one[:2] == full[:2]
            for cut, text in zip(one[2:], full[2:], strict=True):
                assert len(cut.split()) == min(3 + 2 * epoch, len(text.split()))
                assert cut in text
    assert list(data.validation_sets) == list(whole.validation_sets)
