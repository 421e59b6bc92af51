"""Indexes of many passages: seconds, core-seconds, memory and disk of building, opening and searching them.

    python -m benchmarks.large_indexes bm25 --passages 500000 --folder FOLDER [--workers 2] [--queries 200] [--k 100]
    python -m benchmarks.large_indexes flat --passages 500000 --folder FOLDER [--dimensions 384]
    python -m benchmarks.large_indexes ivfpq --passages 500000 --folder FOLDER [--nlist 1024] [--nprobe 16]

`flat` and `ivfpq` are dense indexes of random vectors; `ivfpq` says how much of what `flat` finds it finds, if that was
built before. The passages are generated (benchmarks/large_indexes/passages.py). Every stage is a process of its own.
The table goes to benchmarks/results/large_indexes/KIND-PASSAGES.md, or to --out, with the figures extrapolated to
Wikipedia's 21,015,324 passages.
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
    options.add_argument("kind", choices=("bm25", "flat", "ivf", "ivfpq"))
    options.add_argument("--passages", type=int, default=500_000)
    options.add_argument("--folder", type=Path, required=True, help="for the corpus and the index, which are kept")
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--queries", type=int, default=200)
    options.add_argument("--k", type=int, default=100)
    options.add_argument("--dimensions", type=int, default=384)
    options.add_argument("--nlist", type=int)
    options.add_argument("--nprobe", type=int, default=16)
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
    if given.kind == "bm25":
        build: dict[str, object] = {"workers": given.workers}
        search: dict[str, object] = {"workers": given.workers, "k": given.k}
    else:
        exact = "flat" if given.kind != "flat" and (folder / "flat" / "index.json").is_file() else None
        build = {"faiss_index": given.kind, "dimensions": given.dimensions, "nlist": given.nlist}
        search = {
            "faiss_index": given.kind,
            "k": given.k,
            "asked": given.queries,
            "nprobe": given.nprobe,
            "exact": exact,
        }
    name = "bm25" if given.kind == "bm25" else "dense"
    stages["build"] = stage(f"{name}_build", **build)
    for verify in ("sampled", "full"):
        stages[f"search, verify {verify}"] = stage(f"{name}_search", verify=verify, **search)
    out = given.out or RESULTS / f"{given.kind}-{given.passages}.md"
    report(out, vars(given), stages)
    print(out.read_text())


if __name__ == "__main__":
    main()
