"""`infer.py plan`: what it refuses, that it reads neither weights nor indexes, its output and its exit codes."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.helpers.commands import command, refused
from tests.helpers.planned_world import write_world

PLAN = ("infer.py", "plan", "--config")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    return write_world(tmp_path_factory.mktemp("planned"), checkpoints)


@pytest.fixture
def world(built: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(built, tmp_path / "world"))


@pytest.mark.parametrize(
    ("config", "given", "code", "part"),
    [
        ("drrag", ("--strategy.init_args.serving", "nowhere"), 66, "nowhere does not exist: no serving folder there"),
        ("rerag", ("--strategy.init_args.serving", "nowhere"), 66, "nowhere does not exist: no serving folder there"),
        ("rerag", ("--strategy.init_args.serving", "drrag"), 74, "drrag holds a 'triple_classifier', not a 're_rag'"),
        ("dense", ("--strategy.init_args.retriever.init_args.index", "nowhere"), 66,
            "nowhere: no such index. Build it"),
        ("dense", ("--strategy.init_args.retriever.init_args.index", "bm25"), 74, "bm25 is a bm25 index"),
        ("dense", ("--strategy.init_args.retriever.init_args.encoder", "no/encoder"), 66, "no/encoder: no such folder"),
        ("dense", ("--strategy.init_args.lookahead", "0"), 2, "lookahead must be at least 1, got 0"),
        ("rerag", ("--gpu_memory_gib=-8",), 2, "gpu_memory_gib must be above 0, got -8.0"),
        ("rerag", ("--gpu_memory_gib", "0"), 2, "gpu_memory_gib must be above 0, got 0.0"),
        ("rerag", ("--gpu_memory_gib", "nan"), 2, "gpu_memory_gib is 'nan'; allowed: a number or null"),
        ("rerag", ("--ram_gib=-1",), 2, "ram_gib must be above 0, got -1.0"),
        ("rerag", ("--ram_gib", "much"), 2, "ram_gib is 'much'; allowed: a number"),
        ("rerag", ("--questions_at_once", "0"), 2, "questions_at_once must be at least 1, got 0"),
        ("rerag", ("--strategy.init_args.device", "gpu"), 2, "device 'gpu' is unknown"),
        ("rerag", ("--gpu_memory_gib", "8", "--strategy.init_args.device", "cuda:1"), 2,
            "device is 'cuda:1', but the plan is for 1 GPUs"),
        ("dense", ("--strategy.init_args.retriever.init_args.index_device", "gpu"), 2, "index_device 'gpu' is unknown"),
        ("rerag", ("--strategy.init_args.precision", "fp64"), 2, "precision"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_is_refused_in_one_line(
    built: Path, config: str, given: tuple[str, ...], code: int, part: str
) -> None:
    before = sorted(built.rglob("*"))
    ended = command(built, *PLAN, f"{config}.yaml", *given)
    refused(ended, code, part)
    assert ended.out == ""
    assert sorted(built.rglob("*")) == before


def test_a_config_without_a_strategy_is_refused(built: Path, tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("json: true\n")
    refused(command(built, *PLAN, str(tmp_path / "none.yaml")), 2, "--strategy: not given, but required")
    refused(command(built, "infer.py", "plan"), 2, "--strategy: not given, but required")
    refused(command(built, *PLAN, "nowhere.yaml"), 2, "nowhere.yaml")


@pytest.mark.parametrize("config", ["drrag", "rerag", "bm25"])
def test_neither_weights_nor_indexes_are_read(world: Path, config: str) -> None:
    planned = command(world, *PLAN, f"{config}.yaml", "--json", "true")
    spoiled = [*world.rglob("*.safetensors"), *world.rglob("data.csc.index.npy"), *world.rglob("passages.jsonl")]
    assert len(spoiled) == 7
    for file in spoiled:
        file.write_bytes(bytes(file.stat().st_size))
    again = command(world, *PLAN, f"{config}.yaml", "--json", "true")
    assert (planned.code, again.code) == (0, 0), again.err
    parts = [json.loads(each.out)["parts"][1:] for each in (planned, again)]
    assert parts[0] == parts[1]
    refused(command(world, "infer.py", "ask", "--config", f"{config}.yaml", "--question", "amber"), 74)


def test_a_missing_part_of_an_index_or_an_edited_manifest_is_named(world: Path) -> None:
    (world / "dense" / "vectors.npy").unlink()
    refused(command(world, *PLAN, "dense.yaml"), 74, "vectors.npy is missing but listed")
    manifest = world / "rerag" / "serving.json"
    manifest.write_text(manifest.read_text().replace('"max_answer_tokens": 6', '"max_answer_tokens": 9'))
    refused(command(world, *PLAN, "rerag.yaml"), 74, "serving.json is corrupt or was edited")


def test_what_fits_is_a_table_and_a_verdict(built: Path) -> None:
    ended = command(built, *PLAN, "drrag.yaml", "--ram_gib", "512")
    assert (ended.code, ended.err) == (0, "")
    assert re.search(r"^classifier of drrag +RAM +\d+\.\d KiB +\d+\.\d \wiB +\d+\.\d \wiB$", ended.out, re.MULTILINE)
    assert re.search(r"^encoder of .*encoder +RAM", ended.out, re.MULTILINE)
    for index in ("vectors and passages of dense", "words and passages of bm25"):
        assert re.search(rf"^{index} +RAM", ended.out, re.MULTILINE)
    assert re.search(r"^  RAM: \d+\.\d \wiB of 512\.0 GiB: fits$", ended.out, re.MULTILINE)
    assert "What to change" not in ended.out


def test_what_does_not_fit_is_planned_all_the_same_with_exit_code_69(built: Path) -> None:
    ended = command(built, *PLAN, "drrag.yaml", "--gpu_memory_gib", "0.001")
    refused(ended, 69, "GPU 0 is short: ", " are needed, 1.0 MiB are free. Change the options above.")
    assert "GPU 0: " in ended.out
    assert "DOES NOT FIT" in ended.out
    changes = ended.out.partition("What to change")[2].splitlines()
    assert any(
        line.startswith("  in the config, strategy.init_args.retriever.init_args.retrievers[0].init_args.device: cpu")
        for line in changes
    )
    assert changes[-1].startswith("With these changes: ")
    assert changes[-1].endswith(": fits.")
    nothing = command(built, *PLAN, "bm25.yaml", "--ram_gib", "0.001")
    refused(nothing, 69, "RAM is short", "Name a smaller model or index, or a larger machine.")
    assert "nothing among the options lowers it" in nothing.out


@pytest.mark.parametrize("config", ["dense", "rerag"])
def test_the_printed_changes_save_what_they_say_and_make_it_fit(built: Path, config: str) -> None:
    given = ("--gpu_memory_gib", "0.001", "--json", "true")
    ended = command(built, *PLAN, f"{config}.yaml", *given)
    assert ended.code == 69
    planned = json.loads(ended.out)
    gpu = planned["places"]["GPU 0"]
    assert planned["fits"] is gpu["fits"] is False
    typed = [word for change in planned["changes"] for word in shlex.split(change["change"])]
    again = command(built, *PLAN, f"{config}.yaml", *given, *typed)
    assert again.code == 0, again.err
    needed = json.loads(again.out)["places"]["GPU 0"]["needed"]
    assert needed == gpu["needed_after_changes"] == gpu["needed"] - sum(c["saves"]["GPU 0"] for c in planned["changes"])
    assert gpu["needed_one_question"] < gpu["needed"]
