"""A list given after a config replaces the config's list: no option of an item stays behind, for every list."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.documents import CONFIGS, OVERLAYS, ROOT, parser_of

FIRST = [file for file in CONFIGS if file not in OVERLAYS]
LISTED = [file for file in FIRST if re.search(r"(?m)^ +- \{?(layout|class_path)", file.read_text(encoding="utf-8"))]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def lists_in(value: Any, *keys: str) -> Iterator[tuple[tuple[str, ...], list[dict[str, Any]]]]:
    """The lists of mappings within a config, each with its keys."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from lists_in(each, *keys, key)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        yield keys, value


def fitted(*arguments: str) -> dict[str, Any]:
    """What train.py makes of some arguments."""
    parsed: dict[str, Any] = parser_of("train").parse_args(["fit", *arguments])["fit"].as_dict()
    return {key: value for key, value in parsed.items() if key != "config"}


@pytest.mark.parametrize("config", LISTED, ids=lambda config: config.stem)
def test_a_list_of_a_second_config_or_of_the_command_line_replaces_that_of_the_first(
    config: Path, tmp_path: Path
) -> None:
    text = config.read_text(encoding="utf-8").replace("../parts", str(ROOT / "configs/parts"))
    content = yaml.safe_load(text)
    overlay: dict[str, Any] = {}
    typed = []
    for keys, items in lists_in(content):
        bare = [{key: each[key] for key in ("layout", "path", "class_path") if key in each} for each in items]
        for target in (content, overlay):
            for key in keys[:-1]:
                if key == "init_args":
                    target["class_path"] = content[keys[0]]["class_path"]
                target = target.setdefault(key, {})
            target[keys[-1]] = bare
        typed.append(f"--{'.'.join(key for key in keys if key != 'init_args')}={yaml.safe_dump(bare)}")
    first, replaced, second = (tmp_path / name for name in ("first.yaml", "replaced.yaml", "second.yaml"))
    first.write_text(text, encoding="utf-8")
    replaced.write_text(yaml.safe_dump(content), encoding="utf-8")
    second.write_text(yaml.safe_dump(overlay), encoding="utf-8")
    expected = fitted("--config", str(replaced))
    assert fitted("--config", str(first), "--config", str(second)) == expected
    assert fitted("--config", str(first), *typed) == expected


def test_a_list_of_classes_replaces_those_of_a_part() -> None:
    dense = "class_path: harness.retrievers.dense.DenseRetriever"
    given = f"[{{{dense}, init_args: {{index: a}}}}, {{{dense}, init_args: {{index: b}}}}]"
    config = ["--config", "configs/infer/retrieve_read.yaml", "--questions", "q.json"]
    fused = [*config, "--system.retriever", "configs/parts/fused.yaml", "--system.retriever.retrievers.verify", "full"]
    before, after = (
        parser_of("infer").parse_args(["ask", *arguments]).ask.system.init_args.retriever.init_args.retrievers
        for arguments in (fused, [*fused, "--system.retriever.retrievers", given])
    )
    assert before[-1].init_args.verify == "full"  # one item's option changes the list's last item
    assert [each.init_args.verify for each in after] == ["sampled", "sampled"]
    assert [str(each.init_args.index) for each in after] == ["a", "b"]
