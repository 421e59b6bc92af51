"""The pages are true: links, anchors, names of files, classes, options, the import graph, what configs promise."""

import ast
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import infer
from common.roots import ROOTS
from datamodules.examples.step_loader import StepData
from harness.commands.evaluate import files_and_settings
from harness.evaluation.question_files import QuestionFiles
from harness.retrievers.hard_negatives import HardNegatives
from harness.rewriters.llm import LlmRewriter
from harness.rewriters.word_labels import WordLabeler
from harness.selection.options import SelectionOptions
from tests.docs.documents import PAGES, ROOT, SPAN, links, prose
from trainers.run.module import RunModule
from trainers.t5_from_scratch import t5_from_scratch

FOLDERS = ("common", "models", "datamodules", "trainers", "harness", "documents")
KEPT = ("benchmarks", "configs", "docs", "scripts", "tests", *FOLDERS)  # folders whose files are in git
CLASS = re.compile(rf"(?:{'|'.join(FOLDERS)})(?:\.\w+)+")


def modules(pattern: str) -> list[ModuleType]:
    """The modules whose files fit a pattern."""
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in sorted(ROOT.glob(pattern))]
    return [importlib.import_module(name) for name in names if not name.endswith("__init__")]


def classes(folder: str, base: type) -> set[type]:
    """The classes of a folder's files that extend another one."""
    found = (each for module in modules(f"{folder}/*.py") for _, each in inspect.getmembers(module, inspect.isclass))
    return {each for each in found if issubclass(each, base) and each is not base}


def parameters(*callables: Callable[..., object]) -> set[str]:
    """The names of all their parameters."""
    return {parameter for each in callables for parameter in inspect.signature(each).parameters}


OPTIONS = {"model": classes("trainers", RunModule), "data": classes("datamodules", StepData)}
OPTIONS["selection"] = {SelectionOptions}
OTHER_OPTIONS = {  # of train.py, torchrun and benchmarks, and of evaluate alone
    *("config", "name", "resume", "ckpt_path", "model", "data", "trainer", "checkpoint", "early_stopping", "card"),
    *("nproc-per-node", "max-restarts", "help", "version", "system", "run", *ROOTS),
}
ids = {"ids": lambda page: str(page.relative_to(ROOT))}


def test_every_page_is_reachable_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            waiting += [(page.parent / link.partition("#")[0]).resolve() for link in links(page) if link[0] != "#"]
    assert {page for page in PAGES if ROOT / "docs" in page.parents} <= reached


def spans(page: Path) -> list[str]:
    """What is set as code in the prose of a page; of the changes what the newest release has, not what it removed."""
    text = prose(page)
    if page.name == "CHANGELOG.md":
        text = re.sub(r"(?ms)^### Removed$.*?(?=^###? |\Z)", "", "".join(re.split(r"(?m)^(?=## )", text)[:2]))
    return SPAN.findall(text)


@pytest.mark.parametrize("page", PAGES, **ids)
def test_named_files_and_classes_exist(page: Path) -> None:
    for span in spans(page):
        for word in re.split(r"[\s,]+", span):
            if word.split("/")[0] in KEPT and "/" in word and not re.search(r"[*<{]", word):
                assert (ROOT / word).exists(), f"{page.name}: {word} does not exist"
            elif CLASS.fullmatch(word):
                module, _, name = word.rpartition(".")
                if not (ROOT / word.replace(".", "/")).with_suffix(".py").is_file():
                    assert hasattr(importlib.import_module(module), name), f"{page.name}: {word} does not exist"


@pytest.mark.parametrize("page", PAGES, **ids)
def test_named_options_exist(page: Path) -> None:
    named = r"(?<![\w.])(model|data|selection)\.(?!safetensors|onnx|help|py\b)(\w+)"
    for group, name in re.findall(named, " ".join(spans(page))):
        assert name in parameters(*OPTIONS[group]), f"{page.name}: {group}.{name} is no option"
    parts = (files_and_settings, QuestionFiles, HardNegatives, WordLabeler, LlmRewriter)  # that commands take whole
    known = parameters(*infer.COMMANDS.values(), *parts, t5_from_scratch) | OTHER_OPTIONS
    for name in re.findall(r"(?<!\S)--(\w[\w-]*)", " ".join(spans(page))):
        assert name in known, f"{page.name}: --{name} is no option"
    of_studies = parameters(*(module.Study for module in modules("harness/evaluation/*/study.py"))) | {"py"}
    for name in re.findall(r"(?<![\w./])(?:--)?study\.([a-z]\w*)", " ".join(spans(page))):
        assert name in of_studies, f"{page.name}: study.{name} is no option"


def box(module: str) -> str:
    """The box of the architecture page's graph that a module, or a file of it, belongs to."""
    return "formats" if module.startswith("datamodules.formats") else module.split(".")[0]


def test_the_import_graph_is_the_code() -> None:
    graph = (ROOT / "docs/extend.md").read_text().partition("```mermaid")[2].partition("```")[0]
    drawn = set(re.findall(r"^\s*(\S+) --> (\S+)$", graph, flags=re.MULTILINE))
    found = set()
    for file in [ROOT / "train.py", ROOT / "infer.py", *(f for each in FOLDERS for f in (ROOT / each).rglob("*.py"))]:
        parts = file.relative_to(ROOT).parts
        here = parts[0] if len(parts) == 1 else box(".".join(parts))
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found |= {(here, box(name)) for name in names if name.split(".")[0] in FOLDERS and box(name) != here}
    assert drawn == found
