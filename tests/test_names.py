"""One name a thing: a public class has a name of its own."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("common", "models", "datamodules", "trainers", "harness", "documents", "benchmarks")
ROLES = {"Study", "Tuning"}  # classes that are found by their name, one in each system's file


def test_every_public_class_has_a_name_of_its_own() -> None:
    homes = defaultdict(list)
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    assert not {name: where for name, where in homes.items() if len(where) > 1 and name not in ROLES}
