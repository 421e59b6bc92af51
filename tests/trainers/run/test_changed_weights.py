"""What callbacks do to the weights, groups of options that are null, and prompts beyond the room of a causal LM."""

from functools import partial

import pytest
import torch
from pytorch_lightning import callbacks as of_lightning
from pytorch_lightning.callbacks import Callback

from common.errors import UserError
from tests.helpers import rewrite_runs, tiny_runs
from tests.helpers.tiny_lm import PLAIN_CONTEXT
from trainers.dmqr import RewriterTrainer
from trainers.rerag import ReRagTrainer
from trainers.rerag_options import Loss, Text
from trainers.run.changed_weights import check_callbacks


class Averaged(of_lightning.StochasticWeightAveraging):
    pass


class Halves(Callback):
    def on_train_end(self, trainer, module) -> None:
        for weight in module.parameters():
            weight.data.mul_(0.5)


class Looks(Callback):
    def on_train_end(self, trainer, module) -> None:
        self.seen = [float(weight.sum()) for weight in module.parameters()]


@pytest.mark.parametrize(
    ("callback", "told"),
    [
        (of_lightning.StochasticWeightAveraging(1e-4), "StochasticWeightAveraging leaves .*EMAWeightAveraging"),
        (Averaged(1e-4), "Averaged, a StochasticWeightAveraging, leaves .*EMAWeightAveraging"),
        (of_lightning.ModelPruning("l1_unstructured"), "ModelPruning leaves .*EMAWeightAveraging"),
        (of_lightning.LearningRateFinder(), "LearningRateFinder cannot set"),
        (of_lightning.BatchSizeFinder(), "BatchSizeFinder cannot set"),
    ],
)
def test_callbacks_that_do_not_work_are_refused_by_name(callback, told) -> None:
    with pytest.raises(UserError, match=rf"trainer\.callbacks: {told}"):
        check_callbacks([Looks(), callback])


def test_a_callback_that_changes_the_weights_at_the_end_is_said(capsys) -> None:
    module, quiet = torch.nn.Linear(2, 2), [Looks(), of_lightning.EMAWeightAveraging(), of_lightning.Timer()]
    halves = [Halves(), of_lightning.LambdaCallback(on_train_end=Halves().on_train_end)]
    own = quiet[1].on_train_end
    check_callbacks([*quiet, *halves])
    assert quiet[1].on_train_end == own
    for callback in (quiet[0], *halves):
        callback.on_train_end(None, module)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["Halves", "LambdaCallback"]
    assert all("the export has those of the best checkpoint" in line for line in lines)


def test_averaged_weights_are_validated_and_exported(checkpoints, tmp_path, monkeypatch) -> None:
    rewrite_runs.write_run(tiny_runs.use(tmp_path, monkeypatch), checkpoints["t5"])
    folder = tiny_runs.fit("tiny", "--trainer.callbacks+=pytorch_lightning.callbacks.EMAWeightAveraging")
    best, served = tiny_runs.checkpoint_of(folder), tiny_runs.served(folder / "serving")
    name = "encoder.block.0.layer.0.SelfAttention.q.weight"
    (exported,) = (value for key, value in served.items() if key.endswith(name))
    (averaged,) = (value for key, value in best["state_dict"].items() if key.endswith(name))
    (trained,) = (value for key, value in best["current_model_state"].items() if key.endswith(name))
    assert torch.equal(exported, averaged)
    assert not torch.equal(exported, trained)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["--model.lora", "null"], r"model\.lora: .* give \{rank: null\}, or leave it out"),
        (["--model.optimizer", "null"], r"model\.optimizer: .* give \{learning_rate: VALUE\}"),
        (["--data", "null"], "data is null: name a data module"),
    ],
)
def test_a_group_of_options_is_not_null(checkpoints, tmp_path, monkeypatch, typed, told) -> None:
    rewrite_runs.write_run(tiny_runs.use(tmp_path, monkeypatch), checkpoints["t5"])
    with pytest.raises(UserError, match=told):
        tiny_runs.fit("tiny", *typed)
    assert not (tmp_path / "checkpoints/tiny").exists()


WORDS, LABELS = Text(true_word="gold", false_word="jade"), Loss(label_weight=1.0)
PARTS = {  # of so many tokens that their prompts, and what they write, just fit
    "estimator": (PLAIN_CONTEXT, partial(ReRagTrainer, generator=None, text=WORDS, loss=LABELS)),
    "generator": (PLAIN_CONTEXT - 32, partial(ReRagTrainer, estimator=None)),
    "packed generator": (PLAIN_CONTEXT - 32, partial(ReRagTrainer, estimator=None, text=Text(format="packed"))),
    "rewriter": (PLAIN_CONTEXT - 16, partial(RewriterTrainer, max_rewrite_tokens=16)),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_causal_lm_with_fewer_positions_is_refused(plain_lm, part) -> None:
    most, trainer = PARTS[part]
    named = {part.split()[-1] if part != "rewriter" else "pretrained": str(plain_lm)}
    trainer(**named, max_tokens=most).load()
    with pytest.raises(UserError, match=rf"max_tokens {most + 1}.* exceed the {PLAIN_CONTEXT} tokens"):
        trainer(**named, max_tokens=most + 1).load()
