"""Agreement: the answer that is nearest to the others is chosen.

The gold-free default of MSRAG, whose paper chooses by the gold answer.
"""

from collections.abc import Mapping, Sequence

from common.context_sources import SelectedSource
from common.records import Answer, Question
from harness.answer_selection.answer_encoder import EncoderSelection
from harness.answer_selection.answer_texts import answered

NO_ANSWER = "no source has an answer"
ONLY_ONE = "no other source has an answer"


class Agreement(EncoderSelection):
    """Chooses the answer with the greatest mean cosine to the other sources' answers; ties by the order of the sources.

    Empty answers take no part, and refusals (`harness.answer_selection.answer_texts.is_refusal`) only where all answers
    are refusals.

    Args and errors: see `EncoderSelection`.
    """

    name = "agreement"
    uses_gold = False

    @property
    def facts(self) -> list[str]:
        """The encoder, for reports."""
        return [f"selection: agreement, cosine by {self.encoder.name}"]

    def choose(self, questions: Sequence[Question], answers: Sequence[Mapping[str, Answer]]) -> list[SelectedSource]:
        """The chosen source of every question; scores are mean cosines."""
        sources = [answered(each) for each in answers]
        texts = [[each[source].text for source in known] for each, known in zip(answers, sources, strict=True)]
        chosen = []
        for known, each, cosines_AA in zip(sources, answers, self.encoder.cosines(texts), strict=True):
            if len(known) < 2:
                chosen.append(alone(known, each))
                continue
            sums = (cosines_AA.sum(axis=1) - cosines_AA.diagonal()) / (len(known) - 1)
            scores = {source: round(float(score), 6) for source, score in zip(known, sums, strict=True)}
            best = max(scores, key=lambda source: scores[source])  # the first of equal ones
            others = " and ".join(source for source in known if source != best)
            why = f"nearest to the answer{'s' * (len(known) > 2)} of {others}: mean cosine {scores[best]:.3f}"
            if sum(score == scores[best] for score in scores.values()) > 1:
                why += ", the first of equal ones"
            chosen.append(SelectedSource(best, why, scores))
        return chosen


def alone(known: Sequence[str], answers: Mapping[str, Answer]) -> SelectedSource:
    """The choice where at most one source has an answer."""
    return SelectedSource(known[0], ONLY_ONE) if known else SelectedSource(next(iter(answers)), NO_ANSWER)
