"""One name a thing: a public class has a name of its own, and names that were given up are nowhere."""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
OLD_NAMES = ROOT / "tests/fixtures/old_names.txt"  # of modules, classes and options, one a line
PACKAGES = ("common", "models", "datamodules", "trainers", "harness", "documents", "benchmarks")
ROLES = {"Study", "Tuning"}  # classes that are found by their name, one in each system's file
QUIET = ("tests/fixtures/", "benchmarks/results/")  # of earlier releases
SUFFIXES = {".py", ".md", ".yaml", ".sh", ".toml", ".txt", ""}


def test_every_public_class_has_a_name_of_its_own() -> None:
    homes = defaultdict(list)
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    assert not {name: where for name, where in homes.items() if len(where) > 1 and name not in ROLES}


def texts() -> dict[str, str]:
    folders = [ROOT / name for name in (*PACKAGES, "lightning_rag", "configs", "docs", "scripts", "tests")]
    paths = [*ROOT.glob("*"), *(path for folder in folders for path in folder.rglob("*"))]
    named = {str(path.relative_to(ROOT)): path for path in paths if path.is_file() and path.suffix in SUFFIXES}
    return {name: path.read_text() for name, path in named.items() if not name.startswith(QUIET)}


def test_old_names_are_nowhere() -> None:
    old = OLD_NAMES.read_text().split()
    assert len(old) > 50
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, old))})(?![\w])")
    left = {name: sorted(set(pattern.findall(text))) for name, text in texts().items()}
    assert not {name: found for name, found in left.items() if found}
