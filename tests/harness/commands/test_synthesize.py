"""`infer.py synthesize`: layouts that training reads, reasons, splits, and a run after a kill."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from common.chat import Chat, Reply
from common.errors import SomeFailedError, UnavailableError
from common.files import digests
from datamodules.examples.triples import Sampling, draw
from datamodules.formats.reading import read_questions
from harness.commands.synthesize import synthesize
from harness.synthesis import pipeline
from harness.synthesis.drafts import Draft, DraftTask
from harness.synthesis.llm_writer import LlmWriter
from tests.helpers.commands import command
from tests.helpers.people_corpus import (
    BY_TITLE,
    CORPUS,
    GUESSED,
    MISREAD,
    PEOPLE,
    TOLD,
    TOWNS,
    asked_about,
    linked,
    write_corpus,
)

WHOLE = ("--validation_share", "0", "--test_share", "0")


def arguments(folder: Path, *more: str) -> list[str]:
    """Of a synthesis from the corpus, which is written into `folder`."""
    write_corpus(folder / "corpus.jsonl")
    return [
        "synthesize", "--corpus", "corpus.jsonl", "--out", "synthetic",
        "--llm", "tests.helpers.people_corpus.PeopleLlm", "--limit", "null", "--contexts", "6", *more,
    ]  # fmt: skip


def manifest(folder: Path) -> dict:
    return json.loads((folder / "synthetic/synthesis.json").read_text())


def test_two_hop_questions_train_a_classifier_of_pairs(tmp_path: Path) -> None:
    ended = command(tmp_path, "infer.py", *arguments(tmp_path, *WHOLE))
    assert ended.code == 0, ended.err
    found = {question.text: question for question in read_questions("hotpotqa", str(tmp_path / "synthetic/train.json"))}
    expected = {
        linked(name, what): (name, town, answer)
        for name, town in PEOPLE.items()
        if name not in (MISREAD, GUESSED)
        for what, answer in zip(("river", "mayor"), TOWNS[town], strict=True)
    }
    assert found.keys() == expected.keys()
    for text, (name, town, answer) in expected.items():
        question = found[text]
        assert question.answers == (answer,)
        assert set(question.support) == {BY_TITLE[name].id, BY_TITLE[town].id}
        assert len(question.passages) == 6
        assert {passage.id for passage in question.passages} <= {passage.id for passage in CORPUS}
        assert any(triple.positive for triple in draw(question, (), Sampling(), 0, 0))
    rows = json.loads((tmp_path / "synthetic/train.json").read_text())
    row = next(row for row in rows if row["question"] == linked("Ann", "mayor"))
    assert sorted(row["supporting_facts"]) == [["Ann", 0], ["Rome", 1]]  # sentences
    counts = manifest(tmp_path)["splits"]["train"]
    assert counts["drafts"] == 12
    assert {name: count for name, count in counts["dropped"].items() if count} == {
        "wrong_answer": 2, "one_passage_is_enough": 2,
    }  # fmt: skip
    assert "one of two passages alone" in ended.out
    assert not (tmp_path / "synthetic.partial").exists()


def test_single_hop_questions_have_ranked_contexts(tmp_path: Path) -> None:
    ended = command(tmp_path, "infer.py", *arguments(tmp_path, *WHOLE, "--out_layout", "fid"))
    assert ended.code == 0, ended.err
    found = {question.text: question for question in read_questions("fid", str(tmp_path / "synthetic/train.json"))}
    people = [name for name in PEOPLE if name not in (MISREAD, TOLD)]
    assert found.keys() == {asked_about(name) for name in people} | {
        f"What is the {what} of {town} ?" for town in TOWNS for what in ("river", "mayor")
    }
    question = found[asked_about("Ann")]
    assert question.support == (BY_TITLE["Ann"].id,)
    assert question.scores == tuple(sorted(question.scores, reverse=True))  # as BM25 ranks them
    dropped = manifest(tmp_path)["splits"]["train"]["dropped"]
    assert (dropped["answer_in_question"], dropped["wrong_answer"]) == (1, 1)
    examples = manifest(tmp_path)["examples_of_dropped"]["train"]
    assert examples["answer_in_question"] == [{"question": asked_about(TOLD), "answer": PEOPLE[TOLD], "titles": [TOLD]}]


def test_no_split_shares_a_passage(tmp_path: Path) -> None:
    more = ("--out_layout", "fid", "--validation_share", "0.3", "--test_share", "0.3", "--contexts", "2")
    assert command(tmp_path, "infer.py", *arguments(tmp_path, *more)).code == 0
    shipped = [
        {passage.id for question in read_questions("fid", str(file)) for passage in question.passages}
        for file in (tmp_path / f"synthetic/{split}.json" for split in ("train", "validation", "test"))
    ]
    assert all(shipped)
    assert sum(map(len, shipped)) == len(set.union(*shipped))


def test_a_question_that_the_retriever_does_not_find_is_dropped(tmp_path: Path) -> None:
    more = (*WHOLE, "--out_layout", "fid", "--found_within", "1")
    assert command(tmp_path, "infer.py", *arguments(tmp_path, *more)).code == 0
    kept = list(read_questions("fid", str(tmp_path / "synthetic/train.json")))
    assert kept
    assert all(question.passages[0].id in question.support for question in kept)


def test_passages_without_a_title_are_left_out_of_a_layout_that_needs_one(tmp_path: Path) -> None:
    given = arguments(tmp_path, *WHOLE)
    with (tmp_path / "corpus.jsonl").open("a") as file:
        file.write('{"text": "What is the river of the town where Ann lives ?"}\n')  # BM25 finds it for the question
    assert command(tmp_path, "infer.py", *given).code == 0
    found = list(read_questions("hotpotqa", str(tmp_path / "synthetic/train.json")))
    assert len(found) == 8
    assert all(passage.title for question in found for passage in question.passages)


def test_unusual_rows_of_the_corpus_are_said_or_an_error(tmp_path: Path) -> None:
    typed = arguments(tmp_path, *WHOLE)
    with (tmp_path / "corpus.jsonl").open("a") as file:
        file.write('{"title": "", "text": null}\n')
    ended = command(tmp_path, "infer.py", *typed, "--strict", "true")
    assert (ended.code != 0, (tmp_path / "synthetic").exists()) == (True, False)
    assert f"line {len(CORPUS) + 1}: a passage without title and text. Correct it, or omit strict" in ended.err
    ended = command(tmp_path, "infer.py", *typed)
    assert ended.code == 0, ended.err
    assert (
        f"a passage without title and text: 1, left out; the first: corpus.jsonl, line {len(CORPUS) + 1}." in ended.err
    )


def test_the_limit_is_shared_by_the_splits(tmp_path: Path) -> None:
    more = ("--out_layout", "fid", "--validation_share", "0.5", "--test_share", "0", "--limit", "5")
    given = [word for word in arguments(tmp_path) if word not in ("--limit", "null")]
    assert command(tmp_path, "infer.py", *given, *more).code == 0
    assert [manifest(tmp_path)["splits"][split]["questions"] for split in ("train", "validation")] == [3, 2]


def test_an_interrupted_run_resumes_to_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "TASKS_AT_ONCE", 2)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    given = arguments(whole, "--validation_share", "0.3", "--test_share", "0", "--out_layout", "fid")
    arguments(broken)
    assert command(whole, "infer.py", *given).code == 0
    write, calls = LlmWriter.write, [0]

    def stopped(self: LlmWriter, tasks: Sequence[DraftTask]) -> list[Draft]:
        calls[0] += 1
        if calls[0] == 4:
            raise KeyboardInterrupt
        return write(self, tasks)

    monkeypatch.setattr(LlmWriter, "write", stopped)
    ended = command(broken, "infer.py", *given)
    assert ended.code == 130
    assert not (broken / "synthetic").exists()
    lines = (broken / "synthetic.partial/train.jsonl").read_text()
    assert len(lines.splitlines()) == 1 + 3
    (broken / "synthetic.partial/train.jsonl").write_text(lines + '{"batch": 3, "sec')  # as a killed process leaves it
    calls[0] = 10
    assert command(broken, "infer.py", *given).code == 0
    assert digests(broken / "synthetic") == digests(whole / "synthetic")
    batches = sum(-(-split["drafts"] // 2) for split in manifest(whole)["splits"].values())
    assert calls[0] == 10 + batches - 3  # what was finished is not written again


def test_another_seed_asks_other_questions_and_the_same_seed_the_same(tmp_path: Path) -> None:
    found = []
    for seed in ("0", "0", "1"):
        given = arguments(tmp_path, *WHOLE, "--out_layout", "fid", "--per_passage", "1", "--seed", seed)
        assert command(tmp_path, "infer.py", *given).code == 0  # the second replaces the first
        found.append((tmp_path / "synthetic/train.json").read_bytes())
    assert found[0] == found[1] != found[2]


class _Scripted:
    """A language model that says of each title one thing when it writes and one when it answers; counts its replies."""

    name = "scripted"

    def __init__(self, said: dict[str, tuple[str, str]]) -> None:
        self.said, self.replies = said, 0

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        self.replies += len(chats)
        texts = [" ".join(message.content for message in chat.messages) for chat in chats]
        titles = [next(name for name in self.said if f"Title: {name}\n" in text) for text in texts]
        return [Reply(self.said[title]["Answer:" in text]) for title, text in zip(titles, texts, strict=True)]


def test_replies_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    chosen = [BY_TITLE[name] for name in ("Ann", "Cid", "Bonn")]
    model = _Scripted(
        {
            "Ann": ('{"question": "Where does Ann live?", "answer": "Rome"}', "Answer: Rome."),
            "Cid": ('{"question": "Where does Cid live?", "answer": "Bonn"}', "unknown"),
            "Bonn": ("I cannot do that.", ""),
        }
    )
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"title": p.title, "text": p.text}) + "\n" for p in chosen))
    synthesize(
        str(corpus), tmp_path / "synthetic", model, out_layout="fid", per_passage=1, contexts=2, validation_share=0.0,
        test_share=0.0,
    )  # fmt: skip
    (question,) = read_questions("fid", str(tmp_path / "synthetic/train.json"))
    assert (question.text, question.answers) == ("Where does Ann live?", ("Rome",))
    counts = manifest(tmp_path)
    dropped = {reason: count for reason, count in counts["splits"]["train"]["dropped"].items() if count}
    assert dropped == {"unparsable": 1, "wrong_answer": 1}
    assert counts["splits"]["train"]["costs"]["model_calls"] == model.replies == 6  # one reply was asked for again
    assert any("write_question" in fact for fact in counts["facts"])
    assert any("check_question" in fact for fact in counts["facts"])


def test_a_draft_that_fails_does_not_end_the_others(tmp_path: Path) -> None:
    class Fragile(_Scripted):
        def reply(self, chats: Sequence[Chat]) -> list[Reply]:
            if any("Title: Cid\n" in message.content for chat in chats for message in chat.messages):
                raise UnavailableError("the service is down.")
            replies = super().reply(chats)
            return [replace(each, text="", error="HTTP 500") if "lost" in each.text else each for each in replies]

    chosen = [BY_TITLE[name] for name in ("Ann", "Cid", "Bonn")]
    said = {"Ann": ('{"question": "Where does Ann live?", "answer": "Rome"}', "Answer: Rome."), "Bonn": ("lost", "")}
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"title": p.title, "text": p.text}) + "\n" for p in chosen))
    with pytest.raises(SomeFailedError, match="2 of 3 drafts failed: ") as raised:
        synthesize(
            str(corpus), tmp_path / "synthetic", Fragile(said), out_layout="fid", per_passage=1, contexts=2,
            validation_share=0.0, test_share=0.0,
        )  # fmt: skip
    assert "(Cid): the service is down" in str(raised.value)
    assert "(Bonn): HTTP 500" in str(raised.value)
    (question,) = read_questions("fid", str(tmp_path / "synthetic/train.json"))
    assert question.text == "Where does Ann live?"
    assert manifest(tmp_path)["splits"]["train"]["dropped"]["failed"] == 2
