"""Lock files of pip: every pin of the requirements stands in them, and every line has a hash.

They are made by .github/workflows/lock.yml, so that their hashes are those of the files that users download.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHA = "0" * 64
_PIN = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,]+\])?==(?P<version>[^\s;\\]+)")


def pins(requirements: Path) -> dict[str, str]:
    """Version by name of a requirements file, and of those that it includes (`-r`).

    Raises:
        ValueError: If a line is neither a pin (==) nor an include.
    """
    found: dict[str, str] = {}
    for line in requirements.read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if included := re.fullmatch(r"-r\s+(\S+)", text):
            found |= pins(requirements.parent / included[1])
        elif pin := _PIN.match(text):
            found[_normal(pin["name"])] = pin["version"]
        elif text:
            raise ValueError(f"{requirements}: {text!r} is no pin: write NAME==VERSION.")
    return found


def faults(lock: Path, *requirements: Path) -> list[str]:
    """What is wrong with a lock, one line each; none if it is whole."""
    text = re.sub(r"\\\n", " ", lock.read_text(encoding="utf-8"))
    locked, found = {}, []
    for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
        pin = _PIN.match(line)
        if pin is None:
            found.append(f"{line[:60]!r} is no pin")
            continue
        locked[_normal(pin["name"])] = pin["version"]
        if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", line):
            found.append(f"{pin[0]} has no hash")
    wanted = {name: version for file in requirements for name, version in pins(file).items()}
    differ = [
        f"{name}=={v} is not in it, but {locked.get(name)}" for name, v in wanted.items() if locked.get(name) != v
    ]
    return [f"{lock}: {fault}" for fault in (*found, *differ)]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_a_lock_has_every_pin_and_a_hash_on_every_line(tmp_path: Path) -> None:
    (tmp_path / "core.txt").write_text("# what all need\nPyYAML==6.0.3\njsonargparse[signatures]==4.53.0  # config\n")
    top = tmp_path / "top.txt"
    top.write_text("-r core.txt\nlxml_html_clean==0.4.6\n")
    assert pins(top) == {"pyyaml": "6.0.3", "jsonargparse": "4.53.0", "lxml-html-clean": "0.4.6"}
    lock = tmp_path / "lock.txt"
    whole = f"""# made by uv
pyyaml==6.0.3 \\
    --hash=sha256:{SHA} \\
    --hash=sha256:{SHA}
    # via -r core.txt
jsonargparse==4.53.0 ; python_version >= '3.11' \\
    --hash=sha256:{SHA}
lxml-html-clean==0.4.6 --hash=sha256:{SHA}
typing-extensions==4.1.0 --hash=sha256:{SHA}
"""
    lock.write_text(whole)
    assert faults(lock, top) == []
    for was, now, fault in (
        ("lxml-html-clean==0.4.6", "lxml-html-clean==0.4.5", "lxml-html-clean==0.4.6 is not in it, but 0.4.5"),
        (
            "typing-extensions==4.1.0 --hash",
            "typing-extensions==4.1.0 # --hash",
            "typing-extensions==4.1.0 has no hash",
        ),
        ("pyyaml==6.0.3", "pyyaml>=6", "'pyyaml>=6"),
    ):
        lock.write_text(whole.replace(was, now))
        assert any(fault in each for each in faults(lock, top))


def test_all_requirements_are_pins() -> None:
    for file in ROOT.glob("requirements*.txt"):
        assert len(pins(file)) > 3


@pytest.mark.parametrize("lock", [*ROOT.glob("locks/*.txt")] or [None])
def test_the_locks_of_this_checkout_are_whole(lock: Path | None) -> None:
    if lock is None:
        pytest.skip("no lock file: run the workflow lock.yml, and commit what it makes")
    gpu = "gpu" in lock.stem
    first = ROOT / ("requirements-gpu.txt" if gpu else "requirements.txt")
    assert faults(lock, first, ROOT / "requirements-serve.txt", ROOT / "requirements-documents.txt") == []
