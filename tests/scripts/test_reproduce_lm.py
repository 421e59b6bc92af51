"""`make reproduce-lm`: the order of its stages, what is done, and what it refuses."""

import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.helpers.runs import ROOT

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
    return subprocess.run(
        ["bash", "scripts/reproduce_lm.sh"], cwd=place, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHON": "./python", **given},
    )  # fmt: skip


def ran(place: Path) -> list[str]:
    return (place / "ran").read_text().splitlines() if (place / "ran").exists() else []


def test_stages_run_in_order_and_a_stopped_one_goes_on(place: Path) -> None:
    (place / "broken").touch()
    assert start(place).returncode == 70
    assert ran(place) == [f"google/gemma-3-270m data {name}" for name in ALL[:3]]
    (place / "broken").unlink()
    again = start(place)
    assert again.returncode == 0, again.stderr
    assert ran(place) == [f"google/gemma-3-270m data {name}" for name in ALL]
    assert "LM google/gemma-3-270m, sha256 of its weights digest-of-google/gemma-3-270m" in again.stdout
    assert sorted(each.name for each in (place / "reports/lm-stages").iterdir()) == sorted(ALL)


def test_one_stage_alone(place: Path) -> None:
    (place / "own").mkdir()
    assert start(place, STAGE="drrag-reader", LM="folder", DATA="own").returncode == 0
    assert ran(place) == ["folder own drrag-reader"]


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ({"STAGE": "read"}, 2, f"STAGE=read is no stage; there are: {' '.join(ALL)}."),
        ({"DATA": "elsewhere"}, 66, "DATA=elsewhere is no folder: give the folder of the official files."),
        (
            {"LM": "other"},
            65,
            "reports/lm-stages/qg is of another LM: remove {checkpoints,indexes,reports}/lm-* and data/lm first.",
        ),
    ],
)
def test_a_mistake_is_one_line(place: Path, given: dict[str, str], code: int, message: str) -> None:
    start(place, STAGE="qg")
    refused = start(place, **given)
    assert (refused.returncode, refused.stderr) == (code, f"reproduce-lm: {message}\n")
    assert ran(place) == ["google/gemma-3-270m data qg"]


def test_every_stage_has_a_place_in_the_order() -> None:
    assert {each.stem for each in (ROOT / "scripts/reproduce_lm").glob("*.sh")} <= set(ALL)


@pytest.mark.parametrize("stage", ["crossfit", "one-corpus"])
def test_each_half_is_ranked_by_the_estimator_that_was_trained_on_the_other(stage: str, tmp_path: Path) -> None:
    (tmp_path / "python").write_text('#!/usr/bin/env bash\nprintf "%s\\t" "$@" >> calls\necho >> calls\n')
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "reports").mkdir()
    ended = subprocess.run(
        ["bash", str(ROOT / f"scripts/reproduce_lm/{stage}.sh")], cwd=tmp_path, capture_output=True, text=True,
        timeout=60, env={**os.environ, "PYTHON": "./python", "LM": "lm", "DATA": "data"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    held: dict[str, tuple[str, int]] = {}  # file -> its questions, and which half of them
    trained: dict[str, tuple[str, int]] = {}  # serving folder -> the same of its training file
    ranked: list[list[tuple[str, int]]] = []  # by system
    for line in (tmp_path / "calls").read_text().splitlines():
        words = line.split("\t")[:-1]
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


def run(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"scripts.reproduce_lm.{module}", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_weights_are_named_by_their_digest(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    refused = run("weights", tmp_path)
    assert refused.returncode == 66
    assert refused.stderr.strip().count("\n") == 0
    assert "holds no *.safetensors" in refused.stderr
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    assert run("weights", tmp_path).stdout.strip() == hashlib.sha256(b"weights").hexdigest()


def test_a_sample_depends_on_the_rows_alone(tmp_path: Path) -> None:
    rows = [{"id": number, "text": f"ä {number}"} for number in range(20)]
    (tmp_path / "list.json").write_text(json.dumps(rows))
    (tmp_path / "lines.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in [*rows[::-1], rows[3]]))
    parts = {}
    for file, sizes in (("list.json", (5, 3)), ("lines.jsonl", (7, 13))):
        outs = [tmp_path / f"{file}-{place}" for place in range(2)]
        sampled = run("sample", tmp_path / file, "--parts", *(f"{out}={n}" for out, n in zip(outs, sizes, strict=True)))
        assert sampled.returncode == 0, sampled.stderr
        parts[file] = [[json.loads(line) for line in out.read_text().splitlines()] for out in outs]
    short, long = parts["list.json"][0], parts["lines.jsonl"][0]
    texts = {row["id"]: json.dumps(row, ensure_ascii=False).encode() for row in rows}
    drawn = sorted(rows, key=lambda row: hashlib.sha256(texts[row["id"]]).hexdigest())
    assert (short, long) == (drawn[:5], drawn[:7])
    assert sorted(row["id"] for part in parts["lines.jsonl"] for row in part) == list(range(20))
    refused = run("sample", tmp_path / "list.json", "--parts", f"{tmp_path / 'new'}=21")
    assert (refused.returncode, (tmp_path / "new").exists()) == (65, False)
    assert "has 20 different rows, and the parts take 21." in refused.stderr
    refused = run("sample", tmp_path / "list.json", "--parts", "new")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
