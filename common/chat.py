"""Records of a chat with a language model: messages, the request, the reply with its log-probability and costs.

Standard library only.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", ""]
_MARK = re.compile(  # by which chat templates part messages; a tokenizer reads most of them as one token
    r"<\|[^<>\n]{1,60}>|<[^<>\s|]{1,60}\|>|<\uff5c[^<>\n]{1,60}>|\[\|[^\[\]\n]{1,60}\]|<</?sys>>|</?s>"
    r"|</?(?:bos|eos|pad|unk|mask|cls|sep|sop|eop|eod|eot|think|tool_call|tool_response|image)>"
    r"|<\w{1,40}_token>|<(?:start|begin|end)_of_\w{1,30}>|<(?:unused|reserved|extra_id|unk)_?\w{0,20}\d>"
    r"|\[/?(?:inst|system_prompt|available_tools|tool_(?:calls|results|content)|args|think|[gs]?mask|cls|sep|bos|eos|pad)\]",
    re.IGNORECASE,
)
_END = (  # those of them that end a turn or a text; a reply may end in the others on purpose: [MASK], </tool_call>
    r"(?:<\|[^<>\s|]{1,60}\|>|<\w{1,30}\|>|<\uff5c[^<>\n]{1,60}\uff5c>|\[\|end\w{1,30}\|\]|</s>|\[/inst\]"
    r"|<(?:eos|eot|eod|eop|pad|end_of_\w{1,30})(?:_token)?>)"
)
_ENDS = re.compile(rf"{_END}\Z", re.IGNORECASE)
_NEXT_TURN = re.compile(  # of models that were not stopped; in no line of JSON
    rf"{_END}(?:[^\S\n]*\n\s*<\|?(?:im_start|start_of_turn|turn|user|human|system|assistant)\|?>"
    r"|[^\S\n]*\n\s*(?:human|user|question|instruction)\s*[:\uff1a]"
    r"|<\|start_header_id\|>\w{1,30}<\|end_header_id\|>\n)",
    re.IGNORECASE,
)


def without_chat_marks(text: str) -> str:
    """The text of a message with chat marks broken up: `<|im_start|>` becomes `< |im_start|>`, `[INST]` `[ INST]`.

    It knows the marks of common chat templates, for models whose tokenizer is not at hand.
    """
    return _MARK.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", text)


def without_end_marks(text: str) -> str:
    """The text of a reply without the marks that end it, as some servers send them, and the turns after them."""
    if following := _NEXT_TURN.search(text):
        text = text[: following.start()]
    while ending := _ENDS.search(text := text.rstrip(), max(0, len(text) - 64)):
        text = text[: ending.start()]
    return text


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A request: the messages so far and how the reply is generated.  Equal chats to one model are the same request."""

    messages: tuple[Message, ...]
    max_tokens: int = 32  # of the reply
    temperature: float = 0.0  # 0: greedy
    sample: int = 0  # number of the sample, where one chat is sampled several times; also the seed
    logprobs: bool = False  # whether the reply needs its log-probability
    one_line: bool = False  # whether the reply ends at its first line break, as after examples in plain text

    @classmethod
    def of(
        cls, text: str, max_tokens: int = 32, temperature: float = 0.0, sample: int = 0, logprobs: bool = False
    ) -> Self:
        """A chat of one user message."""
        return cls((Message("user", text),), max_tokens, temperature, sample, logprobs)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a language model replied to one chat, or why there is no reply."""

    text: str
    error: str = ""  # why there is no reply, in one line; empty if there is one
    finish: Finish = "stop"  # `length`: cut at max_tokens; empty without a reply
    logprob: float | None = None  # of the text and its end, nats, summed over the tokens; None if not asked for
    prompt_tokens: int = 0  # read
    reply_tokens: int = 0  # generated
    usd: float | None = None  # None if no price is configured
    seconds: float = 0.0  # from the first request to the reply, waits between attempts included
    retries: int = 0  # further attempts
    cached: bool = False  # stored by an earlier request, whose costs these are


def reply_costs(replies: Sequence[Reply]) -> dict[str, float]:
    """The costs of replies for `Answer.costs`: calls, tokens read and written, US dollars where prices are known.

    Retries, cached, failed and truncated calls (whose reply was cut at its limit) where there are any.
    """
    costs = {
        "model_calls": float(len(replies)),
        "tokens": float(sum(reply.prompt_tokens for reply in replies)),
        "reply_tokens": float(sum(reply.reply_tokens for reply in replies)),
    }
    events = {
        "retries": float(sum(reply.retries for reply in replies)),
        "cached_calls": float(sum(reply.cached for reply in replies)),
        "failed_calls": float(sum(bool(reply.error) for reply in replies)),
        "truncated_calls": float(sum(reply.finish == "length" for reply in replies)),
    }
    prices = [reply.usd for reply in replies if reply.usd is not None]
    return {
        **costs,
        **{name: count for name, count in events.items() if count},
        **({"usd": sum(prices)} if prices else {}),
    }


def named_calls(costs: dict[str, float], what: str) -> dict[str, float]:
    """Costs of replies, with the calls named after their purpose.

    So a failed call does not count as the reader's: model_calls becomes WHAT_calls, failed_calls failed_WHAT_calls.
    """
    generic = ("model_calls", "cached_calls", "failed_calls", "truncated_calls")  # as in reply_costs
    return {
        name.removeprefix("model_").replace("calls", f"{what}_calls") if name in generic else name: value
        for name, value in costs.items()
    }
