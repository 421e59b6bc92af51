"""Folders in which the lines of `lines.yaml` are typed: each holds what its lines name, and nothing that they lack."""

import gzip
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from common.records import Passage
from datamodules.formats.mined_negatives import Mined
from harness.retrievers.bm25 import build_bm25
from tests.conftest import hotpot_rows
from tests.helpers import rerag_world, rewrite_runs, river_corpus
from tests.helpers.document_folders import write_files
from tests.helpers.layout_rows import ROWS
from tests.helpers.mined_files import write_mined
from tests.helpers.mt5 import save_mt5
from tests.helpers.rerag_data import fid_rows
from tests.helpers.runs import fit_here
from tests.helpers.small_world import corpus, write_jsonl
from tests.helpers.tiny_runs import write_config
from tests.trainers import test_dmqr_extractive, test_drrag, test_rerag_training

BM25 = {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": "bm25"}}
DEAD = {  # a language model that no server answers for
    "class_path": "harness.llm.endpoint.ChatEndpoint",
    "init_args": {
        "model": "tiny", "base_url": "http://127.0.0.1:9/v1", "key_variable": None, "max_retries": 0, "cache": None,
    },
}  # fmt: skip


def write_rows(file: Path, rows: Sequence[Any]) -> None:
    """Rows as JSON lines."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def nothing(folder: Path, models: dict[str, Path]) -> None:
    """An empty folder."""


def asking(folder: Path, models: dict[str, Path]) -> None:
    """Questions, corpora, indexes, configs and untrained models for `infer.py`."""

    def config(name: str, word: str, **options: Any) -> None:
        system = {"class_path": f"harness.systems.{word}", "init_args": {"retriever": BM25, **options}}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"system": system}))

    def part(word: str, **options: Any) -> dict[str, Any]:
        return {"class_path": f"harness.{word}", "init_args": options}

    for name, model in (("t5", "t5"), ("bert", "bert"), ("lm", "plain_lm")):
        (folder / name).symlink_to(models[model])
    river_corpus.write_questions(folder).rename(folder / "rivers.json")
    for name, rows in {
        "questions": hotpot_rows(2), "broken": [*hotpot_rows(2), {"_id": "x"}], "fid": fid_rows(2),
        "bare": [fid_rows(1)[0] | {"ctxs": []}], "nopassages": [{**ROWS["fid"], "ctxs": []}],
    }.items():  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(rows))
    write_jsonl(folder / "corpus.jsonl", corpus(3))
    (folder / "empty").mkdir()
    files = {"empty.json": "", "notes/thesis.tex": "the only copy", "manuals/a.md": "# Alba\n\nA pump.\n"}
    files |= {"deep.yaml": f"system: {'[' * 3000}{']' * 3000}\n", "deep/serving.json": "[" * 3000 + "]" * 3000}
    files |= {"pool.yaml": "strategies: [{name: a, title: 'A: B', description: d, guideline: g}]"}
    files |= {"torn.json": json.dumps(fid_rows(2))[:-40], "dead.yaml": yaml.safe_dump(DEAD)}
    write_files(folder, {**files, "torn.json.gz": gzip.compress(json.dumps(fid_rows(2)).encode())[:-40]})
    river_corpus.write_index(folder)
    build_bm25(river_corpus.PASSAGES.values(), folder / "again", k1=1.2)
    build_bm25([Passage.of("Alba", "alba mountain railway"), Passage.of("Elbe", "elbe river")], folder / "other")
    rerag_world.write_serving(models["t5"], folder / "both")
    rerag_world.write_serving(models["t5"], folder / "estimator", generator=None)
    rerag_world.write_serving(models["t5"], folder / "generator", estimator=False)
    made = [{"question": "alba river", "strategy": name, "rewrite": f"{name} alba"} for name in ("gqr", "kwr")]
    write_rows(folder / "made.jsonl", made)
    written = part("rewriters.file.FileRewriter", rewrites="made.jsonl")
    rewriter = part("rewriters.llm.LlmRewriter", llm=DEAD)
    config("rrf", "dmqr.Dmqr", fusion="rrf", rewriter=rewriter)
    config("rerank", "dmqr.Dmqr", rewriter=rewriter)
    hyde = part("rewriters.prompted.PromptRewriter", llm=DEAD, prompt="hyde")
    config("hyde", "dmqr.Dmqr", fusion="rrf", rewriter=hyde, original=False)
    config("file", "dmqr.Dmqr", fusion="rrf", rewriter=written)
    config("rm3", "retrieve_read.RetrieveRead", retriever=part("retrievers.rm3.Rm3Retriever", retriever=BM25))
    config("plain", "retrieve_read.RetrieveRead", k=2)
    config("rerag", "rerag.ReRag", serving="both", device="cpu")
    config("inner", "retrieve_read.RetrieveRead", retriever="twice_part.yaml")
    for name, text in {  # a key stands twice
        "twice": f"{(folder / 'plain.yaml').read_text()}    k: 3\n",
        "twice_part": f"{yaml.safe_dump(BM25)}  index: b\n",
        "twice_llm": f"{yaml.safe_dump(DEAD)}  model: b\n", "twice_train": "name: a\nname: b\n",
        "systems": "systems:\n  a: --config plain.yaml\n  a: --config plain.yaml\n",
    }.items():  # fmt: skip
        (folder / f"{name}.yaml").write_text(text)
    unbuilt = part("retrievers.bm25.Bm25Retriever", index="empty")
    config("empty", "retrieve_read.RetrieveRead", retriever=unbuilt)
    plain, served = (yaml.safe_load((folder / f"{name}.yaml").read_text()) for name in ("empty", "rerag"))
    judge = {"llm": part("llm.local.CausalLm", model="t5")}
    for name, more in {
        "judged": {**plain, "judge": judge}, "other": {**served, "study": {"rows": ["QDC"]}},
        "limited": {**served, "limit": 3}, "mistyped": {**served, "layuot": "x"},
    }.items():  # fmt: skip
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(more))


def trained(folder: Path, models: dict[str, Path]) -> None:
    """Rewrites, configs with and without a model to start from, a finished run `whole`, and a damaged one, `torn`."""
    rewrite_runs.write_run(folder, Path("no-such-model"))
    (folder / "config.yaml").rename(folder / "nomodel.yaml")
    rewrite_runs.write_run(folder, models["t5"])
    (folder / "torn.jsonl").write_text('{"question": "a", "strategy": "gqr", "rewrite": "b"}\n{"question": ')
    fit_here(folder, "--name", "whole")
    shutil.copytree(folder / "checkpoints/whole", folder / "checkpoints/torn")
    (folder / "checkpoints/torn/last.ckpt.sha256").write_text("{}")


def mt5(folder: Path, models: dict[str, Path]) -> None:
    """RE-RAG's questions, and an mT5 whose vocabulary splits the word "false"."""
    (folder / "bert").symlink_to(models["bert"])
    test_rerag_training.write_config(folder, save_mt5(folder / "mt5"), true_word="yes")
    (folder / "config.yaml").rename(folder / "bare.yaml")
    test_rerag_training.write_config(folder, folder / "mt5")


def scores(folder: Path, models: dict[str, Path]) -> None:
    """A reader that trains with the retriever's scores, and files that lack some."""
    (folder / "t5").symlink_to(models["t5"])
    rows = fid_rows(20, seed=1)
    for row in rows:
        for place, item in enumerate(row["ctxs"]):
            item["score"] = place
    (folder / "fid.json").write_text(json.dumps(rows))
    (folder / "bare.json").write_text(json.dumps(fid_rows(12)))
    unscored = Mined([Passage.of("name0", "an unscored passage")])
    write_mined(folder / "more.jsonl", [(row["id"], unscored) for row in rows[:2]])
    del rows[0]["ctxs"][0]["score"]
    (folder / "partly.json").write_text(json.dumps(rows))
    text = {"max_answer_tokens": 4}
    options = {"estimator": None, "generator": "t5", "relevance": "retriever", "max_tokens": 48, "text": text}
    data = {"train": [{"layout": "fid", "path": "fid.json"}], "validation_fraction": 0.3}
    write_config(folder, "rerag.ReRagTrainer", options, "rerag.ReRagData", data, "val/em")


def rewriter(folder: Path, models: dict[str, Path]) -> None:
    """A rewriter's data, with gold passages and an index that has none of them."""
    (folder / "bert").symlink_to(models["bert"])
    rewrite_runs.write_rewrites(folder, rewrite_runs.rows(60))
    rewrite_runs.write_config(folder, models["t5"])
    gold = [rewrite_runs.gold_of(row) for row in rewrite_runs.rows(60) if not row.get("history")]
    (folder / "gold.json").write_text(json.dumps(gold))
    (folder / "other.json").write_text(json.dumps([rewrite_runs.gold_of({"question": "is name3"})]))
    build_bm25([Passage.of("name1", "another corpus")], folder / "index")


def drrag(folder: Path, models: dict[str, Path]) -> None:
    """Questions in HotpotQA's layout."""
    (folder / "hotpot.json").write_text(json.dumps(hotpot_rows(40)))
    test_drrag.write_config(folder, models["bert"], folder / "hotpot.json")


def rerag(folder: Path, models: dict[str, Path]) -> None:
    """Questions with their contexts."""
    test_rerag_training.write_config(folder, models["t5"])


def words(folder: Path, models: dict[str, Path]) -> None:
    """Labels of words."""
    test_dmqr_extractive.write_run(folder, models["bert"])


EACH = (nothing, asking, trained, mt5, scores, rewriter, drrag, rerag, words)
PLACES = {each.__name__: each for each in EACH}
