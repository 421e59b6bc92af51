"""RE-RAG's training options, and three presets: the released code, the paper as printed, and our best."""

from dataclasses import dataclass, fields, replace
from typing import Literal

from common.errors import UserError
from common.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from models.context_tokenizer import ContextFormat
from models.cross_encoder import TRUE_FALSE
from trainers.rerag_losses import GenForm, KlDirection, LabelForm
from trainers.run.optimizers import Optimizer

PresetName = Literal["ours", "released", "paper"]


@dataclass(frozen=True)
class Text:
    """What the models read and write.

    Args:
        format: A T5's text of question and context: fid, re_rag_train, re_rag_release; `packed` trains a reader of all
            documents in one call, without an estimator. The preset's when null. Encoders and causal LMs have their own;
            a causal LM can be `packed`, too, and one that estimates `qwen3_reranker`: in Qwen3-Reranker's prompt it
            says yes and no.
        max_answer_tokens: Longest answer, in tokens, in training and generation.
        answer_prefix: Text before every answer; "Answer: " in the released code. The preset's when null.
        repetition_penalty: Of a T5's generation; exported in its generation_config.json. The preset's when null.
        true_word: The word of a T5 or a causal LM for a relevant context; it must be one token of the vocabulary.
        false_word: Its word for an irrelevant context. In mT5's vocabulary "false" is two tokens: use yes and no there.
    """

    format: ContextFormat | Literal["qwen3_reranker"] | None = None
    max_answer_tokens: PositiveInt = 32
    answer_prefix: str | None = None
    repetition_penalty: PositiveFloat | None = None
    true_word: str = TRUE_FALSE[0]
    false_word: str = TRUE_FALSE[1]


@dataclass(frozen=True)
class Loss:
    """L = L_gen + kl_weight L_re + token_weight L_tok (Eq. 12) + label_weight L_label + teacher_weight L_teacher.

    The last two are supervision: by labels, and by the scores of another model.

    Args:
        gen_form: Form of L_gen: `marginal` or `per_context`. The preset's when null.
        kl_direction: Direction of L_re: `generator_to_estimator` or `estimator_to_generator`. The preset's when null.
        kl_weight: alpha_1 of the paper.
        token_weight: alpha_2 of the paper. When null: 1; 0 without a generator or with an encoder-only estimator, which
            has no L_tok.
        label_weight: Weight of L_label.
        label_form: Form of L_label: `pointwise`, `listwise`, or `vocabulary` (the released warm-up; T5 estimators
            only).
        label_false_weight: Weight of an irrelevant context in L_label, except `listwise`.
        teacher_weight: Weight of L_teacher: the scores of `data.teacher` are learned; labels of contexts that have one
            count nothing.
        teacher_temperature: What divides the teacher's scores: 1 for log-odds, about 0.05 for cosines.
    """

    gen_form: GenForm | None = None
    kl_direction: KlDirection | None = None
    kl_weight: NonNegativeFloat = 1.0
    token_weight: NonNegativeFloat | None = None
    label_weight: NonNegativeFloat = 0.0
    label_form: LabelForm = "pointwise"
    label_false_weight: NonNegativeFloat = 0.125
    teacher_weight: NonNegativeFloat = 0.0
    teacher_temperature: PositiveFloat = 1.0


@dataclass(frozen=True)
class JointOptimizer(Optimizer):
    """AdamW for both models.

    Args:
        estimator_learning_rate: The estimator's peak learning rate, 0 to freeze it; `learning_rate` when null.
        generator_learning_rate: The generator's, `learning_rate` when null. 0 freezes it: it has no dropout, gradients
            and moments, and its log P of each context's answer is computed once and kept in `data.cache`.
    """

    estimator_learning_rate: NonNegativeFloat | None = None
    generator_learning_rate: NonNegativeFloat | None = None


@dataclass(frozen=True)
class Validation:
    """How validation reads.

    Args:
        contexts: Number of the estimator's best contexts that answers are generated from; 0 generates none, and
            measures the estimator alone.
        fit_temperature: Whether it marginalizes answers by `thorough` and exports the temperature of P_RE with the
            highest exact match; otherwise `fast` with temperature 1. The preset's when null.
    """

    contexts: NonNegativeInt = 10
    fit_temperature: bool | None = None


@dataclass(frozen=True)
class Abstention:
    """How validation chooses the threshold below which a question is refused.

    Args:
        contexts: Number of the estimator's best contexts that it is chosen for: a validation question is answerable if
            one of them is relevant (Section 5.3). Set it to the `contexts` of serving; 25 in the paper.
        cost: Cost of refusing an answerable question, if answering an unanswerable one costs 1. The exported threshold
            has the lowest cost on validation: (cost * answerable questions refused + unanswerable questions answered)
            / questions. When null, the paper's: of 0.5, 0.6, ..., 0.9 the one with the best F1. The share of
            unanswerable questions counts: where it is v in validation and s in serving, multiply by (1 - s) v /
            (s (1 - v)).
    """

    contexts: PositiveInt = 25
    cost: PositiveFloat | None = None


@dataclass(frozen=True)
class Preset:
    """The options that a preset sets."""

    gen_form: GenForm
    kl_direction: KlDirection
    format: ContextFormat | Literal["qwen3_reranker"] = "fid"
    answer_prefix: str = ""
    repetition_penalty: float = 1.0
    fit_temperature: bool = False


PRESETS: dict[PresetName, Preset] = {
    "released": Preset("marginal", "generator_to_estimator", "re_rag_train", "Answer: ", 2.5),
    "paper": Preset("per_context", "estimator_to_generator"),
    "ours": Preset("marginal", "generator_to_estimator", fit_temperature=True),
}


def preset_of(preset: PresetName, *options: Loss | Text | Validation) -> Preset:
    """A preset's choices, with those that the options give."""
    given = {name: value for each in options for name, value in vars(each).items() if value is not None}
    return replace(PRESETS[preset], **{each.name: given[each.name] for each in fields(Preset) if each.name in given})


def refuse(contradicts: bool, told: str) -> None:
    """Raise UserError with a message if options contradict each other."""
    if contradicts:
        raise UserError(told)
