"""Any OpenAI-compatible chat endpoint as a language model, by the `openai` package.

Secrets are refused as options, and removed from the endpoint's messages.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from common.chat import Chat, Reply, without_chat_marks
from common.errors import RefusedError, UserError
from common.progress import Progress
from common.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from common.threads import as_completed
from harness.llm.reply_text import as_read
from harness.runtime.services import (
    SHORTEST_KEY,
    check_fields,
    check_key_variable,
    check_url,
    key_in_environment,
    valid_text,
)
from harness.runtime.store import Store

if TYPE_CHECKING:
    from harness.llm.chat_replies import ChatClient

OPENAI = "https://api.openai.com/v1"
BASE_URL_VARIABLE = "OPENAI_BASE_URL"
_EXAMPLES = f"http://localhost:8000/v1 or {OPENAI}"
_OF_EACH_CHAT = (  # set by this project
    "model", "messages", "stream", "stream_options", "logprobs", "n", "max_tokens", "max_completion_tokens",
)  # fmt: skip
FILE = "replies.sqlite"
_LOST = "its replies will be requested again"
_FORMAT = 3  # of the names of stored replies; increase it when the meaning of a reply changes
_OMITTED = ("temperature", "seed")  # sent, unless the option's value is null
_SECRET_FIELD = re.compile(r"(?i)(api|access|secret)[_-]?(key|token)|authorization|password|secret|token")
NO_LOGPROBS = "a reply without log-probabilities"


class ChatEndpoint:
    """A model behind an OpenAI-compatible endpoint (`POST BASE_URL/chat/completions`).

    OpenAI, vLLM, llama.cpp, and others.

    Replies are cached on disk, so that no reply is paid for twice. The marks of chat templates are changed inside
    messages (`common.chat.without_chat_marks`), so that no message can begin another one.

    Args:
        model: Name of the model, as the endpoint knows it.
        base_url: Address of the endpoint, such as http://localhost:8000/v1; when None that in the environment variable
            OPENAI_BASE_URL, or else OpenAI's.
        key_variable: Name of the environment variable that holds the key.  The key itself is no option, so that it is
            never written to a file.  Without the variable, or with None, requests carry no key, as your own server
            allows; OpenAI needs one.
        timeout_seconds: Deadline of each attempt, to the end of the response.
        max_retries: Further attempts after 408, 409, 429, 5xx, no connection, no reply in time or a broken reply.
        concurrency: Requests at the same time.
        cache: Folder of the response cache; None stores nothing and requests everything again.
        usd_per_million_prompt_tokens: Price; None leaves the costs in US dollars unknown.
        usd_per_million_reply_tokens: Price; None as above.
        options: Further fields of each request, such as {"reasoning_effort": "low"}; null omits a field that is
            otherwise sent: temperature or seed.
        token_limit_field: Field for the length of the reply; newer models of OpenAI accept only max_completion_tokens.
        reasoning_tokens: Added to each chat's limit, for models that think before they reply and whose thoughts count.

    Raises:
        UserError: If an option contradicts another or holds a secret, or the key is missing.
    """

    concurrent_calls = True  # several threads may call it

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        key_variable: str | None = "OPENAI_API_KEY",
        timeout_seconds: PositiveFloat = 60.0,
        max_retries: NonNegativeInt = 6,
        concurrency: PositiveInt = 8,
        cache: Path | None = Path("cache/llm"),
        usd_per_million_prompt_tokens: NonNegativeFloat | None = None,
        usd_per_million_reply_tokens: NonNegativeFloat | None = None,
        options: dict[str, Any] | None = None,
        token_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        reasoning_tokens: NonNegativeInt = 0,
    ) -> None:
        _check_options(model, base_url, key_variable, options or {})
        self.model, self.base_url, self.key_variable = model, _address(base_url), key_variable
        self.options, self.token_limit_field, self.reasoning_tokens = options or {}, token_limit_field, reasoning_tokens
        self.timeout_seconds, self.max_retries, self.concurrency = timeout_seconds, max_retries, concurrency
        self.cache = None if cache is None else Path(cache)
        self.prices = (usd_per_million_prompt_tokens, usd_per_million_reply_tokens)
        self.name = f"{model} at {urlsplit(self.base_url).netloc}"
        if self.cache is None or not (self.cache / FILE).exists():  # stored replies can be had without a key
            self.key()
        self._gave_logprobs = False

    @property
    def identity(self) -> dict[str, Any]:
        """The options that determine replies and their costs, JSON types only; results are reused for equal ones."""
        names = ("model", "base_url", "options", "token_limit_field", "reasoning_tokens")
        return {**{name: getattr(self, name) for name in names}, "prices": list(self.prices)}

    def key(self) -> str:
        """The key in the environment; empty if there is none.

        Raises:
            UserError: If OpenAI's endpoint would be asked without a key, a header cannot hold the key, or an option
                repeats it.
        """
        key = key_in_environment(self.key_variable)
        if not key and self.base_url == OPENAI:
            raise UserError(
                f"{OPENAI} needs a key: export {self.key_variable or 'OPENAI_API_KEY'}=..., or set base_url to another "
                "endpoint."
            )
        if len(key) >= SHORTEST_KEY and key in json.dumps([self.model, self.base_url, self.options]):
            raise UserError(f"model, base_url or options hold the key of {self.key_variable}: remove it there.")
        return key

    def request(self, chat: Chat) -> dict[str, Any]:
        """The body of the request for a chat."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [
                {"role": each.role, "content": without_chat_marks(valid_text(each.content))} for each in chat.messages
            ],
            self.token_limit_field: chat.max_tokens + self.reasoning_tokens,
            "temperature": chat.temperature,
        }
        if chat.temperature > 0:
            body["seed"] = chat.sample
        if chat.logprobs:
            body["logprobs"] = True
        if chat.one_line:
            body["stop"] = ["\n"]
        return {name: value for name, value in (body | self.options).items() if value is not None}

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat, in order: stored by an earlier request, or requested now; equal chats are requested once.

        A chat that fails gets a `Reply` with `error`.  The log-probability is the sum over the tokens that the endpoint
        lists; whether the end of the text is among them depends on the endpoint.

        Raises:
            UserError: If no chat can succeed (wrong key, unknown model), the endpoint gives no log-probabilities and a
                chat needs them, or the key is missing.
            UnavailableError: If the endpoint is down: it cannot be reached, or 429 or 5xx after all retries.
            ArtifactError: If the cache is corrupt or cannot be written.
        """
        names = [self._name(chat) for chat in chats]
        wanted = dict(zip(names, chats, strict=True))
        with Store(self.cache / FILE, _LOST) if self.cache else nullcontext() as store:
            replies: dict[str, Reply] = {}
            for name in wanted:
                if store and (stored := store.find(name)):
                    reply = as_read(self._priced(Reply(**stored[0], cached=True)), wanted[name].one_line)
                    if reply.error:  # of an earlier version, which kept it: a failure is asked again
                        store.drop(name)
                    else:
                        replies[name] = reply
            missing = [name for name in wanted if name not in replies]

            def ask(name: str) -> tuple[str, Reply]:
                came, reply = self._ask(wanted[name])
                if store and not reply.error:
                    store.store(name, {key: value for key, value in asdict(came).items() if key != "cached"})
                return name, reply

            if missing:
                if store:
                    store.check_writable()
                _ = self._client  # is reached
                with Progress(f"asking {self.model}", len(wanted), len(replies)) as progress:
                    for name, reply in as_completed(ask, missing, self.concurrency):
                        replies[name] = reply
                        progress.update()
        found = []
        for name in names:
            found.append(replies[name])
            if not replies[name].error:  # further equal chats cost nothing
                replies[name] = replace(replies[name], cached=True)
        return found

    def _name(self, chat: Chat) -> str:
        """The name of a chat's reply in the cache."""
        asked = {"base_url": self.base_url, "sample": chat.sample, "request": self.request(chat), "format": _FORMAT}
        return hashlib.sha256(json.dumps(asked, sort_keys=True, allow_nan=False).encode()).hexdigest()

    @cached_property
    def _client(self) -> "ChatClient":
        from harness.llm.chat_replies import ChatClient
        from harness.web.service_failures import Service, usual_cures

        cures = usual_cures(
            f"export a valid key as {self.key_variable or 'a variable, and name it with key_variable'}.",
            "the account has no credit left; add some, then run the same command again.",
            f"check model ({self.model}) and base_url ({self.base_url}), which usually ends in /v1.",
        )
        service = Service(self.name, "chats", self.base_url, self.key(), self.timeout_seconds, self.cache, cures)
        return ChatClient(service, self.max_retries)

    def _ask(self, chat: Chat) -> tuple[Reply, Reply]:
        """The reply to a chat as it came, and as it is read; or why there is none.

        Raises:
            UserError: If no chat can succeed.
            UnavailableError: If the endpoint is down.
        """
        began = monotonic()
        came = self._priced(replace(self._client.ask(self.request(chat)), seconds=monotonic() - began))
        came = came if chat.logprobs else replace(came, logprob=None)
        reply = as_read(came, chat.one_line)
        if reply.error or not chat.logprobs:
            return came, reply
        if reply.logprob is None and not self._gave_logprobs:
            raise RefusedError(
                f"{self.name} gives no log-probabilities, and log-probabilities are needed here: set the reader's "
                "marginal to fast, or use an endpoint that gives them, such as vLLM, llama.cpp or OpenAI."
            )
        self._gave_logprobs = True
        return came, reply if reply.logprob is not None else replace(reply, text="", error=NO_LOGPROBS, finish="")

    def _priced(self, reply: Reply) -> Reply:
        """The reply with its price, if it has none and prices are known."""
        if reply.usd is not None or None in self.prices:
            return reply
        counts = (reply.prompt_tokens, reply.reply_tokens)
        return replace(reply, usd=sum(n * (usd or 0.0) for n, usd in zip(counts, self.prices, strict=True)) / 1e6)


def _check_options(model: str, base_url: str | None, key_variable: str | None, options: Mapping[str, Any]) -> None:
    """Raise UserError if an option is malformed, is set by the chats, or holds a secret, which is not repeated."""
    if not model.strip():
        raise UserError("model is empty; give the name of a model as the endpoint knows it, e.g. gpt-4o-mini.")
    check_key_variable(key_variable, "OPENAI_API_KEY")
    check_url("base_url", base_url, _EXAMPLES)
    if secret := next(filter(_SECRET_FIELD.fullmatch, options), None):
        raise UserError(f"options has the field {secret!r}: export the key as the variable that key_variable names.")
    sent = (field for field in _OMITTED if options.get(field) is not None)
    check_fields("options", options, (*_OF_EACH_CHAT, *sent))


def _address(base_url: str | None) -> str:
    """The address: as given, of the environment, or OpenAI's; without a slash at its end.

    Raises:
        UserError: If that of the environment is malformed or holds a secret.
    """
    found = base_url or os.environ.get(BASE_URL_VARIABLE) or OPENAI
    check_url(f"the environment variable {BASE_URL_VARIABLE}", None if base_url else found, _EXAMPLES)
    return found.rstrip("/")
