"""The pages build as a site, strictly: a link or an anchor that leads nowhere fails, inside docs/ and outside."""

from pathlib import Path
from typing import Any

import pytest

from tests.docs.documents import ROOT

pytest.importorskip("mkdocs", reason="needs mkdocs and mkdocs-material: pip install -r requirements-dev.txt")

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

PAGE = "# A page\n\n## A heading: it's two - words\n"


def built(place: Path, **changes: Any) -> Path:
    """Build a site by mkdocs.yml, strictly; its folder."""
    with (ROOT / "mkdocs.yml").open("rb") as file:
        config = load_config(file, strict=True, site_dir=str(place / "site"), **changes)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return place / "site"


def test_the_pages_build_and_the_start_page_is_the_readme(tmp_path: Path) -> None:
    site = built(tmp_path)
    assert "Lightning RAG trains the learned parts" in (site / "index.html").read_text(encoding="utf-8")
    pages = [file.relative_to(ROOT).with_suffix("") for file in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if not (site / page / "index.html").is_file()] == []
    config = "configs/infer/dmqr_extractive.yaml"
    assert (site / config).read_bytes() == (ROOT / config).read_bytes()


@pytest.mark.parametrize(
    ("link", "holds"),
    [
        ("docs/page.md", True),
        ("docs/page.md#a-heading-its-two---words", True),
        ("code/program.py", True),
        ("docs/none.md", False),
        ("docs/page.md#none", False),
        ("#none", False),
        ("code/none.py", False),
        ("../outside.md", False),
    ],
)
def test_a_link_that_leads_nowhere_fails(link: str, holds: bool, tmp_path: Path) -> None:
    place = tmp_path / "project"
    for name, text in {
        "docs/page.md": PAGE, "docs/own.md": "# Own\n\n[Start](../README.md#start)\n", "code/program.py": "",
        "README.md": f"# Start\n\n[A link]({link}), [own](docs/own.md)\n", "../outside.md": PAGE,
    }.items():  # fmt: skip
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    changes = {"docs_dir": str(place / "docs"), "nav": ["README.md"]}
    if holds:
        assert (built(tmp_path, **changes) / "index.html").is_file()
    else:
        with pytest.raises(Abort):
            built(tmp_path, **changes)
