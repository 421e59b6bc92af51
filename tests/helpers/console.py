"""Lines of libraries among what the commands print."""

import re

OF_LIBRARIES = re.compile(
    r"warning\b(?!: (this run does not learn|\S+ holds a model))|site-packages|^\[|^(INFO|wandb|rank|💡|Tip):?|deprecat"
    r"|(GPU|TPU|HPU) available|_RANK:|_backend=|distributed processes|`Trainer|Some weights|Missing logger|Loading .*`",
    re.IGNORECASE,
)


def strangers(text: str) -> list[str]:
    """Such lines; what a carriage return has overwritten is not left out."""
    return [line for line in re.split(r"[\r\n]", text.replace("\x1b[A", "")) if OF_LIBRARIES.search(line)]
