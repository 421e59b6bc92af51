"""Validation of generative rewriters.

Its scores by hand, and recall with the rewrites, which chooses the checkpoint.
"""

from pathlib import Path

import pytest

from datamodules.dmqr_recall import Recall
from datamodules.formats.reading import read_questions
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.multi_query import MultiQueryRetriever
from harness.rewriters.trained import TrainedRewriter
from tests.helpers.rewrite_runs import data_of, write_gold
from tests.helpers.tiny_runs import checkpoint_of, fit, metrics
from trainers.dmqr import RewriterTrainer
from trainers.dmqr_validation import RewriteValidation, is_question, summary

TRAINER = "rewriter"


def test_the_scores_of_a_validation_by_hand() -> None:
    found = summary(
        [RewriteValidation(6.0, 2, "gqr", (1.0, 1.0), False, Recall(0.5, 0.0)), RewriteValidation(3.0, 1, "gqr", (0.0,
        0.5), False),
        RewriteValidation(9.0, 3, "cce", (0.0, 0.0), True, Recall(1.0, 0.5), True), RewriteValidation(2.0, 4, "cce")],
        "recall_at_7"
    )  # fmt: skip
    assert found == pytest.approx(
        {"loss_nats": 2.0, "rewrite_tokens": 10, "em": 1 / 3, "f1": 0.5, "empty": 1 / 3, "unchanged": 1 / 3,
        "f1_gqr": 0.75, "f1_cce": 0.0, "recall_at_7": 0.75, "recall_at_7_question": 0.25}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("queries", "same"),
    [(["Who made Jaws"], True), (["who made “JAWS”?"], True), ([], False), (["Jaws"], False),
     (["Who made Jaws?", "Jaws"], False)],
)  # fmt: skip
def test_a_rewrite_is_the_question_whatever_its_case_and_punctuation(queries, same) -> None:
    assert is_question(queries, "Who made Jaws?") is same


def test_recall_on_validation_chooses_the_checkpoint(workplace) -> None:
    """The logged figures are those that the harness measures with the exported rewriter.

    Here the lowest recall chooses: it shows that the rewrites count, and so small a model does not learn to raise it.
    """
    lowest = ("--checkpoint.mode", "min", "--early_stopping.mode", "min")
    folder = fit("recall", *write_gold(workplace), *lowest, "--trainer.max_epochs", "8",
                 "--model.optimizer.learning_rate", "3.0e-2", "--trainer.check_val_every_n_epoch", "2")  # fmt: skip
    measured = [row for row in metrics(folder) if "val/recall_at_3" in row]
    assert len(measured) == 4
    assert len({row["val/recall_at_3"] for row in measured}) > 1
    (alone,) = {row["val/recall_at_3_question"] for row in measured}
    assert 0 < alone < 100
    rewriter = TrainedRewriter(folder / "serving", "cpu", "fp32")
    module = RewriterTrainer(str(checkpoint_of(folder)["hyper_parameters"]["pretrained"]), 40, 8).load()
    held = {e.example for e in data_of(module, workplace / "rewrites.jsonl").held_out if not e.example.history}
    asked = list(read_questions("hotpotqa", "gold.json"))
    asked = [each for each in asked if each.text in {e.question for e in held}]
    assert len(asked) > 5
    searched = Bm25Retriever(Path("index"))
    system = MultiQueryRetriever(searched, rewriter, rewriter.strategies, per_query=3, fusion="rrf")
    best = checkpoint_of(folder)["validation_facts"]
    for name, retriever in (("recall_at_3", system), ("recall_at_3_question", searched)):
        hits = retriever.search([each.text for each in asked], 3)
        assert retrieval_scores(asked, hits, [3])["recall@3"].mean() == pytest.approx(best[name])
    assert best["recall_at_3"] == min(row["val/recall_at_3"] for row in measured) != alone
