"""Reads the file in which W&B keeps a run.

A log of LevelDB's format, behind a header of 7 bytes, of protobuf records.
"""

import json
import struct
from pathlib import Path

from wandb.proto.wandb_internal_pb2 import Record

HEADER, BLOCK, PREFIX = 7, 32768, 7  # bytes
WHOLE, FIRST, LAST = 1, 2, 4  # kinds of chunks


def _records(data: bytes) -> list[bytes]:
    position, found, begun = HEADER, [], b""
    while position + PREFIX <= len(data):
        left = BLOCK - position % BLOCK
        if left < PREFIX:  # padding
            position += left
            continue
        _, length, kind = struct.unpack("<IHB", data[position : position + PREFIX])
        chunk = data[position + PREFIX : position + PREFIX + length]
        position += PREFIX + length
        begun = chunk if kind in (WHOLE, FIRST) else begun + chunk
        if kind in (WHOLE, LAST):
            found.append(begun)
    return found


def described(file: Path) -> tuple[dict[str, str], set[str]]:
    """The measures that have a summary of their own, with its kinds, and the types of the artifacts."""
    summaries, artifacts = {}, set()
    for record in map(Record.FromString, _records(file.read_bytes())):
        kind = record.WhichOneof("record_type")
        if kind == "metric" and record.metric.name and record.metric.HasField("summary"):
            fields = ("min", "max", "last")
            summaries[record.metric.name] = ",".join(f for f in fields if getattr(record.metric.summary, f))
        elif kind == "request" and record.request.HasField("log_artifact"):
            artifacts.add(record.request.log_artifact.artifact.type)
        elif kind == "artifact":
            artifacts.add(record.artifact.type)
    return summaries, artifacts


def logged_rows(file: Path) -> list[dict[str, object]]:
    """What was logged, in order; without plots and tables."""
    rows = []
    for record in map(Record.FromString, _records(file.read_bytes())):
        if record.WhichOneof("record_type") == "history":
            row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            if "epoch" in row:
                rows.append(row)
    return rows
