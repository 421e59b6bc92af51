"""Presets of RE-RAG's training options: the released code, the paper as printed, and what measured best here."""

from dataclasses import dataclass
from typing import Literal

from models.rerag.context_tokenizer import ContextFormat
from trainers.rerag_losses import GenForm, KlDirection

Protocol = Literal["ours", "released", "paper"]


@dataclass(frozen=True)
class Choices:
    """The options that a protocol sets."""

    gen_form: GenForm
    kl_direction: KlDirection
    text_format: ContextFormat = "fid"
    answer_prefix: str = ""
    repetition_penalty: float = 1.0  # of generation
    fit_temperature: bool = False  # of P_RE, on validation


PROTOCOLS: dict[Protocol, Choices] = {
    "released": Choices("marginal", "generator_to_estimator", "re_rag_train", "Answer: ", 2.5),
    "paper": Choices("per_context", "estimator_to_generator"),
    "ours": Choices("marginal", "generator_to_estimator", fit_temperature=True),
}
