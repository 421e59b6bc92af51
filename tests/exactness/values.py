"""The values that must not move: how they are stored, and how new ones are compared with them."""

import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

import pytest
import torch

FOLDER = Path(__file__).parent / "values"
COMMAND = "python -m tests.exactness"
RELATIVE = 1e-4  # of numbers; ids, tokens and texts are equal
ROUNDING = 1e-5  # of logged numbers that are themselves differences of rounding, such as a divergence at the start
ID_DIGITS = 8  # of a passage's id in a file


def stored(name: str) -> dict[str, Any]:
    """The values of one file of `values/`."""
    return dict(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


def write(name: str, values: dict[str, Any]) -> None:
    """Write a file of `values/`, with the command that makes it; one line a value."""
    lines = [f'"made by": {json.dumps(f"{COMMAND} {name}")}']
    for key, value in values.items():
        if isinstance(value, dict):
            inner = ",\n".join(f"  {json.dumps(k)}: {_compact(v)}" for k, v in value.items())
            lines.append(f"{json.dumps(key)}: {{\n{inner}\n}}")
        else:
            lines.append(f"{json.dumps(key)}: {_compact(value)}")
    file = FOLDER / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def digest(value: Any) -> str:
    """Short digest of a JSON value."""
    return hashlib.sha256(_compact(value).encode()).hexdigest()[:12]


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ":"))


def processor() -> str:
    """Instruction set in use, processor and torch: where all are equal, a run is repeated to the last bit."""
    found = platform.machine()
    if (cpu := Path("/proc/cpuinfo")).is_file():
        facts = dict(line.split("\t", 1) for line in cpu.read_text().split("\n\n")[0].splitlines() if "\t" in line)
        wanted = ("vendor_id", "cpu family", "model", "stepping")
        found += "/" + "/".join(facts[each].strip("\t: ") for each in wanted if each in facts)
    limits = [os.environ[name] for name in ("ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS") if name in os.environ]
    return ", ".join([torch.backends.cpu.get_cpu_capability(), found, *limits, f"torch {torch.__version__}"])


def check_training(found: dict[str, Any], kept: dict[str, Any]) -> None:
    """Losses, weights and scores are as kept; the weights to the last bit on a processor that is named there."""
    assert len(found["steps"]) == len(kept["steps"])
    for step, (ours, theirs) in enumerate(zip(found["steps"], kept["steps"], strict=True), start=1):
        assert ours == pytest.approx(theirs, rel=RELATIVE, abs=ROUNDING), f"step {step}"
    assert found["weights"].keys() == kept["weights"].keys()
    for name, theirs in kept["weights"].items():
        norm, _, *entries = theirs
        size = (sum(each**2 for each in entries) / len(entries)) ** 0.5  # of an entry
        allowed = [RELATIVE * norm, RELATIVE * norm, *(RELATIVE * max(abs(each), size) for each in entries)]
        differences = [abs(ours - each) for ours, each in zip(found["weights"][name], theirs, strict=True)]
        far = [place for place, (d, most) in enumerate(zip(differences, allowed, strict=True)) if d > most]
        assert not far, (
            f"{name}: norm, sum and entries are {found['weights'][name]}, kept: {theirs}; places {far} differ"
        )
    assert found["probes"] == pytest.approx(kept["probes"], rel=RELATIVE, abs=RELATIVE)
    bits = kept["sha256"].get(processor())
    assert bits in (None, found["sha256"]), f"the weights differ in their last bits on {processor()}"


def check_answers(found: dict[str, Any], kept: dict[str, Any]) -> None:
    """Texts, queries, and ids, order and scores of passages are as kept; a question that was left out may differ."""
    for question, (*decided, scores) in kept["answers"].items():
        *ours, our_scores = found["answers"][question]
        assert ours == decided, question
        assert our_scores == pytest.approx(scores, rel=RELATIVE, abs=RELATIVE), question
