"""Fits MSRAG's learned choice on validation questions, as `harness.answer_selection.learned.LearnedSelector` reads it.

Every source is asked once per question; the answers that are right by the gold answer teach the model.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common.ranges import PositiveFloat
from common.records import Question
from harness.answer_selection.answer_encoder import AnswerEncoder
from harness.answer_selection.estimator import ContextProbability, EstimatedRelevance
from harness.answer_selection.features import answer_features
from harness.answer_selection.learned import LearnedSelector, choices, fit, out_of_fold
from harness.evaluation.answer_scores import MEASURES
from harness.evaluation.msrag.tables import is_yes_no, scores_of
from harness.evaluation.serialization import digest
from harness.evaluation.settings import Settings
from harness.runtime.long_questions import with_turns
from harness.systems.msrag import Msrag
from models.msrag.answer_model import ANSWER_MODEL
from models.pretrained import MINILM


class Tuning:
    """Fits a logistic model of P(answer is right) over the answers of all sources.

    Args:
        encoder: Of the cosines between answers; folder or hub id.
        penalty: L2.
    """

    output = ANSWER_MODEL.output

    def __init__(self, encoder: str = MINILM, penalty: PositiveFloat = 1.0) -> None:
        self.encoder, self.penalty = encoder, penalty

    def tune(self, system: Msrag, questions: Sequence[Question], out: Path, settings: Settings) -> list[str]:
        """Ask every source, fit, and write the file.

        Args:
            system: Its reader, its sources and its selector's estimator count; its choice does not.
            questions: Validation questions; those without a gold answer do not count.
            out: The file.
            settings: Normalization, layout, and the folder of answers that are kept until the file is written.

        Raises:
            UserError: If all answers are right or all are wrong.
        """
        system.load_sources()  # the selector is yet to be fitted
        asked = [with_turns(question, system) for question in questions if question.answers]
        remembering = system.with_settings()
        remembering.memo = settings.shared_memo()
        answers = remembering.read(asked, *remembering.gather(asked))
        encoder = AnswerEncoder(self.encoder)
        probability = ContextProbability(None)
        if isinstance(system.selector, EstimatedRelevance | LearnedSelector):
            probability = system.selector.probability
        features = answer_features(asked, answers, encoder, probability)
        measure = 2 if is_yes_no(asked) else 0
        by_source = {s: scores_of([each[s] for each in answers], asked, settings)[measure] for s in system.names}
        right = [{s: bool(by_source[s][n] == 1) for s in system.names} for n in range(len(asked))]
        model = fit(features, right, self.penalty)
        fitted = {"questions": len(asked), "sha256": digest(asked)[:12]}
        model = replace(model, encoder=encoder.name, encoder_sha256=encoder.recipe, fitted=fitted)
        ANSWER_MODEL.write(out, model.content)
        reached = {
            "on other questions": out_of_fold(asked, answers, features, right, self.penalty),
            "on these": choices(model, answers, features),
        }
        given = {
            name: [own[choice.source] for own, choice in zip(answers, chosen, strict=True)]
            for name, chosen in reached.items()
        }
        told = [f"{name} {100 * scores_of(own, asked, settings)[measure].mean():.2f} %" for name, own in given.items()]
        told += [f"{source} alone {100 * values_N.mean():.2f} %" for source, values_N in by_source.items()]
        return [
            f"the choice, fitted on {len(asked)} questions; {MEASURES[measure].removesuffix(' %')}: {', '.join(told)}"
        ]
