"""DR-RAG with a real, tiny, untrained classifier loaded from a serving folder.

Rounds, batches and resuming change nothing.
"""

import itertools
import json
import random
import shutil

import pytest
import torch

import infer
from common.errors import ArtifactError
from common.files import sha256
from common.records import Question
from common.sealed_json import unsealed, write_sealed
from harness.commands.evaluate import evaluate
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.two_stage import search_twice
from harness.selection.lazy_scoring import decide
from harness.selection.options import SelectionOptions
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


@pytest.mark.parametrize("selection", ["cis", "cfs", "ranked"])
def test_batched_rounds_equal_one_forward_per_pair(folders, selection):
    system = load(folders, selection=SelectionOptions(selection, k=4))
    options, texts = system.selection, [question.text for question in QUESTIONS]
    second = {1: (options.concatenations, options.concatenated_size)}
    retrieval = search_twice(system.retriever, QUESTIONS, options.ranking_size, second)[1]
    by_id = {passage.id: passage for passage in PASSAGES}

    def one_by_one(asked):
        return [system.scorer.probabilities([(texts[job], by_id[d1], by_id[d2])])[0] for job, (d1, d2) in asked]

    expected = decide([(options, results.rankings) for results in retrieval.results], one_by_one, lookahead=1)
    answers = system.answer(QUESTIONS)
    assert [[hit.passage.id for hit in answer.evidence] for answer in answers] == [d.documents for d in expected]
    probabilities = [p for decision in expected for p in decision.scores.values()]
    assert max(probabilities) - min(probabilities) > 0.2  # the scores do decide something


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

    other = tmp_path / "serving"
    shutil.copytree(folders / "serving", other)
    manifest = unsealed(other / "serving.json", json.loads((other / "serving.json").read_text()), "")
    write_sealed(other / "serving.json", {**manifest, "threshold": 0.25})
    with pytest.raises(ArtifactError, match="was chosen for the classifier"):
        DrRag(Bm25Retriever(folders / "index"), other, device="cpu", selection_file=file).load()
