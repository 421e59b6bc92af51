"""What README and docs print runs.

Their commands and snippets, word for word, on a tiny generated world and with little training.
"""

import gzip
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import infer
import train
from datamodules.world.__main__ import main as make_world
from tests.docs.documents import ROOT, fences, printed_on, words
from trainers.t5_from_scratch import main as t5_from_scratch

pytestmark = pytest.mark.slow

README, RE_RAG, SERVING, OPERATING = (
    ROOT / page for page in ("README.md", "docs/train_rerag.md", "docs/serve.md", "docs/operate.md")
)
WORLD = "--questions 80 --singles 60 --open_singles 20 --web_questions 5 --manuals 1"
ONE_EPOCH = "--trainer.max_epochs 1 --trainer.devices 1 --trainer.accelerator cpu --trainer.precision 32-true"
READER = "--trainer.strategy auto --trainer.check_val_every_n_epoch 1 --model.optimizer.warmup_steps 0"
TRIPLES = (
    "--data.train '[{layout: hotpotqa, path: data/hotpotqa/hotpot_distractor_train.json.gz}]' --model.layers 1 "
    "--data.validation '[{layout: hotpotqa, path: data/world/validation.json}]' --data.hard_negatives null"
)
BIGBIRD = "--name drrag-hotpotqa --model.pretrained sentence-transformers/all-MiniLM-L6-v2 --data.tokens_per_step 4096"
T5 = (
    "--model.estimator checkpoints/t5-world --model.generator checkpoints/t5-world --data.contexts 3 "
    "--trainer.accumulate_grad_batches 1"
)
FEW = "--limit 4 --resamples 20"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the configs, a tiny world, and its files under the names that the pages use."""
    folder = tmp_path_factory.mktemp("workplace")
    (folder / "configs").symlink_to(ROOT / "configs")
    make_world(["--out", str(folder / "data/world"), *WORLD.split()])
    named = {
        "hotpotqa/hotpot_distractor_train.json.gz": "train.json",
        "hotpotqa/hotpot_distractor_dev.json.gz": "test.json",
        "nq/nq-open-20_total_documents_train.jsonl.gz": "fid_train.json",
        "nq/nq_retrieved_train.json.gz": "fid_validation.json",
        "nq/nq-open-20_total_documents_dev.jsonl.gz": "fid_test.json",
    }
    for name, source in named.items():
        (folder / "data" / name).parent.mkdir(exist_ok=True)
        (folder / "data" / name).write_bytes(gzip.compress((folder / "data/world" / source).read_bytes()))
    shutil.copy(folder / "data/world/corpus.jsonl", folder / "corpus.jsonl")
    return folder


@pytest.fixture
def here(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, as working directory."""
    monkeypatch.chdir(workplace)
    monkeypatch.setenv("WANDB_MODE", "disabled")
    return workplace


def run(page: Path, beginning: str, *extra: str) -> None:
    """The one command of a page that is or begins so, in this process, with options that make it small."""
    found = {each.text for each in printed_on(page) if " ".join(words(each.text)).startswith(beginning)}
    (command,) = {beginning} & found or found
    _, *arguments = words(command)
    if command.startswith("torchrun"):
        arguments = arguments[2:]
    mains: dict[str, Callable] = {"train.py": train.main, "infer.py": infer.main, "-m": t5_from_scratch}
    rest = arguments[2:] if arguments[0] == "-m" else arguments[1:]
    mains[arguments[0]]([*rest, *shlex.split(" ".join(extra))])


def snippets(page: Path) -> list[str]:
    """The Python of a page."""
    return [text for language, text in fences(page) if language == "python"]


def run_snippet(page: Path, code: str, small: dict[str, str] | None = None) -> None:
    """Python of a page, with other text in the place of some, such as smaller models."""
    for text, instead in (small or {}).items():
        assert text in code
        code = code.replace(text, instead)
    exec(compile(code, str(page), "exec"), {"__name__": "snippet"})


def test_drrag(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("dense", "bm25", "links"):
        infer.main(["index", "--corpus", "corpus.jsonl", "--kind", kind, "--out", f"indexes/hotpotqa/{kind}"])
    run(OPERATING, "torchrun --nproc-per-node 8 train.py fit", ONE_EPOCH, TRIPLES, BIGBIRD)
    run(OPERATING, "python train.py fit --config checkpoints/", "--trainer.max_epochs 2")
    state = json.loads(Path("checkpoints/drrag-hotpotqa/state.json").read_text())
    assert (state["status"], state["epoch"]) == ("done", 2)
    run(README, "python infer.py evaluate --config configs/infer/drrag", FEW, "--study.ks [3] --study.rows [QDC,CFS]")
    assert "CFS" in Path("reports/hotpotqa/report.md").read_text()
    run(SERVING, "python infer.py export --serving checkpoints/drrag-hotpotqa")
    assert Path("exports/drrag-onnx/model.onnx").is_file()
    capsys.readouterr()
    run(README, "python infer.py ask --config configs/infer/drrag")
    assert "Question: Where was the director of Jaws born?" in capsys.readouterr().out


def test_plain_lightning(here: Path, checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    classifier, estimator, rewriter, system = snippets(README)
    run_snippet(README, classifier, {"max_tokens=256": "max_tokens=96, layers=1"})
    run_snippet(README, estimator, {"google-t5/t5-base": str(checkpoints["t5"]), "contexts=8": "contexts=3"})
    run_snippet(README, rewriter, {"google/flan-t5-base": str(checkpoints["t5"])})
    for name, part in (("estimator", "generator"), ("rewriter", "rewriter")):
        assert (Path("checkpoints") / name / "serving" / part / "model.safetensors").is_file()
    run(README, "python infer.py index --corpus data/world/corpus.jsonl")
    capsys.readouterr()
    run_snippet(README, system)
    assert len(re.findall(r"^-?\d\.\d{3} \S", capsys.readouterr().out, flags=re.MULTILINE)) == 8


def test_rerag(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(RE_RAG, "python -m trainers.t5_from_scratch --corpus [data/world/corpus.jsonl")
    run(RE_RAG, "python train.py fit --config configs/quickstart/reader_train.yaml", ONE_EPOCH, READER)
    run(RE_RAG, "python train.py fit --config configs/quickstart/rerag_train.yaml", ONE_EPOCH, READER)
    run(RE_RAG, "python train.py fit --config configs/train/rerag_nq.yaml", ONE_EPOCH, T5)
    run(RE_RAG, "python infer.py index --layout fid --corpus")
    small = "--system.init_args.candidates 6 --system.init_args.contexts 3"
    evaluate = "python infer.py evaluate --config configs/infer/rerag.yaml --layout fid --paper nq --questions"
    run(RE_RAG, evaluate, FEW, small)
    assert "Table 7" in Path("reports/rerag-nq/report.md").read_text()
    capsys.readouterr()
    few = "--system.init_args.candidates 30 --system.init_args.threshold 0.5"  # so little training exports none
    run(RE_RAG, "python infer.py ask --config", few)
    assert "Question: who wrote the origin of species" in capsys.readouterr().out
    infer.main(["index", "--corpus", "corpus.jsonl", "--kind", "bm25", "--out", "indexes/world/bm25"])
    capsys.readouterr()
    (reading,) = snippets(SERVING)
    run_snippet(SERVING, reading)
    assert re.search(r"\[.+, .+\]$", capsys.readouterr().out.strip())  # two contexts, by title
