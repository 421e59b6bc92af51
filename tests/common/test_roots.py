"""`$data_root` and `$index_root` at the start of a path, in configs and in files that these name."""

from pathlib import Path
from typing import Any

import pytest
from jsonargparse import Namespace, auto_parser

import infer
from common.errors import MissingInputError, UserError
from common.roots import TYPED, refuse_unused, resolve, typed_in
from harness.evaluation.dmqr.study import _system
from harness.retrievers.bm25 import Bm25Retriever
from harness.systems.dmqr import Dmqr

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
    return auto_parser(infer.named_in(list(args)), **infer.PARSER).parse_args(list(args))[args[0]]


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


def test_a_slash_at_the_end_of_a_root_stands_once() -> None:
    for root, path in (("x/", "x/bm25"), ("x//", "x/bm25"), ("/", "/bm25"), (".", "./bm25"), ("x y", "x y/bm25")):
        options = Namespace(data_root=root, index_root="i", at="$data_root/bm25", itself="$data_root")
        resolve(options)
        assert (options.at, options.itself) == (path, path.removesuffix("bm25").rstrip("/") or "/")


def test_a_config_sets_a_root_and_the_command_line_another(config: str, tmp_path: Path) -> None:
    """Every system of a comparison has its own."""
    given = ("ask", "--config", config, "--question", "x")
    assert indexes(parsed(*given)) == ["indexes/here/bm25"] * 2  # in files that the config names, as items of a list
    assert indexes(parsed(*given, "--index_root", "there")) == ["there/bm25"] * 2
    before = parsed("ask", "--index_root=there", *given[1:])
    assert indexes(before) == ["indexes/here/bm25"] * 2  # the last one counts, as of all options
    other = tmp_path / "other.yaml"
    other.write_text(SYSTEM.replace("indexes/here", "indexes/other"))
    both = ["evaluate", "--config", config, "--config", str(other), "--questions", "q", "--out", "o"]
    for typed, roots in (([], ["indexes/here", "indexes/other"]), (["--index_root", "there"], ["there", "there"])):
        systems = infer.systems_of([*both, *typed])
        assert [indexes(parsed(*each))[0] for each in systems.values()] == [f"{root}/bm25" for root in roots]


def test_a_root_before_a_config_is_refused_and_after_it_counts() -> None:
    with pytest.raises(UserError, match="--index_root stands before a --config"):
        refuse_unused(["ask", "--index_root=x", "--config", "a.yaml"], {"index_root"})
    refuse_unused(["ask", "--config", "a.yaml", "--index_root", "x"], {"index_root"})


def test_a_root_that_does_nothing_for_one_listed_system_is_refused(config: str, tmp_path: Path) -> None:
    bare = tmp_path / "bare.yaml"
    bare.write_text(SYSTEM.replace("part.yaml", "own.yaml"))
    (tmp_path / "own.yaml").write_text(PART.replace("$index_root", "i"))
    systems = tmp_path / "systems.yaml"
    for root in ("--index_root", "--data_root"):
        systems.write_text(f"systems:\n  a: --config {config} --index_root y\n  b: --config {bare} {root} x\n")
        with pytest.raises(UserError, match=f"^b: {root} would change nothing"):
            infer.main(["evaluate", "--config", str(systems), "--questions", "q", "--out", "o"])
    systems.write_text(f"systems:\n  a: --config {config}\n  b: --config {bare}\n")
    with pytest.raises(MissingInputError, match="q does not exist"):  # for all systems it counts where one uses it
        infer.main(["evaluate", "--config", str(systems), "--questions", "q", "--out", "o", "--index_root", "x"])


def test_a_typed_root_counts_in_the_files_of_further_systems(tmp_path: Path) -> None:
    file = tmp_path / "further.yaml"
    own = SYSTEM.partition("  init_args")[0].replace("retrieve_read.RetrieveRead", "dmqr.Dmqr")
    indented = PART.replace("\n", "\n      ")
    file.write_text(f"{own}  init_args:\n    fusion: rrf\n    retriever:\n      {indented}")
    system = Dmqr(Bm25Retriever(Path("a")), fusion="rrf")
    for given, folder in (([], "indexes/here/bm25"), (["--index_root=x", "--index_root", "there/"], "there/bm25")):
        before = TYPED.set(typed_in(given))
        assert str(_system("study.rewriters.n", file, system).retriever.folder) == folder
        TYPED.reset(before)
