"""The synthetic world's files.

Repeatable, their layouts agree, gold where it belongs, and the command that writes them.
"""

import json
from pathlib import Path

import pytest

from common.errors import exit_code
from common.files import digests
from datamodules.formats.reading import read_passages, read_questions
from datamodules.world.__main__ import main
from datamodules.world.phrases import SPLITS
from datamodules.world.questions import contains
from datamodules.world.world import SPLIT_SHARES, WorldConfig, generate
from datamodules.world.writing import write_world
from tests.helpers.small_world import REPHRASED, SMALL


def test_same_seed_same_bytes_and_another_seed_other_names(folder: Path, tmp_path: Path) -> None:
    write_world(REPHRASED, tmp_path / "again")
    assert digests(tmp_path / "again") == digests(folder)
    record = json.loads((folder / "world.json").read_text())
    assert {**record["sha256"], "world.json": digests(folder)["world.json"]} == digests(folder)
    other = generate(WorldConfig(seed=4, questions=50, singles=10, web_questions=2, manuals=0))
    own = generate(WorldConfig(seed=3, questions=50, singles=10, web_questions=2, manuals=0))
    names = [{e.name for group in w.entities.values() for e in group} for w in (own, other)]
    assert len(names[0] & names[1]) < 0.01 * len(names[0])


def test_gold_passages_lie_in_the_corpus_or_only_in_the_web(folder: Path) -> None:
    corpus = {p.id for p in read_passages("jsonl", [str(folder / "corpus.jsonl")])}
    web = {p.id for p in read_passages("jsonl", [str(folder / "web_corpus.jsonl")])}
    record = json.loads((folder / "world.json").read_text())
    assert (len(corpus), len(web)) == (record["passages"]["corpus"], record["passages"]["web_corpus"])
    assert not corpus & web
    for name in SPLITS:
        for question in read_questions("hotpotqa", str(folder / f"{name}.json")):
            assert {p.id for p in question.passages} <= corpus
            assert not question.gold.titles
    for question in read_questions("hotpotqa", str(folder / "test_web.json")):
        assert set(question.support) <= web


def test_contexts_hold_the_answers(folder: Path) -> None:
    for name in (*SPLITS, "test_web"):
        for question in read_questions("hotpotqa", str(folder / f"{name}.json")):
            assert len(question.passages) == 10
            said = [contains(each.text, question.answers[0]) for each in question.gold_passages]
            assert any(said) or question.kind.startswith("comparison")
    fid = json.loads((folder / "fid_test.json").read_text())
    assert len(fid) == round(0.28 * SMALL.singles)
    assert len(list(read_questions("fid", str(folder / "fid_test.json")))) == len(fid)
    assert all(any(c["isgold"] and c["hasanswer"] for c in row["ctxs"]) for row in fid)


@pytest.mark.parametrize("split", SPLITS)
def test_every_other_open_question_has_no_context_with_its_answer(folder: Path, split: str) -> None:
    rows = json.loads((folder / f"fid_{split}_open.json").read_text())
    record = json.loads((folder / "world.json").read_text())
    assert len(rows) == record["open_single_hop_questions"][split] == round(SPLIT_SHARES[split] * SMALL.open_singles)
    for number, row in enumerate(rows):
        holding = [c for c in row["ctxs"] if contains(f"{c['title']}. {c['text']}", row["answers"][0])]
        assert [c for c in row["ctxs"] if contains(c["text"], row["answers"][0])] == [
            c for c in row["ctxs"] if c["hasanswer"]
        ]
        gold = [c for c in row["ctxs"] if c["isgold"]]
        if number % 2 == 0:
            assert len(gold) == 1
            assert gold[0] in holding
        else:
            assert not holding
            assert not gold
            assert len(row["ctxs"]) >= 5
    for question in list(read_questions("fid", str(folder / f"fid_{split}_open.json")))[1::2]:
        assert question.support == question.gold.titles == ()
    closed = json.loads((folder / f"fid_{split}.json").read_text())
    assert not {row["question"] for row in rows} & {row["question"] for row in closed}


def test_the_command_refuses_what_it_cannot_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
