"""Imports point one way, serving needs nothing that only training needs, and help is quick."""

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = {
    "common": set(),
    "models": {"common"},
    "datamodules": {"common", "models"},
    "trainers": {"common", "models", "datamodules"},
    "harness": {"common", "models"},
}
PLAIN = {"formats"}  # datamodules that anyone may import
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for layer in LAYERS
    for path in (ROOT / layer).rglob("*.py")
    if path.stem not in ("__init__", "__main__")
)


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_one_way(layer: str) -> None:
    for path in (ROOT / layer).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                top, _, rest = name.partition(".")
                if top in LAYERS and top != layer and top not in LAYERS[layer]:
                    assert (top, rest.partition(".")[0]) in {("datamodules", plain) for plain in PLAIN}, (
                        f"{path}: {name}"
                    )


def test_serving_loads_neither_lightning_nor_wandb() -> None:
    serving = [m for m in MODULES if m.split(".")[0] in ("harness", "models")]
    code = f"import sys, infer, {', '.join(serving)}; print(*({{'pytorch_lightning', 'wandb'}} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == ""


def test_plain_modules_need_the_standard_library_alone() -> None:
    plain = [m for m in MODULES if m.split(".")[0] == "common" or m.split(".")[:2] == ["datamodules", "formats"]]
    code = f"import sys, {', '.join(plain)}; print(*({{'torch', 'numpy', 'datasets', 'regex'}} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_help_is_quick() -> None:
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        run = subprocess.run(
            [sys.executable, "infer.py", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        seconds.append(time.perf_counter() - started)
    assert "evaluate" in run.stdout
    assert min(seconds) < 1.0


def test_init_files_are_empty() -> None:
    assert not [path for layer in LAYERS for path in (ROOT / layer).rglob("__init__.py") if path.read_text()]
