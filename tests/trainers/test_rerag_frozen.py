"""A frozen generator of RE-RAG: its log P is computed once, kept on disk, and found by later steps and runs."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from common.records import Passage
from datamodules.cache.number_store import NumberStore
from models.rerag.causal_generator import CausalGenerator
from models.rerag.generator import Generator, T5Generator
from models.rerag.model import ReRagModel
from models.rerag.parts import load_generator
from tests.helpers.recorder import HARDLY, RECORDED
from tests.helpers.rerag_data import fid_rows
from tests.helpers.runs import assert_repeated, fit_here, metrics, weights
from tests.trainers import test_rerag_training
from tests.trainers.test_two_processes import same_as_one_process
from trainers.rerag_frozen import FrozenGenerator
from trainers.rerag_options import JointOptimizer

FROZEN = ("--model.optimizer.generator_learning_rate", "0")


@pytest.fixture
def rows_read(monkeypatch) -> list[int]:
    """Grows by the number of rows that a generator computes log P of."""
    read: list[int] = []
    for kind in (T5Generator, CausalGenerator):

        def counted(self: Generator, ids_PT: torch.Tensor, *given: torch.Tensor, plain=kind.forward) -> torch.Tensor:
            read.append(len(ids_PT))
            return plain(self, ids_PT, *given)

        monkeypatch.setattr(kind, "forward", counted)
    return read


@pytest.fixture
def workplace(tmp_path, checkpoints) -> Path:
    """The configuration of a tiny joint run."""
    test_rerag_training.write_config(tmp_path, checkpoints["t5"])
    return tmp_path


@pytest.mark.numeric
def test_losses_are_those_of_the_generator_and_later_epochs_run_none(tmp_path, rerag, rows_read) -> None:
    rows = [{**row, "answers": [*row["answers"], "name9"]} for row in fid_rows(12)]  # one of them in each epoch
    losses = {}
    for rate in (0.0, None):
        module = rerag.trainer(dropout=0.1, optimizer=JointOptimizer(generator_learning_rate=rate))
        module.estimator.eval()
        module.generator.train(rate == 0)  # dropout, unless it is frozen
        data = rerag.data(module, rows, cache=str(tmp_path / "cache"))
        module.trainer = SimpleNamespace(datamodule=data, precision="32-true")
        loader = data.train_dataloader()
        batches = [*loader, *loader]  # two epochs, of other contexts and in other batches
        losses[rate] = [module.losses(batch) for batch in batches]
        sum(losses[rate][-1].values()).backward()
        if rate == 0:
            distinct = sum(rows_read)
            assert 0 < distinct < sum(int(batch.real_BN.sum()) for batch in batches)
            module._known = None  # as a later run
            again = [module.losses(batch) for batch in batches]
            assert sum(rows_read) == distinct
            assert [{name: term.item() for name, term in terms.items()} for terms in again] == [
                {name: term.item() for name, term in terms.items()} for terms in losses[rate]
            ]
            assert all(parameter.grad is None for parameter in module.generator.parameters())
    for known, computed in zip(losses[0.0], losses[None], strict=True):
        assert known.keys() == computed.keys() == {"gen", "re", "tok"}
        for name in known:
            assert known[name].item() == pytest.approx(computed[name].item(), abs=1e-6, rel=1e-6)


def test_a_run_trains_the_estimator_alone_resumes_exactly_and_exports_both(workplace, checkpoints, rows_read) -> None:
    options = (*FROZEN, "--model.validation.contexts", "0", "--checkpoint.monitor", "val/recall_1")
    fit_here(workplace, "--name", "whole", *options)
    first = sum(rows_read)
    fit_here(workplace, "--name", "tiny", *options, "--trainer.max_epochs", "1")
    fit_here(workplace, "--ckpt_path", "checkpoints/tiny/last.ckpt", *options)
    assert sum(rows_read) - first <= 2 * 8 * 4 * 2  # what export compares; nothing in training or validation
    assert_repeated(weights(workplace, "tiny"), weights(workplace, "whole"))
    assert all("val/em" not in row for row in metrics(workplace))
    plain = load_generator(str(checkpoints["t5"])).state_dict()
    for name, value in load_generator(str(workplace / "checkpoints/whole/serving/generator")).state_dict().items():
        torch.testing.assert_close(value, plain[name], rtol=0, atol=0)
    checkpoint = torch.load(workplace / "checkpoints/whole/last.ckpt", weights_only=True)
    moments = [state["exp_avg"].shape for state in checkpoint["optimizer_states"][0]["state"].values()]
    estimator = load_generator(str(checkpoints["t5"]))  # of the same shapes
    assert sorted(moments) == sorted(parameter.shape for parameter in estimator.parameters())


def test_a_frozen_causal_lm_is_the_base_of_the_estimators_adapter(tmp_path, plain_lm, checkpoints, rows_read) -> None:
    test_rerag_training.write_config(tmp_path, plain_lm, None, true_word="gold", false_word="jade")
    options = (*FROZEN, "--model.validation.contexts", "0", "--checkpoint.monitor", "val/gen_nats", "--checkpoint.mode",
               "min", "--trainer.max_epochs", "1")  # fmt: skip
    fit_here(tmp_path, *options)
    assert all(".lora_" in name and ".estimator." in name for name in weights(tmp_path, "tiny"))
    serving = tmp_path / "checkpoints/tiny/serving"
    served = ReRagModel.load(serving, "cpu")
    question, passage = "who is the director of name1", Passage.of("name1", "the director of name1 is name2 .")
    sequences = served.generator.encode([(question, [passage])])
    plain = load_generator(str(plain_lm), served.generator.encode.max_tokens)
    assert served.generator.logprobs(sequences, ["name2"]) == pytest.approx(plain.logprobs(sequences, ["name2"]))
    first = sum(rows_read)
    words = ("--model.text.true_word", "true", "--model.text.false_word", "false")
    fit_here(tmp_path, "--name", "encoder", *options, "--model.estimator", str(checkpoints["bert"]), *words)
    assert sum(rows_read) - first < first / 2  # the same numbers, though that generator has no adapter beside it


@pytest.mark.slow
def test_two_processes_share_what_they_computed(workplace, checkpoints) -> None:
    one = (*RECORDED, *FROZEN, "--trainer.max_steps", "6", "--trainer.limit_val_batches", "0", "--model.dropout", "0",
           "--model.optimizer.learning_rate", HARDLY)  # fmt: skip
    same_as_one_process(workplace, {"two": (), "again": ()}, one, rows=8 * 4)


def test_numbers_survive_a_kill_and_damage(tmp_path, capsys) -> None:
    ours, theirs = NumberStore(tmp_path), NumberStore(tmp_path)
    ours.add({1: -0.5, 2: float("-inf"), (1 << 64) - 1: 2.0**-60})
    theirs.add({3: 7.0})
    assert theirs.found([1, 2, (1 << 64) - 1, 3, 4]) == [-0.5, float("-inf"), 2.0**-60, 7.0, None]
    ours.add({4: 1.0})
    assert theirs.found([4]) == [1.0]  # what was added since
    (file,) = (each for each in tmp_path.iterdir() if each.stat().st_size == 80)
    data = bytearray(file.read_bytes())
    data[21] ^= 1  # of the second record
    file.write_bytes(data[:-1])  # killed while it wrote the last
    assert NumberStore(tmp_path).found([1, 2, (1 << 64) - 1, 3, 4]) == [-0.5, None, 2.0**-60, 7.0, None]
    assert "1 damaged numbers are computed again" in capsys.readouterr().err
    alone = NumberStore(None)
    alone.add({1: 3.0})
    assert alone.found([1, 2]) == [3.0, None]


def test_another_generator_or_precision_finds_nothing(tmp_path, checkpoints) -> None:
    generator = load_generator(str(checkpoints["t5"])).requires_grad_(False)
    places = {FrozenGenerator(generator, str(tmp_path), "32-true").store.folder}
    generator.network.shared.weight[0, 0] += 1e-6
    places.add(FrozenGenerator(generator, str(tmp_path), "32-true").store.folder)
    places.add(FrozenGenerator(generator, str(tmp_path), "bf16-mixed").store.folder)
    assert len(places) == 3
