"""Import rules: folders import only folders below them, serving loads no training library, help is quick."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TRAINING = (  # from the ground floor up: a folder imports from itself and from folders before it
    "common",
    "models", "models.drrag", "models.t5", "models.rerag", "models.dmqr", "models.msrag",
    "datamodules.formats", "datamodules.formats.layouts",
    "documents.manuals", "datamodules.world", "datamodules.examples", "datamodules.cache", "datamodules",
    "trainers.run", "trainers",
    "train",
)  # fmt: skip
DOCUMENTS = (
    "common",
    "documents", "documents.pdf", "documents.segments", "documents.reading", "documents.folder", "documents.manuals",
)  # fmt: skip
SERVING = (
    "common",
    *DOCUMENTS[1:6],
    "models", "models.drrag", "models.t5", "models.rerag", "models.dmqr", "models.msrag",
    "datamodules.formats", "datamodules.formats.layouts",
    "harness",  # its interfaces
    "harness.runtime", "harness.web", "harness.llm",
    "harness.indexing",
    "harness.indexing.documents",
    "harness.selection", "harness.rewriters", "harness.retrievers", "harness.readers",
    "harness.context_sources", "harness.answer_selection",
    "harness.systems", "harness.serving",
    "harness.evaluation", "harness.evaluation.drrag", "harness.evaluation.rerag",
    "harness.evaluation.dmqr", "harness.evaluation.msrag", "harness.evaluation.hiqa",
    "harness.tuning",
    "harness.commands",
    "infer",
)  # fmt: skip
TOGETHER = {  # folders that build on each other
    "models.bigbird": "models",  # a backbone
}
LAYERS = ("common", "models", "datamodules", "trainers", "harness", "documents")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in [ROOT / "train.py", ROOT / "infer.py", *(p for layer in LAYERS for p in (ROOT / layer).rglob("*.py"))]
    if path.stem != "__init__"
}


def folder_of(module: str) -> str:
    folder = module.rpartition(".")[0] or module
    return TOGETHER.get(folder, folder)


@cache
def imported(path: Path) -> tuple[str, ...]:
    """The project's modules that a file imports, at its top or inside functions."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module]
        found += [name for name in names if name in MODULES]
    return tuple(found)


def test_no_two_files_need_each_other() -> None:
    """Also in functions, and for types alone: who reads one of them must not have to know the other first."""
    files = {module: {name for name in imported(path) if name != module} for module, path in MODULES.items()}
    TopologicalSorter(files).prepare()  # raises with the circle


@pytest.mark.parametrize("order", [TRAINING, SERVING, DOCUMENTS], ids=["training", "serving", "documents"])
def test_no_import_runs_back_up(order: tuple[str, ...]) -> None:
    wrong = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if folder_of(module) in order
        for name in imported(path)
        if folder_of(name) not in order[: order.index(folder_of(module)) + 1]
    ]
    assert not wrong


def test_every_folder_has_its_floor() -> None:
    assert {folder_of(module) for module in MODULES} == {*TRAINING, *SERVING, *DOCUMENTS}


def test_documents_are_entered_by_one_door() -> None:
    """These modules serve what writes an index and the world's library; the tools serve what asks a model."""
    doors = {"documents.folder.corpus", "documents.folder.options", "documents.records", "documents.manuals.writing",
             "documents.reading.file_types"}  # fmt: skip
    tools = {"documents.fidelity", "documents.markdown_writing", "documents.normal_form",
             "documents.reading.markdown_reading", "documents.segments.splitting"}  # fmt: skip
    used = {
        (name, folder_of(module))
        for module, path in MODULES.items()
        if not module.startswith("documents.")
        for name in imported(path)
        if name.startswith("documents.")
    }
    assert {name for name, _ in used} == doors | tools
    assert {folder for name, folder in used if name in tools} == {"harness.indexing.documents"}


@pytest.mark.parametrize(("one", "other"), [("drrag", "rerag"), ("rerag", "drrag")])
def test_no_system_is_built_from_another(one: str, other: str) -> None:
    """Below the harness what two systems share lies in files that bear neither's name."""
    own = [module for module in MODULES if one in module and not module.startswith("harness")]
    assert own
    assert not [f"{module}: {name}" for module in own for name in imported(MODULES[module]) if other in name]


SYSTEMS = r"(?:dr|re)[-_ ]?rag|dmqr|ms[-_ ]?rag|hi[-_ ]?qa"  # in any spelling


def test_commands_name_no_system() -> None:
    """A command works with any system; what is a system's own lies in files that bear its name."""
    files = [path for path in (ROOT / "harness/commands").iterdir() if path.is_file()]
    assert len(files) > 6
    found = [
        f"{file.name}: {match[0]}"
        for file in files
        for match in re.finditer(SYSTEMS, file.name + file.read_text(), re.IGNORECASE)
    ]
    assert not found
    for spelling in ("drrag", "DR-RAG", "DrRag", "dr rag", "ReRag", "re_rag", "DMQR-RAG", "MSRAG", "MS-RAG", "HiQA"):
        assert re.search(SYSTEMS, spelling, re.IGNORECASE)


def test_what_every_run_has_knows_no_system() -> None:
    systems = [m for m in MODULES if re.search(rf"{SYSTEMS}|\bt5", m, re.IGNORECASE)]
    for path in (ROOT / "trainers/run").glob("*.py"):
        assert not set(imported(path)) & set(systems), path.name
        found = re.search(rf"{SYSTEMS}|\bt5\b", path.read_text(), re.IGNORECASE)
        assert not found, f"{path.name}: {found[0]}"


def test_only_a_system_s_study_knows_its_strategy() -> None:
    """It alone needs more of a system than what every system has; plain retrieval is a row of several."""
    for module in MODULES:
        if match := re.match(r"harness\.evaluation\.(\w+)\.", module):
            known = [name for name in imported(MODULES[module]) if name.startswith("harness.systems.")]
            assert not [name for name in known if not name.endswith((match[1], ".retrieve_read"))], module


SERVE_ALL = tuple(f"harness.{name}" for name in ("commands", "indexing", "retrievers", "runtime", "evaluation"))


def test_rooms_that_serve_all_systems_know_none() -> None:
    """Not even for a type: what they need of a system is handed to them."""
    shared = [module for module in MODULES if folder_of(module) in SERVE_ALL]
    assert {folder_of(module) for module in shared} == set(SERVE_ALL)
    known = re.compile(r"drrag|rerag|dmqr|msrag|hiqa|^harness\.strategies\.")
    assert not [f"{module}: {name}" for module in shared for name in imported(MODULES[module]) if known.search(name)]


STARTS = """
import builtins, sys
missing, root, real = {missing}, {root!r}, builtins.__import__
def windows(name, globals=None, locals=None, fromlist=(), level=0):
    file = str((globals or {{}}).get("__file__", ""))
    if name in missing and file.startswith(root) and "site-packages" not in file:
        raise ModuleNotFoundError(name)
    return real(name, globals, locals, fromlist, level)
builtins.__import__ = windows
import infer, harness.runtime.journal, harness.indexing.sentence_encoder
builtins.__import__ = real
import {serving}
print(*({{"pytorch_lightning", "wandb"}} & set(sys.modules)))
"""


def test_serving_loads_neither_lightning_nor_wandb_and_starts_without_what_windows_lacks() -> None:
    """Modules are hidden from this project's own files only: installed packages know what to do on Windows."""
    serving = [module for module in MODULES if module.split(".")[0] in ("common", "harness", "models")]
    posix = ("fcntl", "grp", "pwd", "resource", "termios")
    code = STARTS.format(missing=posix, root=str(ROOT), serving=", ".join(serving))
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == ""


PLAIN = {*DOCUMENTS[:6], "datamodules.formats", "datamodules.formats.layouts"}


def test_plain_modules_load_no_large_package() -> None:
    plain = [module for module in MODULES if folder_of(module) in PLAIN]
    heavy = ("torch", "numpy", "datasets", "regex", "httpx2", "openai", "requests")
    code = f"import sys, {', '.join(plain)}; print(*(set({heavy}) & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_init_files_are_empty() -> None:
    assert not [path for layer in LAYERS for path in (ROOT / layer).rglob("__init__.py") if path.read_text()]
