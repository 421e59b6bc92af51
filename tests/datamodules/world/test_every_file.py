"""The sha256 of every file of the world, as the quickstarts write it, at seed 0: no change may move a byte."""

import hashlib
import json
from pathlib import Path

import pytest

from common.files import digests
from datamodules.world.__main__ import main

HELD = Path(__file__).with_name("every_file.json")
ALL = ("--library", "true", "--mixed", "60")  # as in scripts/quickstart.sh


def by_entry(folder: Path) -> dict[str, str]:
    """The sha256 of every file in a world; of a folder in it that of the names and digests of its files."""
    record = json.loads((folder / "world.json").read_text())
    del record["sha256"]
    found = {"world.json": hashlib.sha256(json.dumps(record).encode()).hexdigest()}
    inside: dict[str, list[str]] = {}
    for name, digest in digests(folder).items():
        entry, _, rest = name.rpartition("/")
        if entry:
            inside.setdefault(entry, []).append(f"{rest} {digest}\n")
        elif name != "world.json":
            found[name] = digest
    return found | {name: hashlib.sha256("".join(sorted(rows)).encode()).hexdigest() for name, rows in inside.items()}


@pytest.mark.whole_run
def test_no_byte_moves(tmp_path: Path) -> None:
    main(["--out", str(tmp_path / "out"), "--seed", "0", *ALL])
    assert by_entry(tmp_path / "out") == json.loads(HELD.read_text())
