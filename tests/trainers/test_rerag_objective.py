"""What a RE-RAG training step minimizes and on what.

The weighted sum of its terms, an answer drawn anew in every epoch.
"""

import json
from collections import Counter

import pytest
import torch

from common.records import Question
from tests.helpers.recorder import HARDLY, RECORDED, recorded
from tests.helpers.rerag_data import context_data, fid_rows
from tests.helpers.runs import fit_here, metrics
from tests.helpers.tolerances import assert_gradients_close, model_close
from tests.trainers.test_rerag_training import write_config
from trainers.rerag_options import Loss, Text

WEIGHTS = {"kl_weight": 0.5, "token_weight": 0.25, "label_weight": 3.0}
EPOCHS = 120


@pytest.mark.numeric
def test_a_step_minimizes_the_weighted_sum_of_its_terms(tmp_path, checkpoints, rerag) -> None:
    write_config(tmp_path, checkpoints["t5"], dropout=0.0)
    options = [part for name, weight in WEIGHTS.items() for part in (f"--model.loss.{name}", str(weight))]
    fit_here(tmp_path, *RECORDED, *options, "--model.optimizer.learning_rate", HARDLY, "--trainer.max_steps", "3")
    rows = [row for row in metrics(tmp_path) if "train/loss" in row]
    assert len(rows) == 3
    for row in rows:
        terms = [row[f"train/{name}"] for name in ("gen_nats", "re_nats", "tok", "label_nats")]
        assert all(term > 0.01 for term in terms)  # or a weight would not show
        weighted = sum(weight * term for weight, term in zip((1, *WEIGHTS.values()), terms, strict=True))
        assert row["train/loss"] == model_close(weighted, sum(terms))

    module = rerag.trainer(max_tokens=48, text=Text(max_answer_tokens=4), dropout=0.0, loss=Loss(**WEIGHTS))
    data = context_data(tmp_path / "fid.json", module, contexts=4, questions_per_step=8, tokens_per_bucket=300)
    batch = next(iter(data.train_dataloader()))
    terms = module.losses(batch)
    (terms["gen"] + 0.5 * terms["re"] + 0.25 * terms["tok"] + 3.0 * terms["label"]).backward()
    ours = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    theirs = recorded(tmp_path / "checkpoints/tiny")[0]["gradients"]
    assert_gradients_close(ours, theirs, int(batch.real_BN.sum()))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"gen": 1, "re": 1, "tok": 1}),
        ({"loss": Loss(kl_weight=0.0)}, {"gen": 1, "re": 0, "tok": 1}),
        ({"loss": Loss(token_weight=0.0)}, {"gen": 1, "re": 1}),
        ({"loss": Loss(label_weight=2.0)}, {"gen": 1, "re": 1, "tok": 1, "label": 2}),
        ({"generator": None, "loss": Loss(label_weight=2.0)}, {"label": 2}),
        ({"generator": None, "loss": Loss(label_weight=2.0, token_weight=0.5)}, {"tok": 0.5, "label": 2}),
        ({"estimator": None}, {"gen": 1}),
    ],
)
def test_which_terms_there_are_and_what_they_weigh(rerag, options, expected) -> None:
    module = rerag.trainer(**{"dropout": 0.0, **options})
    data = rerag.data(module)
    batch = next(iter(data.train_dataloader()))
    module._trainer = data.trainer  # world size and accumulation, as in `context_data`
    with torch.no_grad():
        terms = module.losses(batch)
        assert set(terms) == set(expected)
        loss = module.training_step(batch, 0)
    weighted = sum(weight * terms[name].item() for name, weight in expected.items())
    assert loss.item() == model_close(weighted, sum(term.item() for term in terms.values()))
    assert module.shares["train/loss"] == loss
    assert len(module.shares) == 1 + len(terms)


@pytest.mark.numeric
@pytest.mark.parametrize("ranks", [2, 8])  # 8 ranks exceed the 6 questions of a step: some only keep going
def test_the_ranks_terms_make_up_those_of_the_step(rerag, ranks) -> None:
    module = rerag.trainer(loss=Loss(label_weight=1.0)).eval()
    alone = list(rerag.data(module).train_dataloader())
    parts = [list(rerag.data(module, 12, ranks, rank).train_dataloader()) for rank in range(ranks)]
    with torch.no_grad():
        for number, whole in enumerate(alone):
            expected = module.losses(whole)
            found = [module.losses(mine[number]) for mine in parts]
            for name, term in expected.items():
                assert sum(each[name].item() for each in found) == model_close(term.item(), 10.0), name
            if ranks == 8:
                idle = [each for each, mine in zip(found, parts, strict=True) if mine[number].weight == 0]
                assert idle
                assert all(term == 0 for each in idle for term in each.values())


def test_steps_are_planned_anew_in_every_epoch(rerag) -> None:
    data = rerag.data(rerag.trainer(), 30)
    loader = data.train_dataloader()
    epochs = [[sorted(batch.rows_B.tolist()) for batch in loader] for _ in range(3)]
    for steps in epochs:
        assert sorted(row for step in steps for row in step) == list(range(len(data.questions)))
    assert len({json.dumps(sorted(steps)) for steps in epochs}) == 3  # other company, not only another order


def test_every_accepted_answer_is_learnt_as_often(rerag) -> None:
    """Binomial: each of three answers in a third of the epochs, within five standard deviations."""
    module = rerag.trainer()
    data = rerag.data(module, [{**row, "answers": [*row["answers"], "yes", "no"]} for row in fid_rows(12)])

    def drawn(question: Question, epochs: int) -> list[str]:
        return [data.draws.draw(question, 5, "sampled", epoch).answer for epoch in range(epochs)]

    deviation = (EPOCHS * (1 / 3) * (2 / 3)) ** 0.5
    for question in data.questions:
        counts = Counter(drawn(question, EPOCHS))
        assert set(counts) == set(question.answers)
        assert all(abs(count - EPOCHS / 3) < 5 * deviation for count in counts.values())
        assert drawn(question, EPOCHS) == drawn(question, EPOCHS)  # resumes exactly
    assert len({*zip(*(drawn(question, 5) for question in data.questions), strict=True)}) == 5  # not all together

    loader = data.train_dataloader()
    learnt = set()
    for _ in range(6):  # what is learnt is what was drawn
        for batch in loader:
            answers = [drawn(data.questions[row], loader.epoch + 1)[-1] for row in batch.rows_B.tolist()]
            assert batch.answers_BA.tolist() == module.answer_labels(answers).tolist()
            learnt |= {tuple(ids) for ids in batch.answers_BA.tolist()}
    assert {tuple(ids) for ids in module.answer_labels(["yes", "no"]).tolist()} < learnt
