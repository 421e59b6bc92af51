"""Oracle selection: the answer nearest to the GOLD answer, as in MSRAG's paper (Eq. 1-4).

An upper bound for measurements, never a system.
"""

from collections.abc import Mapping, Sequence

from common.context_sources import SelectedSource
from common.errors import UserError
from common.records import Answer, Question
from harness.answer_selection.answer_encoder import AnswerEncoder
from harness.answer_selection.answer_texts import greatest
from harness.runtime.loading import load
from models.pretrained import MINILM


class Oracle:
    """Chooses the answer with the greatest cosine to a gold answer; ties by the order of the sources.

    It reads the gold answer, so its figures are an upper bound of every selection among the same answers, up to the
    encoder. The paper names no BERT; the encoder is an option and named in reports.

    Args:
        encoder: Folder or hub id of the encoder of answers.
        device: auto, cpu or cuda.
        loaded: A loaded encoder, instead of `encoder`.

    Raises:
        MissingInputError: If the encoder is not found.
    """

    name = "oracle (uses the gold answer)"
    uses_gold = True

    def __init__(self, encoder: str = MINILM, device: str = "auto", loaded: AnswerEncoder | None = None) -> None:
        self.encoder = loaded or AnswerEncoder(encoder, device)

    def load(self) -> None:
        """Load the encoder."""
        load(self.encoder)

    @property
    def facts(self) -> list[str]:
        """That it uses the gold answer, and the encoder, for reports."""
        return [f"selection: oracle, which uses the GOLD answer; cosine by {self.encoder.name}"]

    def choose(self, questions: Sequence[Question], answers: Sequence[Mapping[str, Answer]]) -> list[SelectedSource]:
        """The chosen source of every question; scores are cosines to the nearest gold answer.

        Raises:
            UserError: If a question has no gold answer.
        """
        for question in questions:
            if not question.answers:
                raise UserError(
                    f"question {question.id!r} has no gold answer, and the selector oracle chooses by it: give "
                    "questions with answers, or another selector (by default that of the most relevant context)."
                )
        sources = [[source for source, answer in each.items() if answer.text] for each in answers]
        groups = [
            [*(each[source].text for source in known), *question.answers]
            for question, each, known in zip(questions, answers, sources, strict=True)
        ]
        chosen = []
        for known, each, cosines_AA in zip(sources, answers, self.encoder.cosines(groups), strict=True):
            nearest = cosines_AA[: len(known), len(known) :].max(axis=1) if known else ()
            scores = {source: float(score) for source, score in zip(known, nearest, strict=True)}
            chosen.append(greatest(each, scores, "nearest to the gold answer: cosine"))
        return chosen
