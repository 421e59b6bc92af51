"""Extractive rewriting: queries of words of the question and of the passages that a first search found.

A trained encoder chooses them.

kwr   the question's words that stay: without them retrieval is worse
cce   the most important of these
par   the question with words of the first search's best passages, as RM3 does it, but each word is chosen in its
      context
hop   the words that stay with the words that join: what is still to be found, by the names that were found.  Ours
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from common.ranges import PositiveInt, Precision, Share
from common.records import Question, Ranked, as_questions, as_texts, clean
from common.rewrites import Rewrites
from harness.rewriters.fallbacks import tell_fallbacks, with_fallbacks
from harness.rewriters.strategy_checks import check_found, check_known
from harness.runtime.provenance import computed_in
from models.dmqr.word_selection import joining, log_odds_of, queries_of, staying
from models.dmqr.word_selector import WordScores, WordSelector

STRATEGIES = ("kwr", "cce", "par", "hop")
CORE_SHARE = 0.5  # of the words that stay, the most probable first: those that cce keeps
JOIN_WORDS = 8  # at most
NOTHING_STAYS = "no word of the question stays"
NOTHING_JOINS = "no word of the first search joins"
NOTHING_FOUND = "the first search found nothing"


class ExtractiveRewriter:
    """Chooses words with an encoder that `trainers.dmqr_extractive` has exported; needs no language model.

    It reads the question with each of the first passages that the question alone finds. A word of the question is
    judged by the mean of its log-odds over the passages, a word of the passages by its maximum. The costs of a question
    are its pairs (model_calls), their tokens, and its fallbacks.

    Args:
        serving: Folder that training exported, e.g. checkpoints/dmqr-extractive-hotpotqa/serving.
        passages: Passages of the first search that are read.
        stay_probability: Least probability of a word of the question in kwr, cce and hop.
        join_probability: Least probability of a word that joins in par and hop.
        device: auto, cpu or cuda.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        UserError: If the device is not possible here.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If it is corrupt, of another kind or text format.
    """

    strategies = STRATEGIES

    def __init__(
        self,
        serving: Path,
        passages: PositiveInt = 3,
        stay_probability: Share = 0.4,
        join_probability: Share = 0.1,
        device: str = "auto",
        precision: Precision = "auto",
    ) -> None:
        self.name, self.serving = f"extractive rewriter {serving}", Path(serving)
        self.device, self.precision = device, precision
        self.feedback_passages = passages
        self.stay_log_odds, self.join_log_odds = log_odds_of(stay_probability), log_odds_of(join_probability)

    def load(self) -> None:
        """Load the model."""
        _ = self.model

    @cached_property
    def model(self) -> WordSelector:
        """Scores the words."""
        return WordSelector.load(self.serving, self.device, self.precision)

    @property
    def facts(self) -> list[str]:
        """The model, for reports."""
        return [f"rewriter: {self.name}, on {self.feedback_passages} passages, computed in {computed_in(self.model)}"]

    def rewrite(
        self, questions: Sequence[Question], strategies: Sequence[str], found: Sequence[Sequence[Ranked]] = ()
    ) -> list[Rewrites]:
        """The queries of every question by every strategy, in order; batched over questions and passages.

        Args:
            questions: The questions.
            strategies: Among kwr, cce, par and hop.
            found: What the first search found for each question, best first.

        Raises:
            UserError: If a strategy is another one, or what the first search found is missing.
        """
        questions, strategies = as_questions(questions), as_texts(strategies)
        check_known(self, strategies)
        check_found(self, questions, found)
        texts = [clean(question.text) for question in questions]
        tokens = self.model.tokens_read
        read = self._read(texts, found)
        tokens_each = (self.model.tokens_read - tokens) / max(1, len(questions))
        result = []
        for text, scores in zip(texts, read, strict=True):
            queries, why = self._queries(text, strategies, scores)
            costs = {"model_calls": float(len(scores)), "tokens": tokens_each}
            result.append(with_fallbacks(text, strategies, queries, why, costs=costs))
        return tell_fallbacks(self.name, result)

    def _read(self, texts: Sequence[str], found: Sequence[Sequence[Ranked]]) -> list[list[WordScores]]:
        """The scores of each question's first passages."""
        read = [hits[: self.feedback_passages] for hits in found]
        scores = iter(
            self.model.scores([(text, hit.passage) for text, hits in zip(texts, read, strict=True) for hit in hits])
        )
        return [[next(scores) for _ in hits] for hits in read]

    def _queries(
        self, question: str, strategies: Sequence[str], read: Sequence[WordScores]
    ) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
        """The queries by strategy, and why one may be missing."""
        if not read:
            return {}, dict.fromkeys(strategies, NOTHING_FOUND)
        stays = staying(read, self.stay_log_odds)
        joins = joining(read, self.join_log_odds, JOIN_WORDS)
        made = queries_of(question, self.model.encode.text(question), stays, joins, CORE_SHARE)
        queries: dict[str, tuple[str, ...]] = {name: (made[name],) for name in strategies if made.get(name)}
        return queries, {name: NOTHING_JOINS if name in ("par", "hop") else NOTHING_STAYS for name in strategies}
