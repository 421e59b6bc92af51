"""ModernBERT, MPNet and DeBERTa-v3 as estimator, extractive rewriter and classifier of triples: each trained whole."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from common.records import Passage
from models.cross_encoder import RelevanceEstimator
from models.dmqr.word_selector import WordSelector
from models.drrag.triple_classifier import TripleClassifier
from tests.conftest import ENCODERS
from tests.helpers.every_trainer import PREPARE
from tests.helpers.runs import assert_repeated, weights
from tests.helpers.tiny_runs import fit
from tests.helpers.tolerances import decide, model_close

pytestmark = pytest.mark.numeric

PAIRS = [("who is name1", Passage.of("name2", "name1 in the film " * 9)), ("where", Passage.of("", "the city"))]


SCORES: dict[Any, Callable[[Any], torch.Tensor]] = {
    RelevanceEstimator: lambda at: at(*at.encode.pad(at.encode([(asked, [one]) for asked, one in PAIRS]))).score_P,
    WordSelector: lambda at: at(*at.encode.pad(at.encode(PAIRS))),
    TripleClassifier: lambda at: at(*at.pad([at.encode(asked, one, one) for asked, one in PAIRS])),
}


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("kind", SCORES)
def test_gradients_reach_all_weights_and_one_option_sets_every_dropout(family, kind, checkpoints) -> None:
    scores = SCORES[kind]
    model = kind.build(str(checkpoints[family]), 64, dropout=0.25).train()
    rates = {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)}
    assert rates == {0.25} or family == "modernbert"  # whose attention computes without a module
    assert {rate for name, rate in model.network.config.to_dict().items() if "dropout" in name} == {0.25}
    decide(model.network)
    scores(model.eval()).sum().backward()
    assert not [name for name, each in model.named_parameters() if each.grad is None or not each.grad.any()]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores(model.train()).sum().backward()
    assert all(each.grad.isfinite().all() for each in model.parameters())


@pytest.mark.parametrize("family", ENCODERS)
def test_the_words_of_a_pair_depend_on_neither_company_nor_padding(family, checkpoints) -> None:
    selector = WordSelector.build(str(checkpoints[family]), 64).eval()
    decide(selector.network)
    found = [[each.log_odds for each in (*words.stays, *words.joins)] for words in selector.scores(PAIRS)]
    assert len(found[1]) == 3
    for pair, together in zip(PAIRS, found, strict=True):
        (alone,) = selector.scores([pair])
        assert [each.log_odds for each in (*alone.stays, *alone.joins)] == model_close(together)


@pytest.mark.parametrize("family", ENCODERS)
def test_an_estimator_of_its_first_layers_is_saved_and_read(family, checkpoints, tmp_path) -> None:
    cut = RelevanceEstimator.build(str(checkpoints[family]), 64, layers=1).eval()
    cut.save(tmp_path / "cut")
    again = RelevanceEstimator.build(str(tmp_path / "cut"), 64).eval()
    assert again.network.config.num_hidden_layers == 1
    ours, theirs = (SCORES[RelevanceEstimator](each).tolist() for each in (again, cut))
    assert ours == model_close(theirs)


RERAG = ("--model.generator", "null", "--model.loss.label_weight", "1", "--checkpoint.monitor", "val/recall_1")
FIRST = ("--checkpoint.every_n_train_steps", "2", "--checkpoint.save_top_k=-1", "--checkpoint.filename", "{step}")


@pytest.mark.whole_run
@pytest.mark.parametrize(
    ("family", "trainer"),
    [("modernbert", "rerag"), ("mpnet", "extractive"), ("deberta-v2", "drrag"), ("modernbert", "drrag")],
)
def test_a_run_trains_goes_on_from_its_second_step_and_exports(family, trainer, place, monkeypatch) -> None:
    start, (options, loss) = place.model(family), (RERAG, "loss") if trainer == "rerag" else ((), "loss_nats")
    monkeypatch.setattr(place, "model", lambda _: start)
    PREPARE[trainer](place)
    four = (*options, "--trainer.max_steps", "4", "--trainer.val_check_interval", "2")
    fit("whole", *four, *FIRST, "--checkpoint.monitor", f"train/{loss}")
    fit("resumed", *four, "--ckpt_path", "checkpoints/whole/step=2.ckpt")
    assert_repeated(weights(place.folder, "resumed"), weights(place.folder, "whole"))
    assert Path("checkpoints/resumed/serving/serving.json").is_file()
