"""What a reply of a language model says, of endpoints and local models alike: caches keep it as it came.

`as_read` is for every reply. `decoded` and `boxed` are for those whose text is an answer: JSON and Markdown mean
entities and boxes as they are.
"""

import html
import re
from dataclasses import replace
from functools import partial

from common.chat import Reply, without_end_marks
from common.records import clean

_NAME = r"(?:think|thinking|thoughts?|reasoning)"
_TAG = re.compile(rf"[<\[◁](/?){_NAME}[>\]▷]", re.IGNORECASE)
_ENTITY = re.compile("(?<!`)&(#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});", re.IGNORECASE)  # `&lt;` is meant
_BRACE = re.compile(r"\\(?:boxed|fbox)\s*\{|\\?[{}]")
_EMPTY_BOX = re.compile(r"[\s$\\\[(]{0,9}\\(?:boxed|fbox)\s*\{\s*\}[\s$\\\]).]*")
_MACRO = re.compile(r"\\(?:(?:text|math)(?:bf|it|rm)?|boxed|fbox)\s*\{([^{}]*)\}|\\([ %$&#_{}])")
_plain = partial(_MACRO.sub, r"\1\2")

CUT = "the reply ends within the model's thoughts: allow more tokens (max_tokens, or reasoning_tokens of an endpoint)"


def as_read(reply: Reply, one_line: bool = False) -> Reply:
    """A reply without thoughts, end tokens and blanks around it; a failure where nothing is left.  Idempotent.

    Args:
        reply: As it came.
        one_line: Whether it ends at its first line break: some servers ignore `stop`.
    """
    if reply.error:
        return reply
    said = without_thoughts(reply.text)
    text = "" if said is None else said.strip()
    text = without_end_marks(re.split(r"[\r\n]", text, maxsplit=1)[0] if one_line else text)
    if clean(decoded(text)) and not _EMPTY_BOX.fullmatch(text):
        return replace(reply, text=text)
    why = CUT if said is None else f"the reply has no text: finish_reason {reply.finish}"
    return replace(reply, text="", error=why, finish="", logprob=None)


def without_thoughts(text: str) -> str | None:
    """The text without thoughts, such as <think>...</think>; None if they never end."""
    kept, begin, within = list[str](), 0, False
    for mark in _TAG.finditer(text):
        if mark[1] and not within:
            kept.clear()  # the chat template has opened them
        elif not mark[1] and not within:
            kept.append(text[begin : mark.start()])
        begin, within = mark.end(), not mark[1]
    return None if within else "".join([*kept, text[begin:]])


def decoded(text: str) -> str:
    """The text with the characters that HTML entities stand for: `AT&amp;T` is AT&T."""
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text)


def boxed(text: str) -> str | None:
    r"""The content of the last `\boxed{...}` that ends; None without one."""
    opened, said = list[int | None](), None
    for brace in _BRACE.finditer(text):
        if brace[0] == "}" and opened and (begin := opened.pop()) is not None:
            said = text[begin : brace.start()]
        elif brace[0] == "{" or len(brace[0]) > 2:
            opened.append(brace.end() if len(brace[0]) > 2 else None)
    return said and _plain(_plain(_plain(said)))  # \textbf{\text{Paris}}
