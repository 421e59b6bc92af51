"""`$data_root` and `$index_root` at the start of a path, in configs and in files that these name."""

from pathlib import Path
from typing import Any

import pytest
from jsonargparse import Namespace, auto_parser

import infer
from common.errors import UserError
from common.roots import refuse_unused, resolve

PART = "class_path: harness.retrievers.bm25.Bm25Retriever\ninit_args: {index: $index_root/bm25}\n"
SYSTEM = """index_root: indexes/here
system:
  class_path: harness.systems.retrieve_read.RetrieveRead
  init_args:
    retriever:
      class_path: harness.retrievers.fusion.FusedRetriever
      init_args: {method: reciprocal_rank, retrievers: [part.yaml, part.yaml]}
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "part.yaml").write_text(PART)
    (tmp_path / "system.yaml").write_text(SYSTEM)
    return str(tmp_path / "system.yaml")


def parsed(*args: str) -> Any:
    parser = auto_parser(infer.named_in(list(args)), **infer.PARSER)
    return parser, parser.parse_args(list(args))[args[0]]


def indexes(options: Any) -> list[str]:
    return [str(each.init_args.index) for each in options.system.init_args.retriever.init_args.retrievers]


def test_roots_stand_in_lists_dicts_and_paths() -> None:
    options = Namespace(
        data_root="d", index_root="i/x", config=["$index_root"], text="costs $5 or $data_root", k=3,
        inner=Namespace(path=Path("$index_root/bm25"), all=["$data_root", {"a": "$data_root/q.json"}]),
    )  # fmt: skip
    assert resolve(options) == {"data_root", "index_root"}
    assert options.inner == Namespace(path=Path("i/x/bm25"), all=["d", {"a": "d/q.json"}])
    assert (options.text, options.k, options.config) == ("costs $5 or $data_root", 3, ["$index_root"])


def test_another_name_is_refused() -> None:
    with pytest.raises(UserError, match=r"^\$data/q.json: .*cannot begin with \$data; allowed: \$data_root, \$index_r"):
        resolve(Namespace(data_root="d", index_root="i", questions="$data/q.json"))


def test_a_config_sets_a_root_and_the_command_line_another(config: str) -> None:
    given = ("ask", "--config", config, "--question", "x")
    assert indexes(parsed(*given)[1]) == ["indexes/here/bm25"] * 2  # in files that the config names, as items of a list
    assert indexes(parsed(*given, "--index_root", "there")[1]) == ["there/bm25"] * 2
    before = parsed("ask", "--index_root=there", *given[1:])[1]
    assert indexes(before) == ["indexes/here/bm25"] * 2  # the last one counts, as of all options


def test_every_system_of_a_comparison_has_its_own(config: str, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(SYSTEM.replace("indexes/here", "indexes/other"))
    given = ["evaluate", "--config", config, "--config", str(other), "--questions", "q", "--out", "o"]
    systems = infer.systems_of(given)
    assert [indexes(parsed(*each)[1])[0] for each in systems.values()] == ["indexes/here/bm25", "indexes/other/bm25"]
    systems = infer.systems_of([*given, "--index_root", "there"])
    assert [indexes(parsed(*each)[1])[0] for each in systems.values()] == ["there/bm25", "there/bm25"]


def test_a_root_that_changes_nothing_is_refused(config: str) -> None:
    with pytest.raises(UserError, match="--data_root would change nothing"):
        refuse_unused(["--data_root=x"], {"index_root"})
    refuse_unused(["--index_root", "x"], {"index_root"})
    with pytest.raises(UserError, match="--data_root would change nothing"):
        infer.main(["ask", "--config", config, "--question", "x", "--data_root", "elsewhere"])
    both = ["--config", config, "--config", config, "--questions", "q", "--out", "o"]
    with pytest.raises(UserError, match="--data_root would change nothing"):
        infer.main(["evaluate", *both, "--data_root", "elsewhere"])


def test_a_root_before_a_config_is_refused_and_after_it_counts() -> None:
    with pytest.raises(UserError, match="--index_root stands before a --config"):
        refuse_unused(["ask", "--index_root=x", "--config", "a.yaml"], {"index_root"})
    refuse_unused(["ask", "--config", "a.yaml", "--index_root", "x"], {"index_root"})
