"""Generated files at the data sets' sizes.

Read as the layouts they are in, answers in gold passages, shapes of the real files.
"""

import json
from pathlib import Path
from statistics import fmean, median

import numpy as np
import pytest

from benchmarks.full_scale.generate import main
from benchmarks.full_scale.passages import (
    ANSWER_SHARE,
    NAMES,
    TOPIC_PASSAGES,
    Paragraphs,
    Passages,
    answer_name,
    name,
)
from benchmarks.full_scale.rows import CONTEXTS, CORPUS_PASSAGES, ROWS, Size, aliases, rows
from benchmarks.full_scale.words import vocabulary
from common.answer_metrics import has_answer
from common.errors import UserError
from datamodules.formats.reading import read_passages, read_questions


def write(folder: Path, data: str, share: float, *more: str) -> Path:
    main(["--data", data, "--share", str(share), "--out", str(out := folder / f"{data}.json"), *more])
    return out


def test_hotpotqa_has_ten_paragraphs_two_of_them_gold_and_the_answer_in_one(tmp_path: Path) -> None:
    questions = list(read_questions("hotpotqa", str(write(tmp_path, "hotpotqa", 0.002))))
    assert len(questions) == round(0.002 * 90_447)
    assert len({question.id for question in questions}) == len(questions)
    for question in questions:
        assert (len(question.passages), len(question.support)) == (10, 2)
        (answer,) = question.answers
        assert answer in ("yes", "no") or any(answer in f"{gold.title} {gold.text}" for gold in question.gold)
        if question.kind == "bridge":
            one, other = sorted(question.gold, key=lambda passage: passage.title not in question.text)
            assert one.title in question.text
            assert other.title in one.text
            assert other.title not in question.text
    yes_or_no = fmean(question.answers[0] in ("yes", "no") for question in questions)
    assert yes_or_no == pytest.approx(0.06, abs=0.06)
    assert fmean(question.kind == "bridge" for question in questions) == pytest.approx(0.81, abs=0.12)
    words = [len(passage.text.split()) for question in questions for passage in question.passages]
    assert median(words) == pytest.approx(80, abs=8)  # of the real train file


@pytest.mark.parametrize(("data", "answers"), [("nq", 1.7), ("triviaqa", 12.5)])
def test_fid_files_have_a_hundred_scored_contexts_some_with_an_answer(
    tmp_path: Path, data: str, answers: float
) -> None:
    file = write(tmp_path, data, 0.0005)
    questions = list(read_questions("fid", str(file)))
    assert len(questions) == round(0.0005 * ROWS[data]["train"])
    for question in questions:
        assert len(question.passages) == len({passage.id for passage in question.passages}) == CONTEXTS
        assert len(set(question.answers)) == len(question.answers)
    assert fmean(len(question.answers) for question in questions) == pytest.approx(answers, rel=0.35)
    assert fmean(bool(question.support) for question in questions) == pytest.approx(0.88, abs=0.12)
    assert 4 < fmean(len(question.support) for question in questions) < 12
    for row in json.loads(file.read_text()):
        assert row["target"] == row["answers"][0]
        scores = [float(context["score"]) for context in row["ctxs"]]
        assert scores == sorted(scores, reverse=True)


def test_other_splits_have_other_questions_and_no_target(tmp_path: Path) -> None:
    train, dev = (json.loads(write(tmp_path, "nq", 0.0005, "--split", split).read_text()) for split in ("train", "dev"))
    assert not {row["question"] for row in train} & {row["question"] for row in dev}
    assert all("target" not in row for row in dev)


def test_contexts_are_passages_of_the_corpus_of_the_same_share() -> None:
    share = 0.0002
    corpus = {row["id"]: row for row in rows(Size("corpus", share=share))}
    assert len(corpus) == round(share * CORPUS_PASSAGES)
    for row in rows(Size("nq", share=share)):
        for context in row["ctxs"]:
            assert {key: context[key] for key in ("id", "title", "text")} == corpus[context["id"]]


def test_a_corpus_is_read_as_passages_of_a_hundred_words_in_articles_of_four(tmp_path: Path) -> None:
    passages = list(read_passages("jsonl", [str(write(tmp_path, "corpus", 0.0001))]))
    assert len(passages) == round(0.0001 * CORPUS_PASSAGES)
    assert {len(passage.text.split()) for passage in passages} == {100}
    assert len({passage.title for passage in passages}) == -(-len(passages) // 4)


def test_passages_say_whether_they_have_the_topics_answer() -> None:
    passages = Passages(3, 10_000)
    numbers = np.arange(5 * TOPIC_PASSAGES)
    told = passages.has_answer(numbers)
    written = passages.write(numbers.tolist())
    for topic in range(5):
        mine = slice(topic * TOPIC_PASSAGES, (topic + 1) * TOPIC_PASSAGES)
        found = [has_answer(row["text"], (answer_name(3, topic),)) for row in written[mine]]
        assert found == told[mine].tolist()
    assert told.mean() == pytest.approx(ANSWER_SHARE, abs=0.12)


def test_the_same_arguments_write_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    first = write(tmp_path, "hotpotqa", 0.0002).read_bytes()
    assert write(tmp_path, "hotpotqa", 0.0002).read_bytes() == first
    assert write(tmp_path, "hotpotqa", 0.0002, "--seed", "1").read_bytes() != first


def test_a_passage_is_the_same_in_whatever_company_it_is_written() -> None:
    passages, paragraphs = Passages(0, 1000), Paragraphs(0, 1000)
    assert passages.write([5, 900, 7])[1:] == passages.write([900, 7])
    assert paragraphs.write([5, 900, 7])[1:] == paragraphs.write([900, 7])


def test_words_and_names_are_distinct() -> None:
    assert len(set(vocabulary())) == len(vocabulary())
    some = range(0, NAMES, 997)
    assert len({name(number) for number in some}) == len(some)


def test_frequencies_are_zipfs() -> None:
    words = [word for row in Passages(0, 10**6).write(range(0, 10**6, 500)) for word in row["text"].lower().split()]
    assert words.count("the") / len(words) == pytest.approx(0.058, rel=0.15)  # as in HotpotQA's paragraphs


@pytest.mark.parametrize("count", [1, 2, 7, 8, 96])
def test_as_many_different_aliases_as_asked(count: int) -> None:
    assert len(set(aliases("Clara Alderbrook River", count))) == count


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "nq", "--share", "0"], "--share 0.0: give a number above 0, at most 1."),
        (["--data", "nq", "--share", "1.5"], "--share 1.5"),
        (["--data", "corpus", "--split", "dev"], "--split dev: corpus has only train."),
    ],
)
def test_refusals(tmp_path: Path, options: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        main([*options, "--out", str(tmp_path / "file")])
    assert not list(tmp_path.iterdir())
