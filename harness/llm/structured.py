"""Structured outputs: replies that must parse.

A reply that does not is shown to the model again with the reason, a bounded number of times; after that it is recorded
as a failure.

    class Fields(ReplyFields):
        reason: ReplyText
        verdict: Word[Literal["correct", "incorrect"]]

    for each in ask_parsed(model, chats, Fields.of):
        each.value or each.failure
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from common.chat import Chat, Message, Reply, reply_costs
from harness.interfaces import LanguageModel
from harness.runtime.services import valid_text

T = TypeVar("T")
_SHOWN_CHARACTERS = 2000  # of a reply that did not parse, when the model is asked to repair it


@dataclass(frozen=True, slots=True)
class ParsedReply(Generic[T]):
    """The value parsed from a model's replies to one chat, or the reason why there is none."""

    value: T | None
    failure: str = ""  # in one line; empty if there is a value
    replies: tuple[Reply, ...] = ()  # of all rounds, those that did not parse included

    @property
    def costs(self) -> dict[str, float]:
        """The costs of all rounds."""
        return reply_costs(self.replies)


def ask_parsed(
    model: LanguageModel, chats: Sequence[Chat], parse: Callable[[str], T], repairs: int = 1
) -> list[ParsedReply[T]]:
    """Ask for replies that must parse.

    Each round is one `reply` call over all chats without a value so far. In a further round the model sees its reply
    and the reason why it did not parse. A chat whose call failed is not asked again: the model has made its own
    retries.

    Args:
        model: Is asked.
        chats: The requests.
        parse: The value of a reply's text; raises ValueError, with a reason that a model understands.
        repairs: Number of further rounds, at most.

    Returns:
        One result per chat, in order.

    Raises:
        UserError: If `repairs` is negative, or no chat can succeed (from the model).
    """
    results: list[ParsedReply[T]] = [ParsedReply(None) for _ in chats]
    asked = dict(enumerate(chats))
    for _ in range(repairs + 1):
        if not asked:
            break
        replies = model.reply([*asked.values()])
        again: dict[int, Chat] = {}
        for (place, chat), reply in zip(asked.items(), replies, strict=True):
            value, failure = _parsed(reply, parse, chat.max_tokens)
            results[place] = ParsedReply(value, failure, (*results[place].replies, reply))
            if failure and not reply.error:
                again[place] = _repair(chat, reply.text, failure)
        asked = again
    return results


def _parsed(reply: Reply, parse: Callable[[str], T], max_tokens: int) -> tuple[T | None, str]:
    """The value of a reply, and why there is none."""
    if reply.error:
        return None, reply.error
    try:
        return parse(reply.text), ""
    except ValueError as error:
        cut = f"; the reply was cut after {max_tokens} tokens" if reply.finish == "length" else ""
        return None, " ".join(valid_text(f"{str(error) or 'the reply does not parse'}{cut}").split())


def _repair(chat: Chat, text: str, reason: str) -> Chat:
    """The chat with the model's reply and the reason why it does not parse."""
    shown = valid_text(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + " ...").strip()
    further = (
        Message("assistant", shown or "(empty)"),
        Message("user", f"This reply cannot be used: {reason}. Reply again, only in the form that was asked for."),
    )
    return replace(chat, messages=(*chat.messages, *further))


VALID = BeforeValidator(  # pydantic refuses halves of surrogate pairs, which JSON can hold
    lambda value: valid_text(value) if isinstance(value, str) else value
)
ReplyText = Annotated[str, Field(min_length=1, max_length=2000), VALID]
Word = Annotated[T, BeforeValidator(lambda value: value.strip().lower() if isinstance(value, str) else value)]


class ReplyFields(BaseModel):
    """The fields of the JSON object in a reply: a subclass declares all of them, and no value is converted.

    Texts lose the white space around them.
    """

    model_config = ConfigDict(extra="forbid", strict=True, str_strip_whitespace=True)

    @classmethod
    def of(cls, reply: str) -> Self:
        """The fields.  Text and code fences around the object are ignored; the object itself is read strictly.

        Raises:
            ValueError: If there is no object or there are several different ones, a key is missing, unknown or
                repeated, or a value is of another type or out of range.
        """
        return cls.checked(json_object(reply))

    @classmethod
    def checked(cls, found: dict[str, Any]) -> Self:
        """The fields of an object; raises ValueError as `of`."""
        try:
            return cls.model_validate(found)
        except ValidationError as error:
            keys = ", ".join(cls.model_fields)
            raise ValueError(f"the JSON object's {first_fault(error)}; its keys must be {keys}") from error


def first_fault(error: ValidationError) -> str:
    """The first fault in one line: its place, and what must be there."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place[:50]!r}: {first['msg']}"


def json_object(text: str) -> dict[str, Any]:
    """The JSON object in a text.

    Raises:
        ValueError: If there is none, there are several different ones, or it repeats a key or holds NaN or Infinity.
    """
    found: list[dict[str, Any]] = []
    for each in _objects(text):
        if each not in found:
            found.append(each)
    if len(found) != 1:
        what = "no complete JSON object" if not found else f"{len(found)} different JSON objects"
        raise ValueError(f"the reply holds {what}; one is needed")
    return found[0]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost JSON objects in a text."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeats, parse_constant=_refuse_constant, strict=False)
    start = text.find("{")
    while start >= 0:
        try:
            found, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError:
            end = start + 1  # no object begins here
        except RecursionError as error:
            raise ValueError("the JSON object is nested too deeply") from error
        else:
            yield found
        start = text.find("{", end)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("the JSON object repeats a key")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")
