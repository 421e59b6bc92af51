"""The synthetic world: whole, unambiguous, not flattering; its files, and the command that writes them."""

import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import exit_code
from common.files import digests
from datamodules.formats.reading import read_passages, read_questions
from datamodules.world.__main__ import main
from datamodules.world.phrases import SPLITS
from datamodules.world.questions import contains
from datamodules.world.world import SPLIT_SHARES, World, WorldConfig, generate
from tests.helpers.small_world import SMALL

PARTS = (*SPLITS, "web")


def asked(world: World, split: str, kinds: tuple[str, ...] = ()) -> list:
    groups = (world.questions, world.singles, world.open_singles)
    every = [shipped.generated for group in groups for shipped in group[split]]
    return [one for one in every if not kinds or one.kind in kinds]


def test_splits_share_no_answer_and_no_entity(world) -> None:
    answers = [{one.answer.casefold() for one in asked(world, split)} - {"yes", "no"} for split in PARTS]
    names = [{e.name.casefold() for e in world.entities[split]} for split in PARTS]
    for sets in (answers, names):
        assert sum(map(len, sets)) == len(set.union(*sets))
    for split in PARTS:
        for one in asked(world, split):
            assert {step.entity.split for step in one.steps} == {split}


def test_answers_stand_in_the_last_gold_passage_and_nowhere_on_the_way(world) -> None:
    for split in PARTS:
        for one in asked(world, split):
            if one.answer in ("yes", "no"):
                continue
            texts = [f"{world.passages[s.entity].title}. {world.passages[s.entity].text}" for s in one.steps]
            assert contains(texts[-1], one.answer)
            if one.kind != "comparison_name":
                assert not contains(one.question, one.answer)
                assert not any(contains(text, one.answer) for text in texts[:-1])


def test_chains_are_followed_through_facts_and_hide_their_bridges(world) -> None:
    for split in PARTS:
        for one in asked(world, split, ("single", "bridge", "bridge3", "bridge4")):
            assert len(one.steps) == {"single": 1, "bridge": 2, "bridge3": 3, "bridge4": 4}[one.kind]
            for step, following in zip(one.steps, one.steps[1:], strict=False):
                assert step.entity.facts[step.relation] is following.entity
                assert not any(contains(one.question, w) for w in following.entity.name.split() if w != "The")
                assert contains(world.passages[step.entity].text, following.entity.name)
            said = one.steps[-1].entity.facts[one.steps[-1].relation]
            assert (said if isinstance(said, str) else said.name) == one.answer


def test_comparisons_are_right(world) -> None:
    for one in asked(world, "train", ("comparison_name", "comparison_fact")):
        loser, winner = (int(step.answer) for step in one.steps)
        assert loser != winner
        earlier = re.search(r"earlier|older|first", one.question, re.IGNORECASE)
        later = re.search(r"later|newer|younger|last", one.question, re.IGNORECASE)
        if earlier or later:  # a slip of the finger may have hit the word
            assert (winner < loser) == bool(earlier)
    for one in asked(world, "test", ("comparison_same",)):
        first, second = (step.entity.facts[step.relation] for step in one.steps)
        assert (first is second) == (one.answer == "yes")


def test_a_reader_without_contexts_cannot_score() -> None:
    world = generate(WorldConfig(singles=0, open_singles=0, web_questions=2))
    questions = [shipped.generated for shipped in world.questions["test"]]
    assert len(questions) >= 400
    share = Counter(one.kind for one in questions)
    guessable = 0.5 * (share["comparison_same"] + share["comparison_name"]) / len(questions)
    answers = Counter(one.answer for one in questions if one.answer not in ("yes", "no"))
    assert answers.most_common(1)[0][1] / len(questions) < 0.02
    assert guessable < 0.04
    said = Counter(one.answer for one in questions if one.kind == "comparison_same")
    assert abs(said["yes"] - said["no"]) <= 1


def test_the_files_are_recorded_and_another_seed_has_other_names(folder) -> None:
    record = json.loads((folder / "world.json").read_text())
    assert {**record["sha256"], "world.json": digests(folder)["world.json"]} == digests(folder)
    few = WorldConfig(questions=50, singles=10, web_questions=2, manuals=0)
    worlds = [generate(replace(few, seed=seed)) for seed in (3, 4)]
    names = [{e.name for group in world.entities.values() for e in group} for world in worlds]
    assert len(names[0] & names[1]) < 0.01 * len(names[0])


def test_gold_passages_lie_in_the_corpus_or_only_in_the_web_and_hold_the_answers(folder) -> None:
    corpus = {p.id for p in read_passages("jsonl", [str(folder / "corpus.jsonl")])}
    web = {p.id for p in read_passages("jsonl", [str(folder / "web_corpus.jsonl")])}
    record = json.loads((folder / "world.json").read_text())
    assert (len(corpus), len(web)) == (record["passages"]["corpus"], record["passages"]["web_corpus"])
    assert not corpus & web
    for name in (*SPLITS, "test_web"):
        for question in read_questions("hotpotqa", str(folder / f"{name}.json")):
            if name == "test_web":
                assert set(question.support) <= web
            else:
                assert {p.id for p in question.passages} <= corpus
                assert not question.gold.titles
            assert len(question.passages) == 10
            said = [contains(each.text, question.answers[0]) for each in question.gold_passages]
            assert any(said) or question.kind.startswith("comparison")
    fid = json.loads((folder / "fid_test.json").read_text())
    assert len(fid) == round(0.28 * SMALL.singles)
    assert len(list(read_questions("fid", str(folder / "fid_test.json")))) == len(fid)
    assert all(any(c["isgold"] and c["hasanswer"] for c in row["ctxs"]) for row in fid)


@pytest.mark.parametrize("split", SPLITS)
def test_every_other_open_question_has_no_context_with_its_answer(folder, split) -> None:
    rows = json.loads((folder / f"fid_{split}_open.json").read_text())
    record = json.loads((folder / "world.json").read_text())
    assert len(rows) == record["open_single_hop_questions"][split] == round(SPLIT_SHARES[split] * SMALL.open_singles)
    for number, row in enumerate(rows):
        answer, gold = row["answers"][0], [c for c in row["ctxs"] if c["isgold"]]
        holding = [c for c in row["ctxs"] if contains(f"{c['title']}. {c['text']}", answer)]
        assert all(contains(c["text"], answer) == c["hasanswer"] for c in row["ctxs"])
        if number % 2 == 0:
            assert len(gold) == 1
            assert gold[0] in holding
        else:
            assert holding == gold == []
            assert len(row["ctxs"]) >= 5
    for question in list(read_questions("fid", str(folder / f"fid_{split}_open.json")))[1::2]:
        assert question.support == question.gold.titles == ()
    closed = json.loads((folder / f"fid_{split}.json").read_text())
    assert not {row["question"] for row in rows} & {row["question"] for row in closed}


def test_the_command_refuses_what_it_cannot_do(tmp_path, capsys) -> None:
    def run(folder: Path, *options: str) -> int:
        return exit_code("world", lambda: main(["--out", str(folder), *options]))

    (tmp_path / "mine.txt").write_text("precious")
    assert run(tmp_path, "--questions", "50") != 0
    assert "exists and is not a world" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(SystemExit, match="2"):
        run(tmp_path / "new", "--questions", "3")
    assert "questions: Not of type AtLeast50" in capsys.readouterr().err
    assert run(tmp_path / "new", "--questions", "50", "--singles", "20", "--web_questions", "4") == 0
    assert run(tmp_path / "new", "--questions", "60", "--singles", "20", "--open_singles", "9") == 0
    recipe = json.loads((tmp_path / "new" / "world.json").read_text())["recipe"]
    assert (recipe["questions"], recipe["singles"], recipe["open_singles"]) == (60, 20, 9)


HELD = Path(__file__).with_name("every_file.json")
ALL = ("--library", "true", "--mixed", "60")  # as in scripts/quickstart.sh


def by_entry(folder: Path) -> dict[str, str]:
    """The sha256 of every file in a world; of a folder in it that of the names and digests of its files."""
    record = json.loads((folder / "world.json").read_text())
    del record["sha256"]
    found = {"world.json": hashlib.sha256(json.dumps(record).encode()).hexdigest()}
    inside: dict[str, list[str]] = {}
    for name, digest in digests(folder).items():
        entry, _, rest = name.rpartition("/")
        if entry:
            inside.setdefault(entry, []).append(f"{rest} {digest}\n")
        elif name != "world.json":
            found[name] = digest
    return found | {name: hashlib.sha256("".join(sorted(rows)).encode()).hexdigest() for name, rows in inside.items()}


@pytest.mark.whole_run
def test_no_byte_moves(tmp_path: Path) -> None:
    main(["--out", str(tmp_path / "out"), "--seed", "0", *ALL])
    assert by_entry(tmp_path / "out") == json.loads(HELD.read_text())
