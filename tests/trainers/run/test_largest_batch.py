"""Before a run's second step: steps too small for its processes, and whether its largest batch fits."""

import re
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from common.errors import MemoryShortError
from datamodules.dmqr import RewriteData, RewriteDataFile
from datamodules.drrag import DrRagData
from datamodules.examples.data_files import QuestionDataFile
from datamodules.examples.step_loader import StepData
from tests.gpu.test_largest_batch import TRIED
from tests.helpers import rewrite_runs
from tests.helpers.rerag_data import ReRagBench, context_data, fid_rows
from tests.helpers.runs import fit_here, fit_in_turn, metrics, trained, weights
from tests.helpers.tiny_runs import set_up
from tests.trainers import test_drrag, test_rerag_training
from trainers.dmqr import RewriterTrainer
from trainers.drrag import DrRagTrainer
from trainers.rerag_options import Loss
from trainers.run.preflight_checks import warn_of_small_steps


def sizes(batches: Iterable[Any]) -> list[int]:
    return [batch.tokens for batch in batches]


@pytest.mark.parametrize("attention", ["fused", "block_sparse"])
def test_it_is_the_one_with_the_most_triples_and_padding(checkpoints, hotpot_file, attention) -> None:
    data = DrRagData([QuestionDataFile(str(hotpot_file), "hotpotqa")], validation_fraction=0.3, tokens_per_step=500)
    set_up(data, DrRagTrainer(str(checkpoints["bert"]), 5000, attention), accumulate=2)
    loader = data.train_dataloader()
    for epoch in range(2):
        largest = data.largest_batch(epoch)
        real = list(loader)  # the loader still begins with its first epoch: what was made beside it moved nothing
        assert loader.epoch == epoch
        assert largest.tokens == max(sizes(real)) > min(sizes(real))
        assert any(torch.equal(largest.rows_P, batch.rows_P) for batch in real)


def test_a_new_head_is_centered_on_training_triples_of_all_lengths(checkpoints, hotpot_file) -> None:
    data = DrRagData([QuestionDataFile(str(hotpot_file), "hotpotqa")], validation_fraction=0.3)
    set_up(data, DrRagTrainer(str(checkpoints["bert"]), 5000))
    batch, lengths = data.batch_of_all_lengths(), sorted(data._epoch(0).lengths().tolist())
    counted = batch.attention_PT.sum(dim=1).tolist()
    assert len(counted) == 32 < len(lengths)
    assert (counted[0], counted[-1]) == (lengths[0], lengths[-1])
    assert counted == sorted(counted)
    assert abs(counted[16] - lengths[len(lengths) // 2]) <= 4


@pytest.mark.parametrize(("rank", "ranks"), [(0, 1), (0, 3), (2, 3)])
def test_it_is_the_one_with_the_longest_contexts(checkpoints, tmp_path, rerag, rank, ranks) -> None:
    test_rerag_training.write_config(tmp_path, checkpoints["t5"])
    module = rerag.trainer("t5", None, max_tokens=48, loss=Loss(label_weight=1.0))
    data = context_data(tmp_path / "fid.json", module, ranks, rank, questions_per_step=6, contexts=6)
    real, largest = list(data.train_dataloader()), data.largest_batch(0)
    assert len(fid_rows(40)) > len(data.questions) > 20
    assert largest.tokens == pytest.approx(max(sizes(real)), rel=0.1)  # the plan knows characters, the batch tokens
    assert largest.tokens > sum(sizes(real)) / len(real)


class Cramped(DrRagTrainer):
    """On a device that the largest batch of the epoch exceeds once there are gradients and moments."""

    def training_step(self, batch: Any, batch_index: int) -> Tensor:
        """Fails as a GPU does."""
        if self.trainer.global_step and batch.tokens == self.trainer.datamodule.largest_batch(0).tokens:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return super().training_step(batch, batch_index)


def test_a_batch_that_does_not_fit_ends_the_run_with_what_to_lower(tmp_path, checkpoints, hotpot_file) -> None:
    test_drrag.write_config(tmp_path, checkpoints["bert"], hotpot_file)
    with pytest.raises(MemoryShortError) as refused:
        fit_here(tmp_path, "--model", "tests.trainers.run.test_largest_batch.Cramped", *TRIED)
    assert len(trained(metrics(tmp_path))) == 1  # one step
    line = str(refused.value)
    assert line.startswith("the epoch's largest batch does not fit the memory of cpu, ")
    assert " rows with " in line
    assert line.endswith(f" tokens in all, padding included: {DrRagTrainer.lower}.")
    assert "\n" not in line


@pytest.mark.slow
def test_ranks_do_not_wait_for_each_other_and_train_the_same(tmp_path, checkpoints, hotpot_file) -> None:
    test_drrag.write_config(tmp_path, checkpoints["bert"], hotpot_file, dropout=0.1)
    variants = {"ddp": (), "fsdp2": ("--trainer.strategy", "fsdp2")}
    runs = [
        ["--name", f"{kind}-{name}", "--trainer.accumulate_grad_batches", "2", *options, *tried]
        for kind, options in variants.items()
        for name, tried in (("plain", ()), ("tried", TRIED))
    ]
    fit_in_turn(tmp_path, runs)
    for kind in variants:
        plain, tried = (weights(tmp_path, f"{kind}-{name}") for name in ("plain", "tried"))
        assert all(torch.equal(plain[key], tried[key]) for key in plain), kind
        assert trained(metrics(tmp_path, f"{kind}-plain")) == trained(metrics(tmp_path, f"{kind}-tried"))


RANKS = 4


def triples(rerag: ReRagBench, hotpot_file: Path, size: int) -> StepData:
    data = DrRagData([QuestionDataFile(str(hotpot_file), "hotpotqa")], validation_fraction=0.3, tokens_per_step=size)
    return set_up(data, DrRagTrainer(str(rerag.checkpoints["bert"]), 96))


def contexts(rerag: ReRagBench, hotpot_file: Path, size: int) -> StepData:
    module = rerag.trainer("t5", None, max_tokens=48, loss=Loss(label_weight=1.0))
    return rerag.data(module, 80, RANKS, questions_per_step=size)


def rewrites(rerag: ReRagBench, hotpot_file: Path, size: int) -> StepData:
    file = rewrite_runs.write_rewrites(hotpot_file.parent, rewrite_runs.rows(60))
    data = RewriteData([RewriteDataFile(str(file), "rewrites")], validation_fraction=0.2, rewrites_per_step=size)
    return set_up(data, RewriterTrainer(str(rerag.checkpoints["t5"]), 40, 8).load())


@pytest.mark.parametrize(
    ("build", "small", "option", "examples"),
    [
        (triples, 200, "tokens_per_step", r"[12]\.\d triples"),
        (contexts, 4, "questions_per_step", r"[345]\.\d question-context pairs"),
        (rewrites, 12, "rewrites_per_step", r"[23]\.\d rewrites"),
    ],
)
def test_a_step_too_small_for_the_processes_is_one_line_with_a_size_that_is_enough(
    rerag, hotpot_file, capsys, build, small, option, examples
) -> None:
    def said(size: int, ranks: int, **trainer: Any) -> str:
        data = build(rerag, hotpot_file, size)
        capsys.readouterr()
        warn_of_small_steps(SimpleNamespace(datamodule=data, world_size=ranks, **{"is_global_zero": True, **trainer}))
        return capsys.readouterr().out

    (line,) = said(small, RANKS).splitlines()
    found = re.search(rf" {examples}: type --data\.{option} (\d+)", line)
    assert said(int(found[1]), RANKS) == ""
    assert said(small, 1) == ""  # no rank waits for another
    assert said(small, RANKS, is_global_zero=False) == ""
