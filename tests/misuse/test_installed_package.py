"""The installed package: its commands work in a folder whose own folders have the names of the project's."""

import json
import os
import re
import site
import subprocess
import sys
import textwrap
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from common.version import VERSION
from lightning_rag import MODULES
from tests.conftest import hotpot_rows
from tests.helpers.document_folders import write_files
from tests.helpers.pdf_pages import pdf, text_page
from tests.helpers.runs import ROOT
from tests.trainers.test_drrag import write_config

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of an environment in which the wheel is installed, beside the packages of this one."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    quiet = {"check": True, "capture_output": True, "text": True}
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, **quiet).stdout.splitlines()
    for file in files:  # a copy, so that the build leaves nothing in the checkout
        if not file.startswith("tests/") and (ROOT / file).is_file():
            (folder / "copy" / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / "copy" / file).write_bytes((ROOT / file).read_bytes())
    wheel = ["wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", str(folder), str(folder / "copy")]
    subprocess.run([*pip, *wheel], **quiet)
    venv.create(folder / "env", with_pip=False)
    python = folder / "env/bin/python"
    (packages,) = (folder / "env").glob("lib/python*/site-packages")
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()))
    install = ["--python", str(python), "install", "--no-deps", "--no-index", *map(str, folder.glob("*.whl"))]
    subprocess.run([*pip, *install], **quiet)
    assert {path.name for path in packages.iterdir()} - {f"lightning_rag-{VERSION}.dist-info", "others.pth"} == {
        "lightning_rag"
    }
    assert (packages / "lightning_rag/py.typed").is_file()
    return folder / "env/bin"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """A folder with modules of all our names, which must not be imported, and with questions and a config."""
    folder = tmp_path_factory.mktemp("workplace")
    for name in (*MODULES, "tests"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"raise ImportError('{name} of the working folder was imported')\n")
    (folder / "hotpot.json").write_text(json.dumps(hotpot_rows(40)))
    write_config(folder, checkpoints["bert"], folder / "hotpot.json")
    return folder


@pytest.fixture(params=["", "."], ids=["no PYTHONPATH", "PYTHONPATH=."])
def run(programs: Path, workplace: Path, request: pytest.FixtureRequest) -> Run:
    """Runs an installed command in that folder."""

    def start(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [str(programs / program), *arguments], cwd=workplace, capture_output=True, text=True, timeout=300,
            env=environment | ({"PYTHONPATH": request.param} if request.param else {}),
        )  # fmt: skip

    return start


def test_commands_say_their_own_names(run: Run) -> None:
    for program in ("lightning-rag", "lightning-rag-train"):
        assert run(program, "--version").stdout == f"{program} {VERSION}\n"
    assert "    lightning-rag-train fit --config " in run("lightning-rag-train", "--help").stdout
    helped = run("lightning-rag", "--help").stdout
    assert "    lightning-rag ask --config " in helped
    assert ".py" not in helped
    (line,) = run("lightning-rag", "ask", "--jsn").stderr.splitlines()
    assert line.startswith("lightning-rag: unrecognized arguments: --jsn. All options: lightning-rag ask --help")


def test_commands_index_and_answer(run: Run) -> None:
    bm25 = ("--system.retriever", "harness.retrievers.bm25.Bm25Retriever", "--system.retriever.index")
    system = ("--system", "harness.systems.drrag.DrRag", "--system.selection.method", "sm", *bm25)
    asked = ("lightning-rag", "ask", "--question", "where was name1 born", "--json", "true", *system)
    missing = run(*asked, "no")
    assert missing.returncode == 66
    assert missing.stderr.startswith("lightning-rag: ")
    assert "lightning-rag index" in missing.stderr
    corpus = ("--kind", "bm25", "--layout", "hotpotqa", "--corpus", "hotpot.json")
    index = run("lightning-rag", "index", *corpus, "--out", "bm25")
    assert index.returncode == 0, index.stderr
    ask = run(*asked, "bm25")
    assert ask.returncode == 0, ask.stderr
    assert len(json.loads(ask.stdout)["evidence"]) == 4


def test_the_page_of_documents_reads_a_pdf(run: Run, workplace: Path) -> None:
    """Its lines, typed after `import lightning_rag`; the reading processes start in the same folder."""
    heading, prose = ("1.1 Mounting the pump", "Helvetica-Bold", 14), "The pump is mounted on a level floor."
    page = text_page([(40, 60, *heading), *((40, 90 + 13 * line, prose, "Times-Roman", 9) for line in range(8))])
    write_files(workplace / "manuals", {"p300.pdf": pdf(page)})
    lines = re.search(r"(?:^    .+\n)+", (ROOT / "documents/README.md").read_text(), re.MULTILINE)
    assert lines is not None
    read = run("python", "-c", "import lightning_rag\n" + textwrap.dedent(lines[0]))
    assert read.returncode == 0, read.stderr
    assert read.stdout.startswith(f"p300 > {heading[0]}\n{prose}")


def test_training_starts_its_other_processes(run: Run, request: pytest.FixtureRequest) -> None:
    """Lightning starts the second process with the same command."""
    name = "with" if "PYTHONPATH" in request.node.name.replace("no PYTHONPATH", "") else "without"
    fit = run("lightning-rag-train", "fit", "--config", "config.yaml", "--name", name,
              "--trainer.devices", "2", "--trainer.strategy", "ddp")  # fmt: skip
    assert fit.returncode == 0, fit.stderr[-3000:]
    assert "exported from" in fit.stdout


def test_module_commands_and_python(run: Run) -> None:
    world = run("python", "-m", "lightning_rag", "datamodules.world", "--out", "world", "--questions", "few")
    assert world.stderr.endswith(" All options: python -m lightning_rag datamodules.world --help\n")
    assert run("python", "-m", "lightning_rag", "trainers.t5_from_scratch", "--help").returncode == 0
    assert run("python", "-m", "lightning_rag", "trainers.dmqr").returncode == 2
    for code, printed in (
        ("from harness.systems.drrag import DrRag; print(DrRag.__module__)", "harness.systems.drrag\n"),
        # its template is in the package
        ("from harness.evaluation.page import page; print(page('', [], [], '', {}, [], {}, {}))", "<!doctype html>"),
    ):
        assert run("python", "-c", f"import lightning_rag; {code}").stdout.startswith(printed)
    late = run("python", "-c", "import sys, types; sys.modules['models'] = types.ModuleType('a'); import lightning_rag")
    assert late.returncode == 1
    assert "ImportError: import lightning_rag before the other module models" in late.stderr
