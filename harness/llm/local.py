"""A local causal LM under the interface of language models.

Chat template, replies with log-probabilities, scores of texts.
"""

import hashlib
import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from common.chat import Chat, Reply, without_chat_marks
from common.errors import UserError
from common.files import sampled_sha256, sha256
from common.ranges import PositiveInt, Precision
from common.sealed_json import fingerprint
from harness.llm.reply_text import as_read

if TYPE_CHECKING:
    from models.causal_lm import CausalLanguageModel, DeviceMap

_KINDS = (".json", ".jinja", ".model", ".safetensors", ".bin")  # of the files that a model's name stands for


class CausalLm:
    """A causal LM of transformers, by folder or hub id.

    A chat becomes a prompt by the tokenizer's chat template. Without one, as of a model that was not trained for chats,
    the prompt is the messages' texts with an empty line between them, and a line break at the end. Texts that the
    tokenizer reads as marks, such as <|im_start|>, are changed inside messages (`< |im_start|>`), and so are the marks
    of common chat templates (`common.chat.without_chat_marks`): no message can begin another one.

    A reply ends with any of the end tokens that generation_config.json names, and one of a single line with any token
    that has a line break; the other settings of that file are not used. Equal
    chats with a temperature above 0 get equal replies, whatever else is in the call; `sample` gives further ones.
    Log-probabilities are those of the model, at temperature 1. `seconds` of a reply is the time of the whole call.

    Args:
        model: Folder or hub id, such as Qwen/Qwen2.5-0.5B-Instruct.
        device: auto, cpu or cuda.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.  Weights stay in fp32.
        context_tokens: Most tokens of a chat and its reply together; the model's when omitted.
        batch_tokens: Most tokens that are computed at once, with replies and padding; by device when omitted.
        device_map: For a model that no single device holds, with `device` auto: `auto`, or the device of each module
            (a number of a GPU, cpu or disk), as accelerate splits it.

    Raises:
        UserError: If `device` and `device_map` are given, the model is not a causal LM or has no end token.
        MissingInputError: If the model is not on this machine.
        ArtifactError: If weights are missing.
    """

    def __init__(
        self,
        model: str,
        device: str = "auto",
        precision: Precision = "auto",
        context_tokens: PositiveInt | None = None,
        batch_tokens: PositiveInt | None = None,
        device_map: "DeviceMap | None" = None,
    ) -> None:
        if device_map is not None and device != "auto":
            raise UserError(f"Both device {device} and device_map are given: omit one of them.")
        self._pretrained, self.device, self.precision, self.device_map = model, device, precision, device_map
        self._context_tokens, self.batch_tokens = context_tokens, batch_tokens

    def load(self) -> None:
        """Load the model."""
        _ = self.model

    @cached_property
    def name(self) -> str:
        """For reports."""
        from models.pretrained import resolve

        return f"{self._pretrained}, {_digest(resolve(self._pretrained))}"

    @cached_property
    def model(self) -> "CausalLanguageModel":
        """The model, in evaluation mode."""
        from models.causal_lm import CausalLanguageModel
        from models.devices import compute_dtype, resolve_device

        where = resolve_device(self.device)
        model = CausalLanguageModel.build(self._pretrained, device_map=self.device_map).eval()
        model = model.to(where) if self.device_map is None else model
        model.inference_dtype = compute_dtype(self.precision, model.device)
        return model

    @cached_property
    def _ended_by_lines(self) -> "CausalLanguageModel":
        return self.model.ended_by_lines()

    @property
    def context_tokens(self) -> int | None:
        """Most tokens of a chat and its reply together; None without a limit."""
        limits = [each for each in (self._context_tokens, self.model.context_tokens) if each is not None]
        return min(limits, default=None)

    @cached_property
    def _marks(self) -> list[str]:
        from models.text_formats import marker_texts

        return marker_texts(self.model.tokenizer)

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat, in order; batched over chats of similar length.

        A chat that is longer than the context, or that the template refuses, gets an error. A reply is cut where the
        context is full.
        """
        from models.token_sampling import SampledTokens, TokenSampling

        started = time.perf_counter()
        prompts = [self._prompt(chat) for chat in chats]
        errors = [prompt if isinstance(prompt, str) else self._too_long(len(prompt)) for prompt in prompts]
        read = {row: prompt for row, prompt in enumerate(prompts) if not isinstance(prompt, str) and not errors[row]}
        written: dict[int, SampledTokens] = {}
        for model, rows in self._by_end(chats, read):
            room = [(self.context_tokens or math.inf) - len(read[row]) for row in rows]
            replied = model.write(
                [read[row] for row in rows],
                [int(min(chats[row].max_tokens, most)) for row, most in zip(rows, room, strict=True)],
                [TokenSampling(chats[row].temperature, _seed_of(chats[row])) for row in rows],
                self.batch_tokens,
            )
            written |= zip(rows, replied, strict=True)
        seconds = time.perf_counter() - started
        replies = [Reply("", error=error, finish="", seconds=seconds) for error in errors]
        for row, text in written.items():
            decoded = self.model.tokenizer.decode(
                text.ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
            came = Reply(
                decoded,
                finish="stop" if text.ended else "length",
                logprob=text.logprob if chats[row].logprobs else None,
                prompt_tokens=len(read[row]),
                reply_tokens=len(text.ids) + text.ended,
                seconds=seconds,
            )
            replies[row] = as_read(came, chats[row].one_line)
        return replies

    def logprobs(self, chats: Sequence[Chat], texts: Sequence[str]) -> list[float]:
        """Log-probability of each text and its end as the reply to its chat, in order.

        It is minus infinity where the model cannot reply so: chat and text fill more than the context, or the chat gets
        an error from `reply`. A reply's own log-probability can differ if its tokens are not those of its text: `re`
        and `d` for `red`.
        """
        prompts = [self._prompt(chat) for chat in chats]
        replies = [self.model.tokenizer(self._plain(text), add_special_tokens=False)["input_ids"] for text in texts]
        read = {
            row: prompt
            for row, prompt in enumerate(prompts)
            if not isinstance(prompt, str) and not self._too_long(len(prompt) + len(replies[row]))
        }
        scores = [-math.inf] * len(texts)
        for model, rows in self._by_end(chats, read):
            found = model.logprobs(
                [read[row] for row in rows], [replies[row] for row in rows], tokens_per_batch=self.batch_tokens
            )
            for row, score in zip(rows, found, strict=True):
                scores[row] = score
        return scores

    def _by_end(self, chats: Sequence[Chat], rows: Iterable[int]) -> "Iterator[tuple[CausalLanguageModel, list[int]]]":
        """The model with the ending that chats ask for, and the rows of these chats."""
        for one_line in (False, True):
            if chosen := [row for row in rows if chats[row].one_line is one_line]:
                yield self._ended_by_lines if one_line else self.model, chosen

    def room(self, chat: Chat) -> float:
        """Tokens that the context leaves for the reply to a chat; 0 or less if it gets an error for its length."""
        prompt = self._prompt(chat)
        return math.inf if isinstance(prompt, str) or self.context_tokens is None else self.context_tokens - len(prompt)

    def _prompt(self, chat: Chat) -> list[int] | str:
        """The token ids of a chat, or why there are none."""
        from jinja2 import TemplateError

        tokenizer = self.model.tokenizer
        contents = [self._plain(message.content) for message in chat.messages]
        if not tokenizer.chat_template:
            ids = tokenizer("\n\n".join(contents) + "\n")["input_ids"]
            return ids[:-1] if ids[-1] in self.model.end_ids else ids  # of a tokenizer that ends every text
        messages = [
            {"role": message.role, "content": content} for message, content in zip(chat.messages, contents, strict=True)
        ]
        try:
            return list(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))
        except TemplateError as error:
            return f"the chat template of {self.name} refuses the chat: {' '.join(str(error).split())}"

    def _plain(self, text: str) -> str:
        """Text without marks between messages."""
        from models.text_formats import neutralize

        return neutralize(without_chat_marks(text), self._marks)

    def _too_long(self, tokens: int) -> str:
        """Why a chat of so many tokens gets no reply; empty if there is room for one."""
        if self.context_tokens is None or tokens < self.context_tokens:
            return ""
        return (
            f"the chat has {tokens} tokens, and {self.name} reads and writes at most {self.context_tokens} together: "
            "shorten the passages, or raise context_tokens if it is set"
        )


def _seed_of(chat: Chat) -> int:
    """A seed that depends on the messages and the number of the sample: equal chats are sampled alike, in any batch."""
    content = json.dumps([[astuple(message) for message in chat.messages], chat.sample])
    return int.from_bytes(hashlib.sha256(content.encode()).digest()[:7], "big")


def _digest(folder: Path) -> str:
    """12 hex digits of the model's files, which tell two models of one name apart; of large files samples."""
    files = sorted(file for file in folder.iterdir() if file.suffix in _KINDS)
    return fingerprint({file.name: sampled_sha256(file) or sha256(file) for file in files})[:12]
