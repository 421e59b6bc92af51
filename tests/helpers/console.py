"""Every line that the commands may print, as regular expressions; a library's line that is not listed fails a test."""

import re

PROGRESS = r"(loading|exporting|encoding|scoring|reading|selecting|sampling|pairs|answering|mining)\b.*(: .*| \.\.\.)"
FIT_ERR = (
    PROGRESS,
    r".*: converted to BigBird, with a new head, from random weights\.",
    r".*: new head, from random weights: .*\.",
    r"W&B offline \(no key set\): later `wandb sync checkpoints/\w+/wandb/offline-run-\*`",
)
FIT_OUT = (
    r"Training data",
    r"-+",
    r" {0,2}\w[\w ]*( {2,}\S.*)?",  # the table of the audit
    r"(Sanity Checking|Training|Epoch \d+|Validation)\b.*",  # Lightning's bar, where it is asked for
    r"unusual rows: .*",
    r"memory  the epoch's largest batch fits.*",
    r"validation after step [\d,]+: val/.*",
    r"val/other_\w+: not measured, .*",  # tiny data
    r"warning: this run does not learn: .*",  # tiny models in a few steps
    r"warning: \S+ holds a model that has not learned: .*",
    r"checkpoints/\w+/serving: exported from checkpoints/\w+/best\.ckpt; largest difference to the module \S+ nats",
    r"checkpoints/\w+: [\d,]+ steps in .*; (.* is reached|ended early: .*)\.",
    r"  (best\.ckpt|last\.ckpt|serving|metrics\.jsonl|plots) +\S.*",
    r"Next: .*",
)
INFER_ERR = (PROGRESS, r"\S+: [\d,]+ passages, BM25 of \S+ KiB, memory-mapped\.", r"\S+: BM25 index of .* words\.")


def strangers(text: str, allowed: tuple[str, ...]) -> list[str]:
    """The lines that are not allowed; what a carriage return has overwritten is not left out."""
    lines = [line.replace("\x1b[A", "").rstrip() for line in re.split(r"[\r\n]", text)]
    return [line for line in lines if line and not any(re.fullmatch(each, line) for each in allowed)]
