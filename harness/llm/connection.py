"""Connection to a chat endpoint: address, key from the environment, bodies of requests.

Secrets are refused as options, and removed from what the endpoint says.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from common.chat import Chat
from common.errors import UserError
from harness.runtime.services import (
    SHORTEST_KEY,
    check_key_variable,
    check_url,
    key_in_environment,
    looks_like_key,
    valid_text,
)

TokenLimitField = Literal["max_tokens", "max_completion_tokens"]
OPENAI = "https://api.openai.com/v1"
BASE_URL_VARIABLE = "OPENAI_BASE_URL"
_LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")
_OF_EACH_CHAT = ("model", "messages", "stream", "logprobs", "n", *_LIMIT_FIELDS)  # set by this project
_OMITTED = ("temperature", "seed", "stream_options")  # sent, unless the option's value is null
_SECRET_FIELD = re.compile(r"(?i)(api|access|secret)[_-]?(key|token)|authorization|password|secret|token")
_EXAMPLES = f"http://localhost:8000/v1 or {OPENAI}"


def check_connection(
    model: str, base_url: str | None, key_variable: str | None, options: Mapping[str, Any] | None
) -> None:
    """Raise UserError if an option is malformed, is set by the chats, or holds a secret, which is not repeated."""
    if not model.strip():
        raise UserError("model is empty; give the name of a model as the endpoint knows it, e.g. gpt-4o-mini.")
    check_key_variable(key_variable, "OPENAI_API_KEY")
    check_url("base_url", base_url, _EXAMPLES)
    for field, value in (options or {}).items():
        if field in _OF_EACH_CHAT or (field in _OMITTED and value is not None):
            cure = "; null omits it" if field in _OMITTED else ""
            raise UserError(f"options has the field {field!r}, which this project sets itself{cure}.")
        if _SECRET_FIELD.fullmatch(field):
            raise UserError(f"options has the field {field!r}: export the key as the variable that key_variable names.")
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UserError(f"options: the value of {field!r} is no JSON value.") from error
        if looks_like_key(text):
            raise UserError(f"options: the value of {field!r} looks like a key: export it as key_variable names it.")


@dataclass(frozen=True)
class Connection:
    """Where requests go and what they hold; the options are those of `harness.llm.endpoint.ChatEndpoint`."""

    model: str
    base_url: str
    key_variable: str | None
    options: Mapping[str, Any]
    limit_field: TokenLimitField
    reasoning_tokens: int

    @staticmethod
    def resolve(base_url: str | None) -> str:
        """The address: as given, of the environment, or OpenAI's; without a slash at its end.

        Raises:
            UserError: If that of the environment is malformed or holds a secret.
        """
        found = base_url or os.environ.get(BASE_URL_VARIABLE) or OPENAI
        check_url(f"the environment variable {BASE_URL_VARIABLE}", None if base_url else found, _EXAMPLES)
        return found.rstrip("/")

    @property
    def host(self) -> str:
        """Host and port."""
        return urlsplit(self.base_url).netloc

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
        if len(key) >= SHORTEST_KEY and key in json.dumps([self.model, self.base_url, dict(self.options)]):
            raise UserError(f"model, base_url or options hold the key of {self.key_variable}: remove it there.")
        return key

    def cure(self, status: int) -> str:
        """What to do when the endpoint refuses every request with this status."""
        if status in (401, 403) and self.key_variable:
            return f"export a valid key as {self.key_variable}."
        if status in (401, 403):
            return "name the environment variable that holds the key with the option key_variable."
        if status in (402, 429):
            return "the account has no credit left; add some, then run the same command again."
        return f"check model ({self.model}) and base_url ({self.base_url}), which usually ends in /v1."

    def request(self, chat: Chat, stream: bool = False) -> dict[str, Any]:
        """The body of the request for a chat."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": each.role, "content": valid_text(each.content)} for each in chat.messages],
            self.limit_field: chat.max_tokens + self.reasoning_tokens,
            "temperature": chat.temperature,
        }
        if chat.temperature > 0:
            body["seed"] = chat.sample
        if chat.logprobs:
            body["logprobs"] = True
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return {name: value for name, value in (body | dict(self.options)).items() if value is not None}
