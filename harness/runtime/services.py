"""Shared code of the clients of services: addresses, keys from the environment, and error texts without keys.

A key is no option and is written nowhere: an option names the environment variable that holds it."""

import json
import os
import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from common.errors import UserError

SHORTEST_KEY = 8  # a shorter "key", such as EMPTY, protects nothing and may be a word of the text
_SECRET_VALUE = re.compile(r"\b(?:sk|gsk|pk|hf|xai|key|tvly|BSA|AIza)[-_]?[\w-]{16,}")
_LONGEST_ERROR = 300  # characters


def check_key_variable(key_variable: str | None, example: str) -> None:
    """Raise UserError if it cannot name an environment variable, or is the key itself, which is not repeated."""
    if key_variable is not None and (
        not re.fullmatch(r"[A-Z_][A-Z0-9_]*", key_variable) or (len(key_variable) >= 16 and "_" not in key_variable)
    ):
        raise UserError(
            "key_variable must be the name of an environment variable in capital letters, not the key itself, e.g. "
            f"{example}; then export that variable."
        )


def check_url(name: str, url: str | None, examples: str) -> None:
    """Raise UserError if an address is malformed, or holds a user, a password or a query.

    A secret in it is not repeated.
    """
    if url is None:
        return
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if host and "@" in parts.netloc:
        raise UserError(
            f"{name} holds a user or password: leave them out, and export the key as the variable that key_variable "
            "names."
        )
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        shown = "" if "@" in url or "?" in url or _SECRET_VALUE.search(url) else f" is {url!r}, but"
        raise UserError(f"{name}{shown} must be an address without query, such as {examples}.")


def key_in_environment(key_variable: str | None) -> str:
    """The key that an environment variable holds; empty without the variable.

    Raises:
        UserError: If a header cannot hold the key.
    """
    key = os.environ.get(key_variable or "", "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UserError(f"the environment variable {key_variable} holds no key: a key has neither spaces nor accents.")
    return key


def without_key(text: str, key: str) -> str:
    """The text with `[key]` for the key, should a service repeat it."""
    return text.replace(key, "[key]") if len(key) >= SHORTEST_KEY else text


def server_words(body: Mapping[str, Any]) -> str:
    """A server's error message, in the forms of OpenAI, vLLM, FastAPI, Brave and Tavily."""
    found = body.get("error", body)
    for name in ("message", "detail", "error"):
        if isinstance(found, dict) and found.get(name):
            found = found[name]
    return found if isinstance(found, str) else json.dumps(found)


def json_body(content: bytes) -> dict[str, Any]:
    """The JSON object in the body of a response.

    Raises:
        ValueError: If it holds none.
    """
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:  # of the encoding too; or nested thousands deep
        raise ValueError("a response that is no valid JSON") from error
    if not isinstance(body, dict):
        raise ValueError("a response that is no JSON object")
    return body


def check_fields(option: str, fields: Mapping[str, Any], own: Collection[str]) -> None:
    """Raise UserError if a further field of requests is set by this project, is no JSON value, or looks like a key.

    Args:
        option: That holds the fields.
        fields: The fields.
        own: Names of those that this project sets.
    """
    for field, value in fields.items():
        if field in own:
            raise UserError(f"{option} has the field {field!r}, which this project sets itself.")
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UserError(f"{option}: the value of {field!r} is no JSON value.") from error
        if _SECRET_VALUE.search(text):
            raise UserError(f"{option}: the value of {field!r} looks like a key: export it as key_variable names it.")


def one_line(text: str, key: str = "") -> str:
    """A service's error message in one line, shortened, without the key and anything that looks like one."""
    text = _SECRET_VALUE.sub("[key]", without_key(" ".join(text.split()), key))
    return text if len(text) <= _LONGEST_ERROR else text[:_LONGEST_ERROR] + "..."


def valid_text(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
