"""Options within options: those of a dict, `--study.grid.k1`, keep each other.

`null` reaches a class within a class.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

import infer
import train
from tests.docs.documents import ROOT, parser_of

INNER, NULL = "--data.init_args.retriever.init_args", "{index: bm25, workers: null}"
CONFIG = ROOT / "configs/infer/drrag.yaml"


def study(capsys: pytest.CaptureFixture[str], *options: str, config: Path = CONFIG) -> dict[str, Any]:
    """What the parser of `infer.py evaluate` makes of `--study` options."""
    with pytest.raises(SystemExit) as ended:
        infer.main(["evaluate", "--config", str(config), *options, "--questions", "q", "--out", "o", "--print_config"])
    assert ended.value.code in (0, None)
    printed: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)["study"]
    return printed


def test_options_of_one_group_are_all_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = ("--study.grid.k1", "[2,3]", "--study.grid.depths=[4,8]", "--study.grid.symmetric", "true")
    expected = {"k1": [2, 3], "depths": [4, 8], "symmetric": True}
    assert study(capsys, *grid) == {"grid": expected}  # the first option of the study is a nested one
    listed = study(capsys, "--study.rows", "[CFS]", *grid, "--study.scores", "x")
    assert listed == {"rows": ["CFS"], "grid": expected, "scores": "x"}
    assert study(capsys, *grid, "--study.grid.k1", "[5]")["grid"] == {**expected, "k1": [5]}  # the last one counts
    assert study(capsys, *grid, "--study.grid", "{depths: [6]}") == {"grid": {"depths": [6]}}  # given as a whole
    deep = ("--study.a.b.c", "1", "--study.a.b.d", "2", "--study.a.e", "3")
    assert study(capsys, *deep) == {"a": {"b": {"c": 1, "d": 2}, "e": 3}}
    config = tmp_path / "study.yaml"  # those of a config
    own = CONFIG.read_text().replace("../parts", str(ROOT / "configs/parts"))
    config.write_text(own + "study: {rows: [QDC], grid: {depths: [6], symmetric: true}}\n")
    expected = {"rows": ["QDC"], "grid": {"depths": [12], "symmetric": True}}
    assert study(capsys, "--study.grid.depths", "[12]", config=config) == expected


@pytest.mark.parametrize("options", ["--data.retriever.workers null", f"{INNER}.workers null", f"{INNER} {NULL}"])
def test_null_reaches_a_class_within_a_class(options: str, capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["train.py"])
    config = ROOT / "configs/quickstart/dmqr_train.yaml"
    searched = ("--data.retriever", "harness.retrievers.bm25.Bm25Retriever", "--data.retriever.index", "bm25")
    with pytest.raises(SystemExit) as ended:
        train.main(["fit", "--config", str(config), *searched, *options.split(" ", 1), "--print_config"])
    assert ended.value.code in (0, None)
    retriever = yaml.safe_load(capsys.readouterr().out)["data"]["init_args"]["retriever"]
    assert retriever["init_args"] == {"index": "bm25", "verify": "sampled", "workers": None}


def test_a_list_of_a_second_config_or_of_the_command_line_replaces_that_of_the_first(tmp_path, capsys, monkeypatch):
    """No option of an item of the first list stays behind."""
    monkeypatch.setattr("sys.argv", ["train.py"])
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    own = yaml.safe_load((ROOT / "configs/train/rerag_nq.yaml").read_text())
    own["data"]["init_args"]["train"][0] |= {"limit": 7}
    first.write_text(yaml.safe_dump(own))
    files = [{"layout": "fid", "path": "own.json"}]
    second.write_text(yaml.safe_dump({"data": {**own["data"], "init_args": {"train": files}}}))
    for given in (["--config", str(second)], ["--data.train", str(files)], ["--data.init_args.train", str(files)]):
        with pytest.raises(SystemExit):
            train.main(["fit", "--config", str(first), *given, "--print_config"])
        (item,) = yaml.safe_load(capsys.readouterr().out)["data"]["init_args"]["train"]
        assert {key: value for key, value in item.items() if value is not None} == files[0]


def test_a_list_of_classes_replaces_those_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    dense = "class_path: harness.retrievers.dense.DenseRetriever"
    given = f"[{{{dense}, init_args: {{index: a}}}}, {{{dense}, init_args: {{index: b}}}}]"
    config = ["--config", "configs/infer/retrieve_read.yaml", "--questions", "q.json"]
    fused = [*config, "--system.retriever", "configs/parts/fused.yaml", "--system.retriever.retrievers.verify", "full"]
    before, after = (
        parser_of("infer").parse_args(["ask", *arguments]).ask.system.init_args.retriever.init_args.retrievers
        for arguments in (fused, [*fused, "--system.retriever.retrievers", given])
    )
    assert before[-1].init_args.verify == "full"  # one item's option changes the list's last item
    assert [(str(each.init_args.index), each.init_args.verify) for each in after] == [(x, "sampled") for x in "ab"]
