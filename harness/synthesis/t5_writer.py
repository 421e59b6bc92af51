"""Writes questions with a trained T5: reads the answer and the passages, writes the question."""

from collections.abc import Sequence
from pathlib import Path

from common.checks import Precision
from common.errors import UserError
from harness.synthesis.drafts import Draft, Task


class T5Writer:
    """A writer of questions.

    Args:
        serving: Folder with a generator trained with text_format `question_writing`, e.g.
            checkpoints/question-writer-world/serving.
        device: auto, cpu or cuda.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        UserError: If the generator answers questions, or the device is not possible here.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If it is corrupt, of another kind, or has no generator.
    """

    def __init__(self, serving: Path, device: str = "auto", precision: Precision = "auto") -> None:
        from models.rerag.model import GENERATOR, ReRagModel

        model = ReRagModel.load(Path(serving), device, needs=(GENERATOR,), precision=precision)
        assert model.generator is not None  # required above
        if model.generator.encode.format != "question_writing":
            raise UserError(
                f"{serving} holds a generator that answers questions ({model.generator.encode.format}): the writer "
                "needs one that was trained with text_format question_writing, as in "
                "configs/train/question_writer_world.yaml."
            )
        self.generator, self.max_question_tokens = model.generator, model.max_answer_tokens
        self.fact = f"T5 of {serving}"

    def write(self, tasks: Sequence[Task]) -> list[Draft]:
        """The greedy question to each candidate answer; batched over tasks of similar length."""
        rows = [(task.answer, task.passages) for task in tasks]
        written = self.generator.answers(rows, self.max_question_tokens)
        return [Draft(text, task.answer) for (text, _), task in zip(written, tasks, strict=True)]
