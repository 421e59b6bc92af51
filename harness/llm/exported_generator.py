"""An exported T5 generator of this project under the interface of language models.

The user message is the text it reads.
"""

import math
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from common.chat import Chat, Reply
from common.errors import UserError
from common.ranges import Precision
from harness.llm.chat_seed import seed_of

if TYPE_CHECKING:
    from models.rerag.generator import Generator
    from models.rerag.model import ReRagModel


class ExportedGenerator:
    """RE-RAG's generator, or DR-RAG's reader, as a language model.

    It knows no instructions: a chat is one user message in the generator's text format, as the prompts generator_fid,
    generator_re_rag_release, generator_re_rag_train and generator_packed write it (harness/llm/prompts). `prompt` is
    the name of the one in its format, which a language-model reader uses unless another is configured. With it and
    greedy replies it answers as the readers of harness.readers.t5, token by token: passages that are too long are
    truncated, the question never is. Only documents in `packed` whose text has an empty line before "document 2: " may
    be cut at another place. A message in another form is read as it is; if it exceeds the generator's maximum length,
    it gets an error, because the place of the question in it is unknown.

    A reply has at most the generator's `max_answer_tokens`, however many the chat allows. `seconds` of a reply is the
    time of the whole call.

    Args:
        serving: Folder with a generator, e.g. checkpoints/rerag-world/serving.
        device: auto, cpu or cuda.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        UserError: If the device is not possible here, or the generator writes questions.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If it is corrupt, of another kind or text format, or has no generator.
    """

    def __init__(self, serving: Path, device: str = "auto", precision: Precision = "auto") -> None:
        self.serving, self.device, self.precision = serving, device, precision

    def load(self) -> None:
        """Load the generator."""
        _ = self._model

    @cached_property
    def _model(self) -> "ReRagModel":
        from models.rerag.model import ESTIMATOR, GENERATOR, ReRagModel

        return ReRagModel.load(Path(self.serving), self.device, (GENERATOR,), self.precision, (ESTIMATOR,))

    @property
    def generator(self) -> "Generator":
        """What replies."""
        assert self._model.generator is not None  # required above
        return self._model.generator

    @property
    def max_answer_tokens(self) -> int:
        """Most tokens of a reply."""
        return self._model.max_answer_tokens

    @property
    def prompt(self) -> str:
        """Name of the prompt in the generator's text format."""
        return f"generator_{self.generator.encode.format}"

    @cached_property
    def name(self) -> str:
        """For reports: the same name is the same generator, as the manifest holds the checksums of all files."""
        from common.files import sha256
        from models.serving_manifest import MANIFEST

        self.load()
        return f"generator of {self.serving}, {sha256(Path(self.serving) / MANIFEST)[:12]}"

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat, in order; batched over chats of similar length."""
        from models.token_choice import Choice

        started = time.perf_counter()
        inputs, errors = self._inputs(chats)
        generated = self.generator.read(
            list(inputs.values()),
            [min(chats[row].max_tokens, self.max_answer_tokens) for row in inputs],
            [Choice(chats[row].temperature, seed_of(chats[row])) for row in inputs],
        )
        seconds = time.perf_counter() - started
        replies = [Reply("", error=error, finish="", seconds=seconds) for error in errors]
        for (row, ids), answer in zip(inputs.items(), generated, strict=True):
            replies[row] = Reply(
                answer.text,
                finish="stop" if answer.ended else "length",
                logprob=answer.logprob if chats[row].logprobs else None,
                prompt_tokens=len(ids),
                reply_tokens=answer.tokens,
                seconds=seconds,
            )
        return replies

    def logprobs(self, chats: Sequence[Chat], texts: Sequence[str]) -> list[float]:
        """Log-probability of each text and its end as the reply to its chat, in order; equal chats are encoded once.

        It is minus infinity for a chat that gets an error from `reply`.
        """
        inputs, _ = self._inputs(chats)
        scores = [-math.inf] * len(texts)
        found = self.generator.logprobs(list(inputs.values()), [texts[row] for row in inputs])
        for row, score in zip(inputs, found, strict=True):
            scores[row] = score
        return scores

    def _inputs(self, chats: Sequence[Chat]) -> tuple[dict[int, list[int]], list[str]]:
        """Token ids by place of the chat, and for every chat why it has none, or an empty text."""
        inputs: dict[int, list[int]] = {}
        errors = [""] * len(chats)
        most = self.generator.encode.max_tokens
        for row, chat in enumerate(chats):
            if [message.role for message in chat.messages] != ["user"]:
                errors[row] = f"{self.name} reads one user message, without a system message or earlier turns"
                continue
            try:
                ids = self.generator.encode.encode_text(chat.messages[0].content)
            except UserError as error:
                errors[row] = str(error)
                continue
            if len(ids) > most:
                errors[row] = (
                    f"the message has {len(ids)} tokens, and {self.name} reads at most {most}: name a prompt in its "
                    "text format, such as generator_fid, so that passages are truncated, or shorten the message"
                )
            else:
                inputs[row] = ids
        return inputs, errors
