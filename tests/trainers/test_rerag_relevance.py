"""A generator trained with the retriever's weights (Eq. 1-2): its loss, temperature, validation, export and serving."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from common.answer_metrics import exact_match
from common.errors import UserError
from datamodules.cache.splits import split_questions
from datamodules.examples.context_sets import ContextSet
from datamodules.examples.data_files import QuestionDataFile
from datamodules.rerag import ReRagData
from harness.systems.rerag import ReRag
from models.rerag.marginal_reader import MarginalReader
from models.rerag.model import ReRagModel
from models.rerag.temperature import fit_temperature
from tests.helpers.rerag_data import fid_rows
from tests.helpers.rerag_world import vary
from tests.helpers.runs import fit_here, metrics
from tests.helpers.tolerances import model_close
from tests.trainers import test_rerag_training
from trainers.rerag import ReRagTrainer
from trainers.rerag_validation import score_questions


def scored_rows(count: int, seed: int = 0) -> list[dict]:
    """Rows of which the retriever ranks the gold passage best in two of three questions.

    The order of the others is not the file's.
    """
    rows = fid_rows(count, seed)
    for number, row in enumerate(rows):
        for place, item in enumerate(row["ctxs"]):
            item["score"] = place / 10 + (1.0 if item["isgold"] and number % 3 else 0.0)
    return rows


@pytest.fixture
def trained_on(rerag) -> Callable[..., tuple[ReRagTrainer, ReRagData]]:
    """A module without an estimator, and its data of twelve questions with scores."""

    def make(**options: object) -> tuple[ReRagTrainer, ReRagData]:
        module = rerag.trainer(None, **options).eval()
        vary(module.generator.network, 3)
        return module, rerag.data(module, scored_rows(12))

    return make


@pytest.mark.numeric
def test_the_loss_is_that_of_eq_2(trained_on) -> None:
    module, data = trained_on(relevance="retriever", retriever_temperature=0.25)
    batch = next(iter(data.train_dataloader()))
    uniform, _ = trained_on(relevance="uniform")
    with torch.no_grad():
        logp_BN = module(batch).answer_logp_BN.double()
        found, equal = module.losses(batch)["gen"].item(), uniform.losses(batch)["gen"].item()
    total = {"retriever": 0.0, "uniform": 0.0}
    for place, row in enumerate(batch.rows_B.tolist()):
        one = data.draws.draw(data.questions[row], 5, "sampled", 0)
        score_of = dict(zip((p.id for p in one.question.passages), one.question.scores, strict=True))
        scores_N = torch.tensor([score_of[passage.id] for passage in one.passages], dtype=torch.float64)
        answer_N = logp_BN[place, : len(one.passages)].exp()
        total["retriever"] -= (torch.softmax(scores_N / 0.25, 0) * answer_N).sum().log().item()
        total["uniform"] -= answer_N.mean().log().item()
    assert found == model_close(total["retriever"] / len(batch.rows_B), 40.0)
    assert equal == model_close(total["uniform"] / len(batch.rows_B), 40.0)
    assert abs(found - equal) > 1e-3


@pytest.mark.numeric
def test_validation_reads_the_retrievers_best_with_its_weights(trained_on) -> None:
    module, data = trained_on(relevance="retriever", retriever_temperature=0.25)
    (batch,) = data.val_dataloader()
    sets: list[ContextSet] = data.validation_sets
    with torch.inference_mode():
        relevance_BN = module(batch).relevance_BN
    rows = range(len(sets))
    found = score_questions(rows, sets, relevance_BN, None, module.generator, False, False, 2, 4, fit_temperature=True)
    for one, each in zip(found, sets, strict=True):
        (row,) = [q for q in scored_rows(12) if q["question"] == each.question.text]
        score_of = {item["title"]: item["score"] / 0.25 for item in row["ctxs"]}
        scores = [score_of[passage.title] for passage in each.passages]
        assert one.scores == pytest.approx(scores)
        assert scores == sorted(scores, reverse=True)  # as `ranked` contexts are
        (expected,) = MarginalReader(module.generator, "fast", 4).read(
            [each.question.text], [each.passages[:2]], [scores[:2]]
        )
        assert [answer.text for answer in one.answers] == [expected.text]
    backwards = [replace(one, passages=one.passages[::-1]) for one in sets]
    flipped_BN = torch.nn.utils.rnn.pad_sequence([torch.tensor(one.scores[::-1]) for one in found], batch_first=True)
    again = score_questions(rows, backwards, flipped_BN, None, module.generator, False, False, 2, 4)
    assert [one.answers for one in again] == [one.answers for one in found]


def test_a_run_exports_what_serves_with_its_weights(tmp_path, checkpoints, capsys) -> None:
    test_rerag_training.write_config(tmp_path, checkpoints["t5"], 0.0, scored_rows(40))
    fit_here(tmp_path, "--model.estimator", "null", "--model.relevance", "retriever", "--model.validation.contexts",
             "2", "--data.contexts", "3", "--data.context_sampling", "ranked", "--data.labels", "has_answer",
             "--trainer.max_epochs", "20", "--trainer.check_val_every_n_epoch", "10")  # fmt: skip
    split = split_questions([QuestionDataFile(str(tmp_path / "fid.json"), "fid")], [], 0.3)
    training, held_out = split.training, split.held_out
    scores, labels = [], []
    for question in training:
        chosen = sorted(zip(question.scores, question.passages, strict=True), key=lambda pair: -pair[0])[:3]
        scores.append(np.array([score for score, _ in chosen]))
        labels.append(np.array([question.answers[0] in passage.text.split() for _, passage in chosen]))
    temperature = fit_temperature(scores, labels)
    assert f"softmax(retriever score / {temperature:.4g}), fitted on training questions" in capsys.readouterr().out

    serving = tmp_path / "checkpoints/tiny/serving"
    manifest = json.loads((serving / "serving.json").read_text())
    assert (manifest["relevance"], manifest["retriever_temperature"]) == ("retriever", pytest.approx(temperature))
    assert "weighted by softmax(retriever score / " in (serving / "README.md").read_text()
    answers = ReRag(None, serving, contexts=2, marginal="fast", device="cpu").answer(held_out)
    exact = [exact_match(answer.text, q.answers) for answer, q in zip(answers, held_out, strict=True)]
    best = max(row["val/em"] for row in metrics(tmp_path) if "val/em" in row)
    assert np.mean(exact) == pytest.approx(best)
    for answer, question in zip(answers, held_out, strict=True):
        by_score = sorted(question.scores, reverse=True)[:2]
        assert [hit.score for hit in answer.evidence] == pytest.approx([score / temperature for score in by_score])
    (cold,) = ReRag(None, serving, contexts=2, temperature=0.5, device="cpu").answer(held_out[:1])
    assert [hit.score for hit in cold.evidence] == pytest.approx(
        [2 * score for score in sorted(held_out[0].scores)[:-3:-1]]
    )
    with pytest.raises(UserError, match="without a score"):
        ReRag(None, serving, device="cpu").answer([replace(held_out[0], scores=())])


def test_what_the_folder_records_is_what_weights_the_contexts(tmp_path, trained_on) -> None:
    module, data = trained_on()
    question, logits = data.questions[0], {}
    for relevance, temperature in (("retriever", 0.5), ("uniform", None), (None, None)):
        folder = tmp_path / f"{relevance}"
        folder.mkdir()
        ReRagModel(None, module.generator, relevance=relevance, retriever_temperature=temperature).save(folder)
        strategy = ReRag(None, folder, contexts=2, device="cpu")
        logits[relevance] = [hit.score for hit in strategy.answer([question])[0].evidence]
    best = sorted(question.scores, reverse=True)[:2]
    assert logits == {"retriever": [2 * score for score in best], "uniform": [0.0, 0.0], None: best}
