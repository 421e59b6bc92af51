"""Output paths: a command replaces only what it wrote itself, refuses everything else in one line, and changes
nothing; two processes never write one output at the same time."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from common.errors import UserError
from common.locks import exclusive
from common.records import Ranked
from datamodules.world import writing
from datamodules.world.world import WorldConfig
from harness.commands import evaluate, export, label, mine, score
from harness.evaluation import report
from harness.indexing import index_folder
from harness.indexing.index_folder import Build
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.interfaces import Retriever
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.dense import build_dense
from harness.selection.options import SelectionOptions
from harness.systems.drrag import DrRag
from models.drrag.triple_tokenizer import TEXT_FORMAT
from models.serving_manifest import write_manifest
from tests.common.test_locks import holder
from tests.helpers.commands import command, refused
from tests.helpers.document_folders import write_files
from tests.helpers.small_world import corpus, write_jsonl
from trainers import t5_from_scratch

CORPUS = corpus(12)
FOREIGN: dict[str, dict[str, str]] = {  # what a user may have at --out
    "a run's folder": dict.fromkeys(("out/best.ckpt", "out/config.yaml", "out/serving/serving.json"), "run"),
    "a folder of notes": {"out/thesis.tex": "the only copy"},
    "a repository": {"out/.git/HEAD": "ref"},
    "a file": {"out": "the only copy"},
    "a link": {"elsewhere/kept.txt": "kept"},
    "a link to nothing": {},
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


def everything(folder: Path) -> dict[Path, bytes | bool]:
    """Every file, folder and link below a folder; files with their content."""
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("output", OUTPUTS)
def test_what_a_command_did_not_write_is_refused_by_name(output: str, name: str, tmp_path: Path) -> None:
    write_files(tmp_path, FOREIGN[name])
    if "link" in name:
        (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    before = everything(tmp_path)
    with pytest.raises(UserError, match=r"out .*: not replaced\. Choose another --out\.$") as refusal:
        OUTPUTS[output].check_writable(tmp_path / "out")
    assert ("symbolic link" in str(refusal.value)) == ("link" in name)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("out", [".", "..", "", "/", "a/..", "../below", "../../here"])
def test_paths_without_a_name_and_the_current_folder_are_refused(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here" / "below")
    before = everything(tmp_path)
    for output in OUTPUTS.values():
        with pytest.raises(UserError, match="the current folder or one above it: not replaced"):
            output.check_writable(Path(out))
    assert everything(tmp_path) == before


REPORT = dict.fromkeys(("report.json", "report.md", "report.html", "recall.png", "bm25_world/report.json"), "{}")
EARLIER = dict.fromkeys(("report.json", "table.md", "table.csv", "recall.png"), "{}")  # of an earlier release
MORE = {"thesis.tex": "the only copy"}
ADDED = r"out holds thesis\.tex, which `infer\.py {}` did not"


@pytest.mark.parametrize(
    ("output", "found", "refusal"),
    [
        ("evaluate", {}, ""),
        ("evaluate", REPORT, ""),
        ("evaluate", EARLIER, ""),
        ("evaluate", REPORT | MORE, ADDED.format("evaluate")),
        ("evaluate", EARLIER | MORE, ADDED.format("evaluate")),
        ("export", {".DS_Store": "written by a file manager"}, ""),
        ("export", MORE, ADDED.format("export") + " write: not replaced"),
        ("mine", None, ""),
        ("mine", "", ""),
        ("mine", '{"question_id": "q", "passages": []}\n', ""),
        ("mine", '{"id": "d", "text": "a"}\n', "is not a file of mined negatives"),
    ],
)
def test_what_a_command_wrote_is_replaced_unless_a_file_was_added(
    output: str, found: dict[str, str] | str | None, refusal: str, tmp_path: Path
) -> None:
    """A file is replaced if it is empty or its first line is of the command."""
    out = tmp_path / "out"
    if isinstance(found, str):
        out.write_text(found)
    elif found is not None:
        out.mkdir()
        if output == "export":
            write_manifest(write_files(out, {"model.onnx": "network"}), "triple_classifier_onnx", TEXT_FORMAT, 96)
        write_files(out, found)
    with pytest.raises(UserError, match=refusal) if refusal else nullcontext():
        OUTPUTS[output].check_writable(out)


def test_files_added_to_an_index_or_a_world_are_not_deleted_with_it(tmp_path: Path) -> None:
    small = WorldConfig(questions=50, singles=0, open_singles=0, web_questions=4, manuals=0)

    def write(number: int = 0) -> None:
        build_bm25(CORPUS[number:], tmp_path / "index", build=Build(overwrite=True))
        writing.write_world(small, tmp_path / "world")

    write()
    for name in ("index", "world"):
        (tmp_path / name / "notes.txt").write_text("mine")
        with pytest.raises(UserError, match=rf"{name} holds notes\.txt"):
            write(1)
        (tmp_path / name / "notes.txt").unlink()
    write(2)


def test_a_foreign_folder_in_the_place_of_an_unfinished_build_is_kept(tmp_path: Path, encoder_folder: str) -> None:
    write_jsonl(tmp_path / "corpus.jsonl", CORPUS)
    write_files(tmp_path, {"dense.partial/thesis.tex": "the only copy"})
    before = everything(tmp_path / "dense.partial")
    typed = ("--corpus", "corpus.jsonl", "--dense.encoder", encoder_folder, "--device", "cpu", "--out", "dense")
    ended = command(tmp_path, "infer.py", "index", *typed, "--overwrite", "true")
    refused(ended, 2, "dense.partial holds thesis.tex")
    assert everything(tmp_path / "dense.partial") == before


class Watching:
    """A retriever that looks whether the output is locked while it searches."""

    def __init__(self, retriever: Retriever, out: Path) -> None:
        self.retriever, self.out, self.locked = retriever, out, False

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        with pytest.raises(UserError, match="in use by process"), exclusive(self.out):
            pass
        self.locked = True
        return self.retriever.search(queries, k)


def test_an_output_is_locked_while_it_is_computed_and_a_second_process_is_told_who_is_at_it(
    made: Callable[[str], Path], tmp_path: Path, encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command with --out."""
    monkeypatch.setattr("common.locks._SETTLED_SECONDS", 0.05)  # what is waited for a lock, a dozen times
    place, out = made("asking"), tmp_path / "out"
    process = holder(out)
    told = f"out is in use by process {process.pid} on "
    for output in OUTPUTS.values():
        with pytest.raises(UserError, match=told + r".+ since .+\. Wait for it, or"):
            output.check_writable(out)
    for program, arguments in COMMANDS.items():
        ended = command(place, "infer.py", program, *arguments, "--out", str(out))
        refused(ended, 2, told, "Wait for it, or choose another --out.")
    for write in (
        lambda: writing.write_world(WorldConfig(questions=50), out),
        lambda: t5_from_scratch.main(["--corpus", str(place / "corpus.jsonl"), "--out", str(out)]),
        lambda: build_dense(CORPUS, out, encoder),
        lambda: build_bm25(CORPUS, out),
    ):
        with pytest.raises(UserError, match=f"in use by process {process.pid}"):
            write()
    process.communicate("\n", timeout=30)
    assert not list(tmp_path.iterdir())

    watching = Watching(Bm25Retriever(place / "bm25"), out)
    system, questions = DrRag(watching, selection=SelectionOptions("sm")), str(place / "rivers.json")
    evaluate.evaluate(system, out, questions=questions, resamples=10)
    assert watching.locked
    watching.out, watching.locked = tmp_path / "mined", False
    mine.mine(watching, questions, watching.out)
    assert watching.locked
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mined", "mined.sha256", "out"]
