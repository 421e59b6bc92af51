"""Preferences for generative rewriters with rewards by a simple rule, and a tiny T5 that writes all equally often."""

import random
from collections.abc import Sequence
from pathlib import Path

import torch

from common.preferences import Candidate, RewritePreferences
from models.dmqr.candidates import candidate_batch, candidates_logp
from models.dmqr.rewriter import PART, RewriterModel
from models.dmqr.strategies import Pool
from tests.conftest import NAMES

TEXTS = ("film city", "director of the film", "born in", "city no")
REWARDS = {
    "who": (0.0, 0.6, 0.3, 1.0),
    "where": (0.4, 1.0, 0.0, 0.7),
}  # by the question's first word, of the texts in order
BEST = {"who": "city no", "where": "director of the film"}


def questions(count: int, seed: int = 7) -> list[str]:
    """Questions of both kinds."""
    rng = random.Random(seed)
    return [f"{('who', 'where')[n % 2]} is {' of '.join(rng.sample(NAMES, 2))}" for n in range(count)]


def save_start(folder: Path, pretrained: Path, steps: int = 100) -> Path:
    """The serving folder of a rewriter that has learned to write any of the texts, whatever the question."""
    torch.manual_seed(0)
    rewriter = RewriterModel.build(str(pretrained), 40, 8, Pool.load(None).strategies, dropout=0.0).train()
    asked = questions(8, seed=1)
    inputs = [ids for ids in rewriter.encode([rewriter.task(each, "gqr") for each in asked]) if ids]
    targets = [rewriter.encode.targets(TEXTS)] * len(inputs)
    batch = candidate_batch(rewriter, inputs, targets)
    optimizer = torch.optim.Adam(rewriter.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        (-candidates_logp(rewriter, *batch).mean()).backward()
        optimizer.step()
    folder.mkdir()
    rewriter.eval().save(folder, ["gqr", "kwr"], {})
    return folder


def sampled(
    serving: Path, count: int, strategies: Sequence[str] = ("gqr", "kwr"), seed: int = 7
) -> list[RewritePreferences]:
    """All texts as candidates of every question and strategy, each sampled four times, with their rewards."""
    rewriter = RewriterModel.load(serving, "cpu", "fp32")
    rows = []
    for number, question in enumerate(questions(count, seed)):
        for strategy in strategies:
            (ids,) = rewriter.encode([rewriter.task(question, strategy)])
            assert ids is not None
            with torch.inference_mode():
                batch = candidate_batch(rewriter, [ids], [rewriter.encode.targets(TEXTS)])
                logp = candidates_logp(rewriter, *batch).tolist()
            rewards = REWARDS[question.split()[0]]
            candidates = [
                Candidate(text, reward, each, 4, each == max(logp))
                for text, reward, each in zip(TEXTS, rewards, logp, strict=True)
            ]
            rows.append(RewritePreferences(str(number), question, strategy, 0.2, tuple(candidates)))
    return rows


def model_of(serving: Path) -> str:
    """What `pretrained` names."""
    return str(serving / PART)
