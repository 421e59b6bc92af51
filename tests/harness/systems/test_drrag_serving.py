"""DR-RAG with a real, tiny, untrained classifier loaded from a serving folder.

Resuming changes nothing, and tuned options are the classifier's own.
"""

import itertools
import json
import random

import pytest
import torch

import infer
from common.errors import ArtifactError
from common.files import sha256
from common.records import Question
from harness.commands.evaluate import evaluate
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.selection.options import SelectionOptions
from harness.selection.tuned import SELECTION
from harness.systems.drrag import DrRag
from models.drrag.triple_classifier import KIND, TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT
from models.serving_manifest import write_manifest
from tests.helpers.layout_rows import hotpot_row, source
from tests.helpers.reports import cells, measured_cells, report
from tests.helpers.small_world import WORDS, corpus, write_encoder

pytestmark = pytest.mark.numeric

PASSAGES = corpus(60, seed=1, longest=12)
CHANCE = random.Random(7)
QUESTIONS = [
    Question(str(number), " ".join(CHANCE.choices(WORDS, k=3)), passages=tuple(gold), support=tuple(p.id for p in gold))
    for number, gold in enumerate(CHANCE.sample(PASSAGES, 2) for _ in range(6))
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drrag")
    build_bm25(PASSAGES, folder / "index")
    torch.manual_seed(0)
    classifier = TripleClassifier.build(write_encoder(folder / "encoder"), max_tokens=32)
    with torch.no_grad():
        classifier.network.classifier.out_proj.weight *= 1000  # an untrained head gives about 0.5 to everything
    serving = folder / "serving"
    serving.mkdir()
    classifier.save(serving)
    write_manifest(serving, KIND, TEXT_FORMAT, 32, threshold=0.5, attention="auto")
    return folder


def load(folders, **options):
    return DrRag(Bm25Retriever(folders / "index"), serving=folders / "serving", device="cpu", **options)


def written(folder):
    """A file of the questions in HotpotQA's layout, all of whose passages are gold."""
    rows = [
        hotpot_row(q.id, q.text, "x", [p.title for p in q.passages], [(p.title, p.text) for p in q.passages])
        for q in QUESTIONS
        if len({passage.title for passage in q.passages}) == 2
    ]
    return source(folder, json.dumps(rows))


def test_an_interrupted_evaluation_resumes_to_the_same_report(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("harness.runtime.memo.PAIRS_AT_ONCE", 16)
    arguments = {"questions": written(tmp_path), "study": {"ks": (3, 4)}, "resamples": 50}
    evaluate(load(folders), out=tmp_path / "whole", **arguments)
    score, calls = TripleClassifier.probabilities, itertools.count(1)

    def interrupted(self, triples):
        if next(calls) == 4:
            raise KeyboardInterrupt
        return score(self, triples)

    monkeypatch.setattr(TripleClassifier, "probabilities", interrupted)
    with pytest.raises(KeyboardInterrupt):
        evaluate(load(folders), out=tmp_path / "resumed", **arguments)
    assert not (tmp_path / "resumed").exists()
    (scores,) = (tmp_path / "resumed.partial").iterdir()
    assert scores.read_text(encoding="utf-8").count("\n") == 1 + 3

    evaluate(load(folders), out=tmp_path / "resumed", **arguments)
    assert not (tmp_path / "resumed.partial").exists()
    assert measured_cells(tmp_path / "whole") == measured_cells(tmp_path / "resumed")
    whole, resumed = (report(tmp_path / name)["study"] for name in ("whole", "resumed"))
    assert whole["pairs scored"] == resumed["pairs scored"] > 48
    assert resumed["classifier"]["sha256"] == sha256(folders / "serving" / "serving.json")


def test_tuned_options_belong_to_the_classifier_and_keep_to_the_number_of_documents(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base = ["--system", "harness.systems.drrag.DrRag", "--system.serving", str(folders / "serving"),
            "--system.retriever", "harness.retrievers.bm25.Bm25Retriever", "--system.device", "cpu",
            "--system.retriever.index", str(folders / "index"), "--system.selection.method", "cfs",
            "--questions", written(tmp_path), "--system.selection.k", "3", "--memo", "scores"]  # fmt: skip
    infer.main(["tune", *base, "--out", "selection.json", "--tuning.ks", "[3,4]", "--tuning.grid.depths", "[12]",
                "--tuning.max_documents", "[2.9,3.5]"])  # fmt: skip
    evaluate = ["evaluate", *base, "--system.selection_file", "selection.json", "--study.ks", "[3,4]",
                "--study.rows", "[CFS]", "--resamples", "50"]  # fmt: skip
    infer.main([*evaluate, "--out", "tuned"])
    with monkeypatch.context() as kept:  # all scores are
        kept.setattr(TripleClassifier, "probabilities", None)
        infer.main([*evaluate, "--out", "again"])
    tuned = cells(tmp_path / "tuned")
    assert cells(tmp_path / "again").keys() == tuned.keys()
    for k, most in ((3, 2.9), (4, 3.5)):
        table = f"recall, k = {k}"
        assert tuned[table, "CFS", "recall %"] >= tuned[table, "SM", "recall %"]
        assert tuned[table, "CFS", "documents"] <= most
    file = tmp_path / "selection.json"
    assert load(folders, selection=SelectionOptions("cfs", 4), selection_file=file).answer(QUESTIONS)[0].evidence

    SELECTION.write(tmp_path / "other.json", {"selection": {}, "classifier": "abc", "chosen_on": {}})
    with pytest.raises(ArtifactError, match="was chosen for the classifier"):
        load(folders, selection_file=tmp_path / "other.json").load()
