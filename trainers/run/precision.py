"""Which of Lightning's precisions are trained in, and why the others are refused."""

from common.errors import UserError

ALIASES = {"16": "16-mixed", "32": "32-true", "64": "64-true", "bf16": "bf16-mixed"}
FP16 = (
    "overflows in T5's feed-forward layers, whose activations exceed fp16's 65,504, and has not been shown to train "
    "others"
)
ENGINE = "needs NVIDIA's Transformer Engine, with which no model has been trained here"
REFUSED = {
    "bf16-true": "keeps the weights in bf16, whose 8 significant bits lose most of AdamW's small updates",
    "16-true": FP16,
    "16-mixed": FP16,
    "64-true": "doubles memory and gains nothing: scores and exports are fp32",
    "transformer-engine": ENGINE,
    "transformer-engine-float16": ENGINE,
}


def refuse_precision(precision: str | int | None) -> None:
    """Check that training keeps fp32 weights, which exports and resumed runs need: in 32-true or bf16-mixed.

    Args:
        precision: Lightning's name or alias; None is 32-true, `auto` one of the allowed ones (`trainers.run.trainer`).

    Raises:
        UserError: If it is another one.
    """
    if precision in (None, "auto") or (name := ALIASES.get(str(precision), str(precision))) in (
        "32-true",
        "bf16-mixed",
    ):
        return
    reason = REFUSED.get(name, "has not been shown to train, resume and export here")
    raise UserError(
        f"trainer.precision is {precision}, which {reason}: type --trainer.precision bf16-mixed (CPUs, and GPUs since "
        "Ampere) or 32-true."
    )
