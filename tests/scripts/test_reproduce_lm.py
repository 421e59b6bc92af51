"""`make reproduce-lm`: the order of its stages and what it refuses, its samples, halves and rankings by hand."""

import hashlib
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from common.errors import DataError, MissingInputError, UserError
from common.records import Passage
from harness.retrievers import question_passages
from scripts.reproduce_lm import contexts, one_corpus, ranking, sample, weights
from tests.docs.documents import commands_of
from tests.helpers.runs import ROOT

Run = Callable[..., str]
ALL = ["qg", "estimator", "lm-estimator", "joint", "lm-reader", "crossfit", "one-corpus", "rewriter-dialogues",
    "rewriter-queries", "drrag-classifier", "drrag-reader", "packed-reader",
    "hiqa-documents", "hiqa-reader"]  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The driver with stages that write down their names; `joint` fails while there is a file `broken`."""
    stages = tmp_path / "scripts/reproduce_lm"
    stages.mkdir(parents=True)
    shutil.copy(ROOT / "scripts/reproduce_lm.sh", tmp_path / "scripts")
    for name in ALL:
        fails = "[ ! -f broken ] || exit 70\n" if name == "joint" else ""
        (stages / f"{name}.sh").write_text(f'{fails}echo "$LM $DATA {name}" >> ran\n')
    (tmp_path / "python").write_text('#!/usr/bin/env bash\necho "digest-of-$3"\n')
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "data").mkdir()
    return tmp_path


def start(place: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """Run the driver."""
    typed, environment = ["bash", "scripts/reproduce_lm.sh"], {**os.environ, "PYTHON": "./python", **given}
    return subprocess.run(typed, cwd=place, capture_output=True, text=True, timeout=60, env=environment)


def test_stages_run_in_order_and_a_stopped_one_goes_on(place: Path) -> None:
    assert {each.stem for each in (ROOT / "scripts/reproduce_lm").glob("*.sh")} <= set(ALL)
    (place / "broken").touch()
    assert start(place).returncode == 70
    assert (place / "ran").read_text().splitlines() == [f"google/gemma-3-270m data {name}" for name in ALL[:3]]
    (place / "broken").unlink()
    again = start(place)
    assert again.returncode == 0, again.stderr
    assert (place / "ran").read_text().splitlines() == [f"google/gemma-3-270m data {name}" for name in ALL]
    assert "LM google/gemma-3-270m, sha256 of its weights digest-of-google/gemma-3-270m" in again.stdout
    assert sorted(each.name for each in (place / "reports/lm-stages").iterdir()) == sorted(ALL)


def test_one_stage_alone_and_mistakes_in_one_line(place: Path) -> None:
    assert start(place, STAGE="drrag-reader", LM="folder", DATA="scripts").returncode == 0
    for given, code, message in (
        ({"STAGE": "read"}, 2, f"STAGE=read is no stage; there are: {' '.join(ALL)}."),
        ({"DATA": "elsewhere"}, 66, "DATA=elsewhere is no folder: give the folder of the official files."),
        ({"STAGE": "drrag-reader", "LM": "other"}, 65, "reports/lm-stages/drrag-reader is of another LM: remove "),
    ):
        refused = start(place, **given)
        assert (refused.returncode, refused.stderr.count("\n")) == (code, 1)
        assert refused.stderr.startswith(f"reproduce-lm: {message}")
    assert (place / "ran").read_text() == "folder scripts drrag-reader\n"


@pytest.mark.parametrize("stage", ["crossfit", "one-corpus"])
def test_each_half_is_ranked_by_the_estimator_that_was_trained_on_the_other(stage: str, tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    held: dict[str, tuple[str, int]] = {}  # file -> its questions, and which half of them
    trained: dict[str, tuple[str, int]] = {}  # serving folder -> the same of its training file
    ranked: list[list[tuple[str, int]]] = []  # by system
    for words in commands_of(f"reproduce_lm/{stage}.sh", [], tmp_path):
        given = dict(itertools.pairwise(words))  # option -> value
        if "scripts.reproduce_lm.contexts" in words:
            held[given["--out"]] = "nq", int(given["--half"])
        elif "scripts.reproduce_lm.one_corpus" in words:
            for half, name in itertools.product((0, 1), ("half", "train")):
                held[f"{given['--out']}/{name}-{half}.jsonl"] = given["--out"], half
        elif words[:2] == ["train.py", "fit"]:
            (file,) = yaml.safe_load(given["--data.train"])
            serving = f"checkpoints/{given['--name']}/serving"
            assert serving not in trained  # the second would be skipped
            trained[serving] = held[file["path"]]
        elif "scripts.reproduce_lm.ranking" in words:
            for word in words:
                if word == "--system":
                    ranked.append([])
                elif "=" in word:
                    serving, _, path = word.rpartition("=")
                    questions, half = held[path]
                    assert trained[serving] == (questions, 1 - half)
                    ranked[-1].append((questions, half))
    assert ranked
    assert all({*own} == {(own[0][0], 0), (own[0][0], 1)} for own in ranked)


def test_weights_are_named_by_their_digest(tmp_path: Path, run: Run) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(MissingInputError, match=r"holds no \*\.safetensors"):
        run(weights, tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    assert run(weights, tmp_path).strip() == hashlib.sha256(b"weights").hexdigest()


def test_a_sample_depends_on_the_rows_alone(tmp_path: Path, run: Run) -> None:
    rows = [{"id": number, "text": f"ä {number}"} for number in range(20)]
    (tmp_path / "list.json").write_text(json.dumps(rows))
    write(tmp_path / "lines.jsonl", [*rows[::-1], rows[3]])
    texts = {row["id"]: json.dumps(row, ensure_ascii=False).encode() for row in rows}
    drawn = sorted(rows, key=lambda row: hashlib.sha256(texts[row["id"]]).hexdigest())
    for file, (first, second) in (("list.json", (5, 3)), ("lines.jsonl", (7, 13))):
        run(sample, tmp_path / file, "--parts", f"{tmp_path}/a={first}", f"{tmp_path}/b={second}")
        assert (read(tmp_path / "a"), read(tmp_path / "b")) == (drawn[:first], drawn[first : first + second])
    with pytest.raises(DataError, match=r"has 20 different rows, and the parts take 21\."):
        run(sample, tmp_path / "list.json", "--parts", f"{tmp_path}/new=21")
    with pytest.raises(UserError, match="--parts new: give OUT=COUNT"):
        run(sample, tmp_path / "list.json", "--parts", "new")
    assert not (tmp_path / "new").exists()


def write(file: Path, rows: list[dict]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def read(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def row(number: int) -> dict:
    """A question whose gold passage stands first, of whose passages each has one word of it more than the next."""
    words = [f"word{number}{place}" for place in range(4)]
    ctxs = [
        {"title": f"t{place}", "text": " ".join(words[place:]) + " other words", "isgold": not place,
            "hasanswer": not place, "score": place}
        for place in range(4)
    ]  # fmt: skip
    return {"question": " ".join(words), "answers": ["a"], "ctxs": ctxs}


@pytest.mark.numeric
def test_contexts_are_bm25s_first_or_in_an_order_that_no_file_gives(tmp_path: Path, run: Run) -> None:
    rows = [row(number) for number in range(12)]
    files = [write(tmp_path / "one.jsonl", rows[:5])]
    files += [write(tmp_path / "two.jsonl", [{**each, "ctxs": each["ctxs"][::-1]} for each in rows[5:]])]

    def written(files: list[str], *options: str) -> list[dict]:
        run(contexts, *files, "--out", tmp_path / "out", *options)
        return read(tmp_path / "out")

    best, whole = written(files, "--best", "2"), written(files)
    assert [[each["title"] for each in one["ctxs"]] for one in best] == [["t0", "t1"]] * 12
    assert all("score" not in each for one in whole for each in one["ctxs"])
    assert len({[each["isgold"] for each in one["ctxs"]].index(True) for one in whole}) > 2
    assert sorted(map(str, written(files[::-1]))) == sorted(map(str, whole))
    halves = [written(files, "--half", half) for half in "01"]
    assert all(halves)
    assert sorted(map(str, halves[0] + halves[1])) == sorted(map(str, whole))


def test_each_question_has_bm25s_first_of_all_passages_and_of_both_kinds(tmp_path: Path, run: Run) -> None:
    rows = [
        {
            "question": f"where is thing{number}", "answers": [f"town{number}", "on"],
            "ctxs": [{"title": "", "text": f"thing{number} thing{number} is rare"},
                {"title": "", "text": f"thing{number} lies in town{number}"}],
        }
        for number in range(30)
    ]  # fmt: skip
    rows += [
        {"question": "Where is thing3?", "answers": ["town3"], "ctxs": []},  # asked before
        {"question": "is thing4 rare", "answers": ["yes", "no"], "ctxs": []},  # answers that say nothing
        {"question": "where is thing5 again", "answers": ["nowhere"], "ctxs": []},  # no passage holds it
    ]
    printed = run(one_corpus, "fid", write(tmp_path / "in.jsonl", rows), "--out", tmp_path / "out")
    found = {file.stem: read(file) for file in (tmp_path / "out").iterdir()}
    halves = [{each["question"] for each in found[f"half-{half}"]} for half in (0, 1)]
    assert halves[0] | halves[1] == {f"where is thing{number}" for number in range(30)}
    assert all(halves)
    assert not halves[0] & halves[1]
    for each in found["half-0"]:
        assert each["answers"] == [each["question"].replace("where is thing", "town")]  # "on" is too short
        scores = [passage["score"] for passage in each["ctxs"]]
        assert scores == sorted(scores, reverse=True)
        assert [passage["hasanswer"] for passage in each["ctxs"]] == [False, True] + 18 * [False]
    assert found["train-0"] == [{**each, "ctxs": each["ctxs"][:10]} for each in found["half-0"]]
    assert "60 distinct passages, 32 questions" in printed
    assert "32 answers, 1 questions without an answer, 1 questions whose passages are all of one kind" in printed
    assert "30 questions, R@1 of BM25 0.0, of chance 5.0" in printed


class TitleScorer:
    """Scores a passage by the number in its title: the gold one, t0, is the best, or with `worst` the last."""

    def __init__(self, name: str) -> None:
        self.sign = 1 if name == "worst" else -1

    def scores(self, pairs: list[tuple[str, Passage]]) -> list[float]:
        """The scores."""
        return [self.sign * float(passage.title[1:]) for _, passage in pairs]


@pytest.mark.numeric
def test_seeds_are_averaged_and_halves_joined(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = write(tmp_path / "a", [row(0), row(1)]), write(tmp_path / "b", [row(2)])
    monkeypatch.setattr(ranking, "load_scorer", TitleScorer)
    monkeypatch.setattr("harness.indexing.sentence_encoder.SentenceEncoder", lambda name: name)
    monkeypatch.setattr(question_passages, "cosines", lambda pooled, _: [np.arange(4.0)] * len(pooled))  # gold is last
    pairs = {
        "best": [("best", one), ("best", other)],
        "seeds": [("best", one), ("worst", one), ("best", other), ("best", other)],
        "worst": [("worst", one), ("worst", other)],
    }
    typed = [["--system", name, *(f"{part}={file}" for part, file in own)] for name, own in pairs.items()]
    lines = run(ranking, *itertools.chain(*typed)).splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    untrained = ["BM25", "cosine", "BM25 and cosine", "the file's order"]
    assert head == ["3 questions, chance 25.0", "R@1", "R@5", "MRR", *(f"R@1 - {each}" for each in untrained)]
    means = {
        name: [float(cell.strip("*").split("*")[0].split(" ")[0]) for cell in cells]
        for name, *cells in rows
        if cells[1]
    }
    assert means["best"] == means["best, another question"] == [100, 100, 100, 0, 100, 0, 100]
    assert means["BM25"] == [100, 100, 100, 0, 100, 0, 100]
    assert means["cosine"] == means["worst"] == [0, 100, 25, -100, 0, -100, 0]
    assert means["seeds"][:5] == pytest.approx([66.7, 100, (0.625 + 0.625 + 1) * 100 / 3, -33.3, 66.7], abs=0.06)
    for system, said in ((["other", f"best={one}"], "other has other files"), (["best", one], "best: give SERVING")):
        with pytest.raises(UserError, match=f"--system {said}"):
            run(ranking, *typed[0], "--system", *system)
