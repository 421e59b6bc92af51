"""The retriever's scores in the estimator's logit: the sum, its weight, the folder, both who serve it, refusals."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from common.errors import UserError
from common.records import Question
from datamodules.formats.reading import read_questions
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.rerank import RerankedRetriever
from harness.systems.rerag import ReRag
from models.base_order import BaseOrder, below_best
from models.rerag.model import ReRagModel
from tests.helpers.rerag_data import fid_rows
from tests.helpers.runs import fit_here, metrics
from tests.helpers.tolerances import model_close
from tests.trainers.test_rerag_training import scored_rows, write_config
from trainers.rerag_options import Loss

LABELS = {"generator": None, "loss": Loss(label_weight=1.0, label_form="listwise")}
ALONE = ("--model.generator", "null", "--model.loss.label_weight", "1", "--model.loss.label_form", "listwise",
         "--checkpoint.monitor", "val/recall_1")  # fmt: skip


def named(rows: list[dict], scorer: str = "a retriever") -> list[dict]:
    return [{**row, "scored_by": scorer} for row in rows]


def test_the_sum_counts_the_distance_to_the_best_score() -> None:
    base = BaseOrder("a retriever", 2.0)
    assert base([0.5, 0.0, -1.0], [3.0, 3.5, 1.0]) == [-0.5, 0.0, -6.0]
    assert base([0.5, 0.0], [103.0, 103.5]) == [-0.5, 0.0]  # neither the level counts, nor how many there are
    assert base([], []) == []
    scores_BN = torch.tensor([[3.0, 3.5, 1.0], [-2.0, 9.0, 9.0]])
    real_BN = torch.tensor([[True, True, True], [True, False, False]])
    assert below_best(scores_BN, real_BN).tolist() == [[-0.5, 0.0, -2.5], [0.0, 0.0, 0.0]]


def test_the_loss_is_that_of_the_sum_and_moves_its_weight(rerag) -> None:
    module = rerag.trainer(**LABELS, relevance="sum", retriever_temperature=0.25)
    data = rerag.data(module, named(scored_rows(12)))
    batch = next(iter(data.train_dataloader()))
    with torch.no_grad():
        scores = module.eval()(batch)
    sum_BN = scores.part_BN + 4.0 * below_best(batch.retriever_BN, batch.real_BN)
    assert torch.equal(scores.relevance_BN, sum_BN)
    log_p_BN = sum_BN.masked_fill(~batch.real_BN, -torch.inf).double().log_softmax(1)
    expected = -log_p_BN.masked_fill(batch.grades_BN == 0, -torch.inf).logsumexp(1).mean()
    loss = module.losses(batch)["label"]
    assert [loss.item()] == model_close([expected.item()], 4.0)
    loss.backward()
    assert module.base_log_scale.grad.item() != 0


def test_a_new_head_is_silent_so_the_first_order_is_the_retrievers(rerag) -> None:
    module = rerag.trainer("bert", None, loss=LABELS["loss"], relevance="sum", retriever_temperature=1.0).eval()
    data = rerag.data(module, named(scored_rows(12)))
    batch = next(iter(data.train_dataloader()))
    scores = module(batch)
    assert not scores.part_BN.any()
    assert (
        scores.relevance_BN.argmax(1).tolist() == batch.retriever_BN.masked_fill(~batch.real_BN, -9).argmax(1).tolist()
    )
    module.losses(batch)["label"].backward()
    assert any(weights.grad is not None and weights.grad.any() for weights in module.estimator.parameters())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    folder = tmp_path_factory.mktemp("sum")
    write_config(folder, checkpoints["t5"], 0.0, named(scored_rows(40)))
    fit_here(folder, *ALONE, "--model.relevance", "sum", "--trainer.max_epochs", "6")
    return folder


def test_a_run_exports_the_order_and_the_system_ranks_by_the_sum(run: Path) -> None:
    serving = run / "checkpoints/tiny/serving"
    manifest = json.loads((serving / "serving.json").read_text())
    base = manifest["base_order"]
    assert (manifest["relevance"], manifest["retriever_temperature"], base["source"]) == ("sum", None, "a retriever")
    assert manifest["calibration"] != base["calibration"]
    last = [row for row in metrics(run) if "val/part_recall_1" in row][-1]
    questions = list(read_questions("fid", str(run / "fid.json")))
    system = ReRag(None, serving, contexts=2, device="cpu")
    answers = system.answer(questions)
    estimator = system.model.estimator
    for question, answer in zip(questions, answers, strict=True):
        part = estimator.scores([(question.text, passage) for passage in question.passages])
        best = max(question.scores)
        sums = [own + base["weight"] * (score - best) for own, score in zip(part, question.scores, strict=True)]
        assert [hit.score for hit in answer.evidence] == model_close(sorted(sums, reverse=True)[:2], 10.0)
    assert system.calibration.scale == base["calibration"]["scale"]
    assert 0 <= last["val/part_recall_1"] <= 1
    assert "best score of the" in (serving / "README.md").read_text()


def test_other_scores_are_refused_in_one_line(run: Path, tmp_path: Path) -> None:
    serving = run / "checkpoints/tiny/serving"
    question = next(iter(read_questions("fid", str(run / "fid.json"))))
    system = ReRag(None, serving, contexts=2, device="cpu")
    with pytest.raises(UserError, match="has no score of a retriever for every passage"):
        system.answer([replace(question, scores=())])
    with pytest.raises(UserError, match="has scores of another, but this estimator was trained with those of a retr"):
        system.answer([replace(question, source=replace(question.source, scored_by="another"))])
    build_bm25(question.passages, tmp_path / "bm25")
    with pytest.raises(UserError, match="the retriever has scores of Bm25Retriever"):
        RerankedRetriever(Bm25Retriever(tmp_path / "bm25"), serving, device="cpu").search(["who"], 2)


def test_a_retriever_is_known_by_its_name_and_reranked_by_the_sum(run: Path, tmp_path: Path) -> None:
    model = ReRagModel.load(run / "checkpoints/tiny/serving", "cpu")
    assert model.base_order is not None
    model.base_order = replace(model.base_order, source="Bm25Retriever")
    (tmp_path / "serving").mkdir()
    model.save(tmp_path / "serving")
    questions: list[Question] = list(read_questions("fid", str(run / "fid.json")))[:3]
    build_bm25([passage for question in questions for passage in question.passages], tmp_path / "bm25")
    bm25 = Bm25Retriever(tmp_path / "bm25")
    texts = [question.text for question in questions]
    reranked = RerankedRetriever(bm25, tmp_path / "serving", candidates=6, device="cpu")
    for text, found, hits in zip(texts, reranked.search(texts, 6), bm25.search(texts, 6), strict=True):
        part = reranked.estimator.scores([(text, hit.passage) for hit in hits])
        sums = model.base_order(part, [hit.score for hit in hits])
        assert [hit.score for hit in found] == model_close(sorted(sums, reverse=True), 10.0)


def test_files_of_several_retrievers_or_without_scores_are_refused(
    tmp_path: Path, checkpoints: dict[str, Path]
) -> None:
    write_config(tmp_path, checkpoints["t5"], 0.0, named(scored_rows(40)))
    (tmp_path / "other.json").write_text(json.dumps(named(scored_rows(12, 1), "another")))
    (tmp_path / "bare.json").write_text(json.dumps(fid_rows(12, 2)))
    for other, said in (("other", "have those of 'a retriever' and 'another'"), ("bare", "needs a retriever score of")):
        files = f"[{{layout: fid, path: fid.json}}, {{layout: fid, path: {other}.json}}]"
        with pytest.raises(UserError, match=said):
            fit_here(tmp_path, *ALONE, "--model.relevance", "sum", "--data.train", files)
