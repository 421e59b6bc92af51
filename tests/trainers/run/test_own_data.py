"""A user's own files, as spreadsheets write them, through the recipes: index, fit, evaluate."""

import json
import re
import shlex
from pathlib import Path

import pytest

from common.errors import MissingInputError, UserError
from common.files import read_json
from datamodules.cache.search_results import Search, SearchResults
from datamodules.examples.data_files import QuestionDataFile
from tests.helpers.commands import command, done
from tests.helpers.forked import ROOT, forked
from trainers.run.searching import search

pytestmark = pytest.mark.whole_run
COUNT = 40
COMMON = ("--data.validation_fraction", "0.3", "--data.tokens_per_step", "512")
RECIPES = {  # one begins with the model that it names, the others with a tiny one
    "classifier": ("--model.layers", "1", *COMMON),
    "reranker": ("--data.questions_per_step", "4", *COMMON[:2], "--model.estimator"),
    "extractive": (*COMMON, "--data.full_change", "0.05", "--model.pretrained"),
}


def write_files(folder: Path) -> None:
    """A corpus, questions over it and a log of clicks, with odd ids, an empty row and one that is far too long."""
    (folder / "configs").symlink_to(ROOT / "configs")
    corpus, asked = ["ID;Title;Text;Page"], ["Question\tGold IDs\tAnswer\tCustomer"]
    for n in range(COUNT):
        town = f"{'BCDFGHKL'[n % 8]}a{'mnprstvz'[n // 8]}olm"
        corpus += [f"p {n};Person {n};Person {n}, a painter, was born in {town}.;{n}"]
        corpus += [f"{n:03};{town};{town} lies by the river {town[::-1]}, has a market and many sights to see.;1"]
        asked += [f"By which river lies the place where Person {n} was born?\tp {n} | {n:03}\t{town[::-1]}\tx{n}"]
    asked += ["\tp 1\tFlow1\t", f"{'very ' * 900}long question?\tp 1|001\tFlow1\tx1"]
    asked += ["by WHICH river lies the place where  person 3 was born?\tp 3|003\tFlow3\tx3"]
    (folder / "corpus.csv").write_bytes("\ufeff".encode() + "\r\n".join(corpus).encode() + b"\r\n")
    (folder / "asked.tsv").write_bytes("\r\n".join(asked).encode("utf-16"))
    clicks = ["query,passage_id,clicked", *(f"Where was Person {n} born?,p {n},1" for n in range(COUNT))]
    clicks += [f"Where was Person {n} born?,{n:03},0" for n in range(COUNT)]
    (folder / "clicks.csv").write_text("\n".join(clicks))


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    write_files(folder)
    done(folder, "infer.py", "index", "--corpus", "corpus.csv", "--kind", "[bm25, dense]", "--out", "indexes/own")
    return folder


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_trains_and_is_measured_beside_bm25_and_dense(place, checkpoints, recipe) -> None:
    file = "clicks.csv" if recipe == "reranker" else "asked.tsv"
    tiny = () if recipe == "classifier" else (str(checkpoints["bert"]), "--model.max_tokens", "128")
    name = f"own-{recipe}-{file.partition('.')[0]}"
    typed = ("fit", "--config", f"configs/train/own/{recipe}.yaml", "--data.train", file, "--data.corpus", "corpus.csv")
    ended = done(place, "train.py", *typed, "--name", name, *RECIPES[recipe], *tiny, "--trainer.precision", "32-true")
    (printed,) = re.findall(r"python infer\.py (evaluate .*)", ended.out + ended.err)
    measures = shlex.split(printed.replace("FILE", file).replace(f"reports/{name}", "reports/printed"))
    if recipe == "reranker":  # without answers
        done(place, "infer.py", *measures, "--limit", "2", "--resamples", "10", "--studies", "false")
    audit = read_json(place / "checkpoints" / name / "audit.json", "")
    if file == "asked.tsv" and recipe != "extractive":  # which counts them when it labels
        assert any("'customer'" in line for line in audit["unusual_rows"])
        assert any("field 'question' or 'query' is null" in line for line in audit["unusual_rows"])
    config = place / f"{name}.yaml"
    listed = (ROOT / f"configs/compare/own/{recipe}.yaml").read_text()
    config.write_text(listed.replace(f"checkpoints/own-{recipe}/", f"checkpoints/{name}/"))
    done(
        place, "infer.py", "evaluate", "--config", config.name, "--questions", file, "--limit", "4",
        "--out", f"reports/{name}", "--resamples", "50",
    )  # fmt: skip
    report = read_json(place / "reports" / name / "report.json", "")
    assert {"bm25", "dense", "trained"} <= {*json.dumps(report).replace('"', " ").split()}
    assert (place / "reports" / name / "report.html").is_file()


def test_what_was_found_is_kept_until_a_file_changes(place, monkeypatch) -> None:
    monkeypatch.chdir(place)
    source = QuestionDataFile("few.tsv", corpus="corpus.csv")
    found = []
    for count in (4, 4, 5):
        lines = Path("asked.tsv").read_text(encoding="utf-16").splitlines()[:count]
        Path("few.tsv").write_text("\n".join(lines))
        results = SearchResults("mine", Search("indexes/own"), [source], None)
        search(results)
        (file,) = results.files
        found.append((file, Path(file).stat().st_mtime_ns, len(Path(file).read_text().splitlines())))
    assert found[0] == found[1]
    assert [rows for *_, rows in found] == [3, 3, 4]
    with pytest.raises(UserError, match=r"infer\.py mine .* ended with exit code 65"):
        search(SearchResults("mine", Search("indexes/own"), [QuestionDataFile("asked.tsv", corpus="clicks.csv")], None))
    with pytest.raises(MissingInputError, match=r"needs configs/parts/bm25\.yaml, and the indexes below indexes/none"):
        search(SearchResults("mine", Search("indexes/none"), [source], None))
    for kind, hint in ("dense", r"--kind '\[dense\]' --out none`"), ("fused", r"--kind '\[dense, bm25\]' --out none`"):
        with pytest.raises(MissingInputError, match=hint):
            search(SearchResults("mine", Search("none", f"configs/parts/{kind}.yaml"), [source], None))


def test_two_ranks_search_once(place) -> None:
    """And a run from the saved config searches no more."""
    lines = (place / "asked.tsv").read_text(encoding="utf-16").splitlines()[: COUNT - 1]
    (place / "ranks.tsv").write_text("\n".join(lines))
    before = {*(place / "cache/searched").glob("mine-*.jsonl")}
    files = ("--data.train", "ranks.tsv", "--data.corpus", "corpus.csv")
    further = (*RECIPES["classifier"], "--trainer.precision", "32-true", "--trainer.max_steps", "1")
    ranks = ("--trainer.devices", "2", "--trainer.strategy", "ddp")
    options = ("--config", "configs/train/own/classifier.yaml", *files, *further, *ranks, "--name", "ranks")
    ended = forked("train", place, "fit", *options, processes=2)
    assert ended.returncode == 0, ended.stderr[-3000:]
    said = ended.stdout + ended.stderr
    (file,) = {*(place / "cache/searched").glob("mine-*.jsonl")} - before
    assert said.count(" hard negatives for ") == 1  # whichever rank comes first; the other one waits for the file
    saved = ("--config", "checkpoints/ranks/config.yaml", "--trainer.devices", "1", "--trainer.strategy", "auto")
    again = command(place, "train.py", "validate", *saved, "--resume", "auto")
    assert again.code == 0, again.err[-3000:]
    assert "what the retriever finds was written before" in again.err
    assert {*(place / "cache/searched").glob("mine-*.jsonl")} == before | {file}
