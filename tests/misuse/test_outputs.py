"""Output paths: a command replaces only what it wrote itself, refuses everything else in one line, and changes
nothing; two processes never write one output at the same time."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from common.errors import UserError
from common.files import digests
from common.locks import exclusive
from common.records import Answer, Question, Ranked
from datamodules.world import writing
from datamodules.world.world import WorldConfig
from harness.commands import evaluate, export, label, mine, score
from harness.evaluation import report
from harness.indexing import index_folder
from harness.indexing.index_folder import Build, open_index
from harness.indexing.passage_store import PassageStore
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.interfaces import Retriever
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.dense import build_dense
from harness.selection.options import SelectionOptions
from harness.systems.drrag import DrRag
from models.drrag.triple_classifier import TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT
from models.serving_manifest import write_manifest
from tests.common.test_locks import holder
from tests.helpers import river_corpus
from tests.helpers.commands import command, refused
from tests.helpers.small_world import corpus, write_jsonl
from trainers import t5_from_scratch

ROOT = Path(__file__).parents[2]
CORPUS = corpus(12)
FOREIGN: dict[str, Callable[[Path], object]] = {  # what a user may have at --out
    "a run's folder": lambda out: [
        (out / "serving").mkdir(parents=True),
        *((out / name).write_text("run") for name in ("best.ckpt", "config.yaml", "serving/serving.json")),
    ],
    "a folder of notes": lambda out: [out.mkdir(), (out / "thesis.tex").write_text("the only copy")],
    "a repository": lambda out: [(out / ".git").mkdir(parents=True), (out / ".git" / "HEAD").write_text("ref")],
    "a file": lambda out: out.write_text("the only copy"),
    "a link": lambda out: [
        out.with_name("elsewhere").mkdir(),
        (out.with_name("elsewhere") / "kept.txt").write_text("kept"),
        out.symlink_to(out.with_name("elsewhere")),
    ],
    "a link to nothing": lambda out: out.symlink_to(out.with_name("nothing")),
}
COMMANDS = {  # what each types besides --out
    "export": ("--serving", "no/serving"),
    "index": ("--corpus", "corpus.jsonl", "--kind", "bm25"),
    "distill": ("--questions", "questions.json", "--llm", "dead.yaml"),
}
OUTPUTS = {
    "index": index_folder.INDEX,
    "mine": mine.MINED,
    "label": label.LABELS,
    "score": score.SCORED,
    "evaluate": report.OUTPUT,
    "export": export.EXPORT,
    "world": writing.WORLD,
    "t5_from_scratch": t5_from_scratch.OUTPUT,
}


def everything(folder: Path) -> dict[str, str]:
    """Every file, folder and link below a folder, with its content."""
    return {
        path.relative_to(folder).as_posix(): f"-> {path.readlink()}"
        if path.is_symlink()
        else "folder"
        if path.is_dir()
        else path.read_text(errors="replace")
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("output", OUTPUTS)
def test_what_a_command_did_not_write_is_refused_by_name(output: str, name: str, tmp_path: Path) -> None:
    FOREIGN[name](tmp_path / "out")
    before = everything(tmp_path)
    with pytest.raises(UserError, match=r"out .*: not replaced\. Choose another --out\.$") as refusal:
        OUTPUTS[output].check_writable(tmp_path / "out")
    assert ("symbolic link" in str(refusal.value)) == ("link" in name)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("output", OUTPUTS)
def test_paths_without_a_name_and_the_current_folder_are_refused(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here" / "below")
    for out in (".", "..", "", "/", "a/..", "../below", "../../here"):
        with pytest.raises(UserError, match="the current folder or one above it: not replaced"):
            OUTPUTS[output].check_writable(Path(out))
    assert everything(tmp_path) == {"here": "folder", "here/below": "folder"}


def test_an_earlier_export_is_recognised_and_a_serving_folder_is_not(
    tmp_path: Path, checkpoints: dict[str, Path]
) -> None:
    serving, exported = tmp_path / "serving", tmp_path / "onnx"
    TripleClassifier.build(str(checkpoints["bert"]), 96).save(serving)
    write_manifest(serving, "triple_classifier", TEXT_FORMAT, 96, attention="auto", threshold=0.5)
    before = digests(tmp_path)
    ended = command(tmp_path, "infer.py", "export", "--serving", "serving", "--out", "serving")
    refused(ended, 2, "serving exists and is not an export of `infer.py export`: not replaced")
    assert digests(tmp_path) == before
    exported.mkdir()
    (exported / "model.onnx").write_text("network")
    write_manifest(exported, "triple_classifier_onnx", TEXT_FORMAT, 96)
    (exported / ".DS_Store").write_text("written by a file manager")
    export.EXPORT.check_writable(exported)
    (exported / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"onnx holds notes\.txt, which `infer\.py export` did not write: not replaced"):
        export.EXPORT.check_writable(exported)


def test_each_command_replaces_its_own_output(tmp_path: Path) -> None:
    for output, files in {
        "evaluate": ("report.json", "report.md", "report.html", "recall.png", "bm25_world/report.json"),
        "evaluate, earlier release": ("report.json", "table.md", "table.csv", "recall.png"),
    }.items():
        (tmp_path / output).mkdir()
        report.OUTPUT.check_writable(tmp_path / output)  # an empty folder
        for name in files:
            (tmp_path / output / name).parent.mkdir(exist_ok=True)
            (tmp_path / output / name).write_text("{}")
        report.OUTPUT.check_writable(tmp_path / output)
    (tmp_path / "evaluate" / "bm25_world" / "thesis.tex").write_text("the only copy")
    with pytest.raises(UserError, match=r"evaluate holds bm25_world/thesis\.tex, which `infer\.py evaluate` did not"):
        report.OUTPUT.check_writable(tmp_path / "evaluate")
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(UserError, match=r"is not a report of `infer\.py evaluate`"):
        report.OUTPUT.check_writable(tmp_path / "report.json")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "mined.jsonl").write_text('{"question_id": "q", "passages": []}\n')
    for name in ("empty.jsonl", "mined.jsonl", "new.jsonl"):
        mine.MINED.check_writable(tmp_path / name)
    (tmp_path / "corpus.jsonl").write_text('{"id": "d", "text": "passages of a corpus"}\n')
    for name in ("corpus.jsonl", "evaluate"):
        with pytest.raises(UserError, match=r"is not a file of mined negatives of `infer\.py mine`"):
            mine.MINED.check_writable(tmp_path / name)


def test_files_added_to_an_index_or_a_world_are_not_deleted_with_it(tmp_path: Path) -> None:
    build_bm25(CORPUS, tmp_path / "index")
    (tmp_path / "index" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"index holds notes\.txt"):
        build_bm25(CORPUS[1:], tmp_path / "index", build=Build(overwrite=True))
    small = WorldConfig(questions=50, singles=0, open_singles=0, web_questions=4, manuals=0)
    writing.write_world(small, tmp_path / "world")
    (tmp_path / "world" / "mined.jsonl").write_text("mine")
    with pytest.raises(UserError, match=r"world holds mined\.jsonl"):
        writing.write_world(small, tmp_path / "world")
    (tmp_path / "world" / "mined.jsonl").unlink()
    writing.write_world(small, tmp_path / "world")


def test_a_foreign_folder_in_the_place_of_an_unfinished_build_is_kept(tmp_path: Path, encoder_folder: str) -> None:
    write_jsonl(tmp_path / "corpus.jsonl", CORPUS)
    (tmp_path / "dense.partial").mkdir()
    (tmp_path / "dense.partial" / "thesis.tex").write_text("the only copy")
    ended = command(
        tmp_path, "infer.py", "index", "--corpus", "corpus.jsonl", "--dense.encoder", encoder_folder, "--device", "cpu",
        "--out", "dense", "--overwrite", "true",
    )  # fmt: skip
    refused(ended, 2, "dense.partial holds thesis.tex")
    assert everything(tmp_path / "dense.partial") == {"thesis.tex": "the only copy"}


def test_the_second_of_two_processes_is_told_who_is_at_it(made: Callable[[str], Path], tmp_path: Path) -> None:
    """Every command with --out, while another process holds the lock of its output."""
    place, out = made("asking"), tmp_path / "out"
    process = holder(out)
    for output in OUTPUTS.values():
        with pytest.raises(
            UserError, match=rf"out is in use by process {process.pid} on .+ since .+\. Wait for it, or"
        ):
            output.check_writable(out)
    for program, arguments in COMMANDS.items():
        ended = command(place, "infer.py", program, *arguments, "--out", str(out))
        refused(ended, 2, f"out is in use by process {process.pid} on ", "Wait for it, or choose another --out.")
    with pytest.raises(UserError, match=f"in use by process {process.pid}"):
        writing.write_world(WorldConfig(questions=50), out)
    with pytest.raises(UserError, match=f"in use by process {process.pid}"):
        t5_from_scratch.main(["--corpus", str(place / "corpus.jsonl"), "--out", str(out)])
    process.communicate("\n", timeout=30)
    assert not list(tmp_path.iterdir())


BUILD = """
import sys
from pathlib import Path
from common.errors import exit_code
from harness.commands.index import index
corpus, out = sys.argv[1:]
raise SystemExit(exit_code("infer.py", lambda: index(Path(out), corpus, kind="bm25")))
"""


def test_two_builds_of_different_corpora_into_one_folder(tmp_path: Path) -> None:
    """One is refused while the other reads its corpus, or finds the other's index.

    The survivor is whole and of one corpus.
    """
    corpora = {name: corpus(3000, seed) for seed, name in enumerate(("one.jsonl", "other.jsonl"))}
    for name, passages in corpora.items():
        write_jsonl(tmp_path / name, passages)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", BUILD, str(tmp_path / name), str(tmp_path / "index")],
            cwd=ROOT, stderr=subprocess.PIPE, text=True,
        )
        for name in corpora
    ]  # fmt: skip
    errors = [process.communicate(timeout=120)[1] for process in started]
    codes = [process.returncode for process in started]
    assert sorted(codes) == [0, 2], errors
    (line,) = [line for line in errors[codes.index(2)].splitlines() if line.startswith("infer.py: ")]
    assert "index is in use by process" in line or "index holds another index" in line
    index, survivor = open_index(tmp_path / "index"), corpora[list(corpora)[codes.index(0)]]
    assert list(PassageStore(index.folder)) == survivor
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "one.jsonl", "other.jsonl"]


class Watching:
    """A retriever that looks whether the output is locked while it searches."""

    def __init__(self, retriever: Retriever, out: Path) -> None:
        self.retriever, self.out, self.locked = retriever, out, False

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        with pytest.raises(UserError, match="in use by process"), exclusive(self.out):
            pass
        self.locked = True
        return self.retriever.search(queries, k)


class Echo:
    """A reader that answers with the first title."""

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        return [Answer(q.id, hits[0].passage.title, tuple(hits)) for q, hits in zip(questions, evidence, strict=True)]


def test_outputs_are_locked_while_they_are_computed(tmp_path: Path, encoder: SentenceEncoder) -> None:
    questions, out = str(river_corpus.write_questions(tmp_path)), tmp_path / "out"
    watching = Watching(Bm25Retriever(river_corpus.write_index(tmp_path)), out)
    system = DrRag(watching, selection=SelectionOptions("sm"), reader=Echo())
    for run in (
        lambda: evaluate.evaluate(system, out, questions=questions, resamples=10),
        lambda: mine.mine(watching, questions, out),
    ):
        watching.locked = False
        run()
        assert watching.locked
        shutil.rmtree(out) if out.is_dir() else out.unlink()
    with exclusive(out), pytest.raises(UserError, match="in use by process"):
        build_dense(CORPUS, out, encoder)
    with exclusive(out), pytest.raises(UserError, match="in use by process"):
        build_bm25(CORPUS, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bm25", "out.sha256", "questions.json"]
