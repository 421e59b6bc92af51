"""Command `python -m tests.exactness [NAME ...]`: writes the files of `values/`, all of them or those named.

    python -m tests.exactness
    python -m tests.exactness training/drrag_pairs answers/drrag_cfs
    ATEN_CPU_CAPABILITY=avx2 python -m tests.exactness

Where the values in a file are still right, its numbers stay, and only the digest of this processor's weights is added;
so the last line adds those of another instruction set.  A question whose answer depends on a change of the weights by
one part in ten thousand is left out.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import tests.conftest  # noqa: F401  (sets the environment as for the tests)
from tests.exactness.computing import NAMES, compute, prepare
from tests.exactness.systems import NOISES
from tests.exactness.values import FOLDER, check_answers, check_training, processor, stored, write
from tests.exactness.workplace import write_workplace


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of a file, without .json: {', '.join(NAMES)}")
    names = parser.parse_args().names or NAMES
    if unknown := set(names) - set(NAMES):
        parser.error(f"{', '.join(sorted(unknown))}: not a file of values; allowed: {', '.join(NAMES)}")
    with tempfile.TemporaryDirectory() as root:
        workplace = write_workplace(Path(root, "workplace"))
        folders: dict[Any, Path] = {}
        for name in names:
            kind = name.partition("/")[0]
            for noise in (None, *NOISES) if kind == "answers" else (None,):
                if (kind, noise) not in folders:
                    folders[kind, noise] = prepare(workplace, Path(root, f"{kind}-{noise}"), kind, noise)
            changed = [compute(name, folders[kind, noise]) for noise in NOISES] if kind == "answers" else []
            print(f"{name}: {renew(name, compute(name, folders[kind, None]), changed)}", flush=True)


def renew(name: str, found: dict[str, Any], changed: list[dict[str, Any]]) -> str:
    """Write one file if its values have changed, or are of another processor; what was done.

    Args:
        name: Of the file.
        found: The values.
        changed: Answers with changed weights.
    """
    kind = name.partition("/")[0]
    kept = stored(name) if (FOLDER / f"{name}.json").is_file() else {}
    kept.pop("made by", None)
    if kind == "training":
        digests = {processor(): found["sha256"]}
        try:
            check_training(found, kept)
            new, done = kept | {"sha256": kept["sha256"] | digests}, "as before"
        except (AssertionError, KeyError):
            new, done = found | {"sha256": digests}, "written"
    elif kind == "answers":
        sure = {
            question: answer
            for question, answer in found["answers"].items()
            if all(other["answers"][question][:-1] == answer[:-1] for other in changed)
        }
        done = f"written, {len(found['answers']) - len(sure)} of {len(found['answers'])} questions left out"
        new = {"answers": sure}
        try:
            check_answers(found, kept)
            new, done = kept, "as before"
        except (AssertionError, KeyError):
            pass
    else:
        new, done = found, "as before" if found == kept else "written"
    if new != kept:
        write(name, new)
    return done


if __name__ == "__main__":
    main()
