"""Hook of mkdocs: the site holds README.md and every file of the repository that its pages link to.

Pages keep their places and their links, so a link holds on GitHub and on the site, or the build fails.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)")
FENCED = re.compile(r"^```.*?^```", flags=re.DOTALL | re.MULTILINE)


def github_anchor(heading: str, separator: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Headings get GitHub's anchors."""
    config.mdx_configs["toc"] = {**config.mdx_configs.get("toc", {}), "slugify": github_anchor}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The theme's files, README.md, and what is linked from it, named by their paths in the repository."""
    root = Path(config.docs_dir).parent
    theme = [file for file in files if not file.src_dir or Path(file.src_dir) != Path(config.docs_dir)]
    found, waiting = set[str](), [root / name for name in ("README.md", *map(str, config.extra_css))]
    while waiting:
        file = waiting.pop().resolve()
        if file.is_file() and file.is_relative_to(root) and (name := file.relative_to(root).as_posix()) not in found:
            found.add(name)
            linked = LINK.findall(FENCED.sub("", file.read_text(encoding="utf-8"))) if file.suffix == ".md" else []
            waiting += [file.parent / link for link in linked]
    own = [File(name, str(root), config.site_dir, config.use_directory_urls) for name in sorted(found)]
    return Files([*theme, *own])
