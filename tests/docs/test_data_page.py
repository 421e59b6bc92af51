"""docs/data.md is true: every layout is there with its fields and two rows, which are recognized and read."""

from operator import attrgetter
from pathlib import Path

import pytest

from common.records import Question
from datamodules.formats.reading import read_joined_questions, read_passages
from datamodules.formats.recognition import AUTO, layout_module, layouts, question_layouts, recognized
from datamodules.formats.rewrites import REWRITE_LAYOUTS, read_rewrites
from datamodules.formats.row_counts import RowCounts
from tests.helpers.data_page import PAGE, SECTIONS, example_rows, examples


def test_every_layout_is_on_the_page() -> None:
    assert {*SECTIONS} == {*layouts(), "rewrites"}
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in REWRITE_LAYOUTS if name not in SECTIONS)


@pytest.mark.parametrize("layout", layouts())
def test_the_fields_of_a_layout_are_named(layout: str) -> None:
    module, text = layout_module(layout), PAGE.read_text(encoding="utf-8")
    named = SECTIONS[layout] if not hasattr(module, "ANY_CASE") else text
    optional = [name for key in ("CONSISTENT_FIELDS", "FIELDS") for name in getattr(module, key, ())]
    for field in (*module.REQUIRED_FIELDS, *optional):
        for name in field.split("|"):
            assert f"`{name}`" in named or (layout == "twowiki" and name in SECTIONS["hotpotqa"]), name


@pytest.mark.parametrize("layout", question_layouts())
def test_the_rows_of_questions_are_recognized_and_read(layout: str, tmp_path: Path) -> None:
    for kind, content in examples(layout).items():
        file = tmp_path / f"file.{kind}"
        file.write_text(content, encoding="utf-8")
        counts = RowCounts(without_gold=None)
        named = layout if layout == "masqa" else AUTO
        found = list(read_joined_questions(named, str(file), counts=counts))
        assert len(found) == (1 if layout == "judgements" else 2)
        assert all(isinstance(each, Question) for each in found)
        assert [line for line in counts.lines() if "joined" not in line] == []
    assert layout == "masqa" or {recognized(row, "file") for row in example_rows(layout)} == {layout}


def test_the_rows_of_a_corpus_and_of_rewrites_are_read(tmp_path: Path) -> None:
    for layout, read, fields in (
        ("jsonl", lambda file: read_passages(AUTO, [file]), ("corpus_id", "title", "text")),
        ("rewrites", lambda file: read_rewrites(AUTO, file), ("question", "rewrite", "history")),
    ):
        found = []
        for kind, content in examples(layout).items():
            (tmp_path / f"{layout}.{kind}").write_text(content, encoding="utf-8")
            found.append([*map(attrgetter(*fields), read(str(tmp_path / f"{layout}.{kind}")))])
        assert len(found) == len(found[0]) == 2
        assert found[0] == found[1]
