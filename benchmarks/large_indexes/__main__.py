"""Indexes of many passages: seconds, core-seconds, memory and disk of building, opening and searching them.

    python -m benchmarks.large_indexes bm25 --passages 500000 --folder FOLDER [--workers 2] [--queries 200] [--k 100]

The passages are generated (benchmarks/large_indexes/passages.py).  Every stage is a process of its own.  The table goes to
benchmarks/results/large_indexes/KIND-PASSAGES.md, or to --out, with the figures extrapolated to Wikipedia's 21,015,324 passages.
"""

import argparse
import json
from pathlib import Path

from benchmarks.large_indexes.measured import Measured, measure
from benchmarks.large_indexes.report import report

RESULTS = Path(__file__).parents[1] / "results" / "large_indexes"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("kind", choices=("bm25",))
    options.add_argument("--passages", type=int, default=500_000)
    options.add_argument("--folder", type=Path, required=True, help="for the corpus and the index, which are kept")
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--queries", type=int, default=200)
    options.add_argument("--k", type=int, default=100)
    options.add_argument("--out", type=Path)
    return options


def main() -> None:
    """Run the stages and write the table."""
    given = parser().parse_args()
    folder = given.folder / str(given.passages)
    folder.mkdir(parents=True, exist_ok=True)

    def stage(name: str, **options: object) -> Measured:
        print(f"{name} ...", flush=True)
        return measure("benchmarks.large_indexes.stages", name, str(folder), json.dumps(options))

    stages: dict[str, Measured] = {}
    if not (folder / "corpus.jsonl").is_file():
        stages["write the corpus"] = stage("corpus", count=given.passages, asked=given.queries)
    stages["build"] = stage("bm25_build", workers=given.workers)
    for verify in ("sampled", "full"):
        stages[f"search, verify {verify}"] = stage("bm25_search", workers=given.workers, k=given.k, verify=verify)
    out = given.out or RESULTS / f"{given.kind}-{given.passages}.md"
    report(out, vars(given), stages)
    print(out.read_text())


if __name__ == "__main__":
    main()
