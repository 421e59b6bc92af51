"""Feedback for the extractive rewriter whose rewards follow a simple rule, sampled from a real selector."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import torch

from common.feedback import WordCandidate, WordFeedback
from common.files import write_text
from common.records import Passage
from datamodules.formats.feedback import MANIFEST, ROWS, WORD, feedback_lines
from models.dmqr.word_policy import WordPolicy, choice_logp, decisions_of, pooled
from models.dmqr.word_selector import KIND, WordSelector
from models.dmqr.word_tokenizer import TEXT_FORMAT
from models.serving_manifest import write_manifest
from tests.conftest import NAMES

POLICY = WordPolicy(
    2, 0.5, 0.05, 1.0, ("par", "hop")
)  # the untrained selector's prior: every word is used or not by chance


def questions(count: int, seed: int = 5) -> list[tuple[str, tuple[Passage, ...]]]:
    """Questions about films, with two passages each."""
    rng, made = random.Random(seed), []
    for number in range(count):
        film, person, other = rng.sample(NAMES, 3)
        passages = (
            Passage.of(film, f"{film} is a film of the director {person} ."),
            Passage.of(other, f"{other} was born in the city of {film} ."),
        )
        made.append((f"who is of the film {film} {number}", passages))
    return made


def reward(question: str, passages: Sequence[Passage], left_out: Sequence[str], joins: Sequence[str]) -> float:
    """The director's name must join, "born" and the other name must not.

    "who" must be left out, the film's name must not.
    """
    director = passages[0].text.split()[-2]
    return (
        0.4 * (director in joins) - 0.3 * ("born" in joins) - 0.2 * (passages[1].title.lower() in joins)
        + 0.2 * ("who" in left_out) - 0.3 * (passages[0].title.lower() in left_out)
    )  # fmt: skip


BEST_REWARD = 0.6


def sampled(selector: WordSelector, count: int, samples: int, seed: int = 0, names: int = 5) -> list[WordFeedback]:
    """The greedy choice, then the distinct sampled ones, with their rewards.

    `names` is the seed of the questions' names.
    """
    generator, rows = torch.Generator().manual_seed(seed), []
    for number, (question, passages) in enumerate(questions(count, names)):
        pairs = [pair for pair in selector.encode([(question, passage) for passage in passages]) if pair]
        decisions = decisions_of(pairs, POLICY)
        with torch.inference_mode():
            z_1D, joins_1D, _ = pooled(selector.eval()(*selector.encode.pad(pairs)), [decisions], [len(pairs)])
        logits_D = POLICY.logits(z_1D, joins_1D)[0]
        words = [each.word.text for each in pairs[0].question_words]
        drawn = torch.rand((samples, len(decisions)), generator=generator) < logits_D.sigmoid()
        greedy = tuple((logits_D >= 0).tolist())
        times: dict[tuple[bool, ...], int] = {greedy: 0}
        for row in drawn.tolist():
            times[tuple(row)] = times.get(tuple(row), 0) + 1
        candidates = []
        for choice, count_of in times.items():
            left_out = [place for place in range(len(words)) if not choice[place]]
            joins = [word for word, used in zip(decisions.joins, choice[len(words) :], strict=True) if used]
            gain = reward(question, passages, [words[place] for place in left_out], joins)
            logp = float(choice_logp(logits_D, torch.tensor(choice)))
            candidates.append(WordCandidate(tuple(left_out), tuple(joins), gain, logp, count_of, choice == greedy))
        rows.append(
            WordFeedback(str(number), question, passages, reward(question, passages, (), ()), tuple(candidates))
        )
    return rows


def write_feedback(folder: Path, rows: Sequence[WordFeedback], round_: int = 1, policy: WordPolicy = POLICY) -> Path:
    """A folder as `infer.py feedback` writes it."""
    write_text(folder / ROWS, "".join(feedback_lines(rows)))
    write_text(folder / MANIFEST, json.dumps({"layout": WORD, "round": round_, "policy": policy.facts}))
    return folder


def save_selector(folder: Path, pretrained: Path, max_tokens: int = 48) -> Path:
    """A serving folder with an untrained selector."""
    torch.manual_seed(0)
    WordSelector.build(str(pretrained), max_tokens, dropout=0.0).save(folder)
    write_manifest(folder, KIND, TEXT_FORMAT, max_tokens)
    return folder
