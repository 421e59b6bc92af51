"""The reply of a model without the thoughts before it, such as <think>...</think>."""

import re

_NAME = r"(?:think|thinking|thoughts?|reasoning)"
_OPEN, _CLOSE = rf"[<\[◁]{_NAME}[>\]▷]", rf"[<\[◁]/{_NAME}[>\]▷]"
_BLOCK = re.compile(rf"{_OPEN}.*?{_CLOSE}", re.IGNORECASE | re.DOTALL)
_REST = re.compile(rf".*{_CLOSE}", re.IGNORECASE | re.DOTALL)  # of a block that the chat template has opened
_OPENED = re.compile(_OPEN, re.IGNORECASE)

CUT = "the reply ends within the model's thoughts: allow more tokens (max_tokens, or reasoning_tokens of an endpoint)"


def without_thoughts(text: str) -> str | None:
    """The text without thoughts; None if they never end."""
    said = _REST.sub("", _BLOCK.sub("", text))
    if _OPENED.search(said):
        return None
    return text if said == text else said.strip()
