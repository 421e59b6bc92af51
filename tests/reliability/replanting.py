"""Planted changes of code that has changed since: each is looked for in all the code, and drawn anew where it is gone.

    python -m tests.reliability.replanting            # says what has moved and what is gone
    python -m tests.reliability.replanting --write    # and writes it into planted.json

A change that has not its one place any more is compared with all changes of its kind that could be planted now: by its
line, the changed line, the neighbours, function and file. One without a like is gone: `git log -S` names the commit
that took its line away, and the next change of its folder and kind, by hash, takes its place.
"""

import argparse
import ast
import hashlib
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from tests.reliability.planted import RECORDS, ROOT, Record, places, python_files, save

DRAWN = "0938bff6"  # the commit whose code the 120 changes were drawn from
OF_FILE = 2
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/", "+=": "-="}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
MESSAGE = re.compile(r"(print|say|warn)\(")
ALIKE = 0.8  # a line that has only got other names
NEAR = 0.6  # of lines in the same function, and of neighbours
SHORT = 15  # characters of a line that may stand elsewhere by chance
LONG = 20  # characters of a line that is known without its neighbours


def nodes(tree: ast.AST, name: str = "", function: bool = False) -> Iterator[tuple[str, ast.AST]]:
    """What functions do, with their names: no annotations, defaults, errors, f-strings, messages and last returns."""
    for child in tree.body if isinstance(tree, DEFINITIONS) else ast.iter_child_nodes(tree):
        inner = f"{name}.{child.name}".lstrip(".") if isinstance(child, DEFINITIONS) else name
        message = isinstance(child, ast.Expr | ast.Call) and MESSAGE.match(ast.unparse(child))
        strict = isinstance(child, ast.keyword) and child.arg == "strict"  # of zip, where lengths are always equal
        annotation = child is getattr(tree, "annotation", None)
        if message or strict or annotation or isinstance(child, ast.Raise | ast.JoinedStr):
            continue
        if function and not (isinstance(child, ast.Return) and isinstance(tree, DEFINITIONS)):
            yield name, child
        yield from nodes(child, inner, not isinstance(child, ast.ClassDef) and (function or inner != name))


def change(node: Any, line: str) -> tuple[str, str]:
    """The kind of the change that can be made, or "", and the changed line."""
    start, end = node.col_offset, node.end_col_offset
    match node:
        case ast.Compare(left, _, [right, *_]) | ast.BinOp(left, _, right) | ast.AugAssign(left, _, right):
            kind = "comparison" if isinstance(node, ast.Compare) else "sign"
            operator = line[left.end_col_offset : right.col_offset].strip(" ()")
            text = kind == "sign" and re.search("[\"']", line[start:end])  # whose sum only joins
            if operator in SWAPS and not text:
                head, _, tail = line[left.end_col_offset :].partition(operator)
                return kind, f"{line[: left.end_col_offset]}{head}{SWAPS[operator]}{tail}"
        case ast.Constant(bool() | int() | float() as value):
            changed = not value if isinstance(value, bool) else value + 1
            return "constant", f"{line[:start]}{changed!r}{line[end:]}"
        case ast.Assign([ast.Attribute() | ast.Subscript()]) | ast.Expr(ast.Call()) | ast.Return():
            return ("", "") if (line[:start] + line[end:]).strip() else ("drop", f"{line[:start]}pass")
    return "", ""


def changes(path: Path, root: Path) -> Iterator[Record]:
    """All changes of a file that need one line."""
    lines = path.read_text(encoding="utf-8").split("\n")
    for function, node in nodes(ast.parse("\n".join(lines))):
        at = getattr(node, "lineno", 0) - 1
        if at >= 0 and node.end_lineno == at + 1 and lines[at].isascii():
            kind, new = change(node, lines[at])
            if kind:
                file = path.relative_to(root).as_posix()
                record = {"file": file, "function": function, "kind": kind, "old": lines[at], "new": new}
                yield with_neighbours(record, lines, at) | {"caught_by": None}


def ratio(one: str, other: str) -> float:
    """How alike two texts are, from 0 to 1, whatever their indentation."""
    if one.strip() == other.strip():
        return 1.0
    matcher = SequenceMatcher(None, one.strip(), other.strip(), autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= NEAR else 0.0


def likeness(record: Record, other: Record) -> float:
    """How like a change that can be planted now is to one on record; 0 where it is another one."""
    same = record["function"].rpartition(".")[2] == other["function"].rpartition(".")[2]
    line = ratio(record["old"], other["old"])
    if line < (NEAR if same else ALIKE):
        return 0.0
    lines = [[line.strip() for line in [*each["before"], *each["after"]]] for each in (record, other)]
    around = SequenceMatcher(None, "\n".join(lines[0]), "\n".join(lines[1]), autojunk=False).ratio()
    stays = line == 1 and record["file"] == other["file"] and len(record["old"].strip()) > LONG  # in another function
    if not same and around < NEAR and not stays:
        return 0.0
    return line + ratio(record["new"], other["new"]) + around + same + (record["file"] == other["file"])


def same_line(record: Record, root: Path = ROOT) -> Record | None:
    """The record with new neighbours, where its line still stands once in its file; a short one may be another."""
    file, line = root / record["file"], record["old"].strip()
    lines = file.read_text(encoding="utf-8").split("\n") if file.is_file() else []
    found = [at for at, each in enumerate(lines) if each.strip() == line]
    if len(found) != 1 or len(line) < SHORT:
        return None
    old = lines[found[0]]
    return with_neighbours({**record, "old": old, "new": old.replace(line, record["new"].strip())}, lines, found[0])


def with_neighbours(record: Record, lines: Sequence[str], at: int) -> Record:
    """The record with the lines around its own."""
    return {**record, "before": [*lines[max(at - 2, 0) : at]], "after": [*lines[at + 1 : at + 3]]}


def relocated(record: Record, now: Sequence[Record]) -> Record | None:
    """The record with the place that its change has now, or None if there is none."""
    of_kind = (other for other in now if other["kind"] == record["kind"])
    value, best = max(((likeness(record, other), other) for other in of_kind), key=lambda pair: pair[0])
    return {**record, **best, "caught_by": record["caught_by"]} if value else None


def deleted_by(record: Record) -> str:
    """The last commit since the drawing that took the record's line out of its function, and put it nowhere else."""
    line, name = record["old"].strip(), record["function"].rpartition(".")[2]
    command = ["git", "log", "--format=%x00%h %s", "-p", "-U0", f"-S{line}", f"{DRAWN}..HEAD", "--", "*.py"]
    commits = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")[1:]
    for commit in commits:
        said, *changed = commit.split("\n")
        count = Counter(each[0] for each in changed if each[1:].strip() == line)
        if count["-"] > count["+"] and name in commit:
            return said
    return "no commit of its own: the line stands elsewhere"


def drawn(gone: Record, taken: Sequence[Record], now: Sequence[Record], root: Path = ROOT) -> Record:
    """The next change by hash of the same folder and kind, at most two of a file."""
    files = Counter(record["file"] for record in taken)
    lines = {(record["file"], record["old"]) for record in taken}
    fitting = {
        hashlib.sha256("{file}:{function}:{old}:{kind}".format(**each).encode()).hexdigest(): each
        for each in reversed(now)
        if each["kind"] == gone["kind"] and each["file"].split("/")[0] == gone["file"].split("/")[0]
        if files[each["file"]] < OF_FILE and (each["file"], each["old"]) not in lines
    }
    return next(fitting[key] for key in sorted(fitting) if len(places(fitting[key], root)) == 1)


def main() -> None:
    """Look for all changes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write places and new changes into planted.json")
    options = parser.parse_args()
    records: list[Record] = json.loads(RECORDS.read_text(encoding="utf-8"))
    now = [each for path in python_files(ROOT) for each in changes(path, ROOT)]
    count = Counter[str]()
    gone = []
    for at, record in enumerate(records):
        found = places(record, ROOT)
        outcome = "found"
        if len(found) == 1:
            file = found[0][0].relative_to(ROOT).as_posix()
            outcome, records[at] = "found" if file == record["file"] else "moved", {**record, "file": file}
        elif other := same_line(record) or relocated(record, now):
            outcome, records[at] = "moved", other
        else:
            outcome = "gone"
            gone.append(at)
        count[outcome] += 1
        if outcome != "found":
            say = f"{at + 1} {outcome}: {record['file']} {record['function']}: {record['old'].strip()}"
            print(say, f"\n    {records[at]['file']} {records[at]['function']}: {records[at]['old'].strip()}\n    "
                  f"{records[at]['new'].strip()}" if outcome == "moved" else f"\n    {deleted_by(record)}")  # fmt: skip
    for at in gone:
        record = records[at]
        records[at] = {**drawn(record, records, now),
                       "instead_of": f"{record['file']} {record['function']}: {deleted_by(record)}"}  # fmt: skip
        print(f"{at + 1} new: {records[at]['file']} {records[at]['function']}: {records[at]['new'].strip()}")
    print(dict(count))
    if options.write:
        save(records)


if __name__ == "__main__":
    main()
