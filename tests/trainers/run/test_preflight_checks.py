"""Checks before the first step: the line about optimizer steps that are too small for the number of processes."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from datamodules.dmqr import RewriteData, RewriteDataFile
from datamodules.drrag import DrRagData
from datamodules.examples.data_files import QuestionDataFile
from datamodules.examples.step_loader import StepData
from tests.helpers import rewrite_runs
from tests.helpers.rerag_data import ReRagBench
from tests.helpers.tiny_runs import set_up
from trainers.dmqr import RewriterTrainer
from trainers.drrag import DrRagTrainer
from trainers.rerag_options import Loss
from trainers.run.preflight_checks import warn_of_small_steps

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
