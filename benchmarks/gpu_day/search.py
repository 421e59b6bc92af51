"""Exact search: torch on the card proposes candidates, and the project's order in double precision decides.

Shape legend: N vectors, D dimensions, Q queries.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from benchmarks.gpu_day.sizes import BenchmarkSizes
from benchmarks.gpu_day.turns import OURS, Row, compared, row
from harness.indexing.exact_rescoring import Candidates, Hits, search_exactly
from harness.indexing.vector_search import Vectors, write_vectors

DIMENSIONS, NEAREST, BLOCK = 384, 10, 65_536
FLAT = {"faiss_index": "flat"}


def unit_vectors(count: int, seed: int) -> np.ndarray:
    """Random ones, float32 (count, D)."""
    made_ND = np.random.default_rng(seed).standard_normal((count, DIMENSIONS), dtype=np.float32)
    return made_ND / np.linalg.norm(made_ND, axis=1, keepdims=True)


def measure(sizes: BenchmarkSizes, device: torch.device, peak_tflops: float | None) -> Iterator[Row]:
    """Rows of both searches.

    Raises:
        ValueError: If they find other vectors.
    """
    with TemporaryDirectory() as folder:
        starts = range(0, sizes.vectors, BLOCK)
        chunks = (unit_vectors(min(BLOCK, sizes.vectors - start), start) for start in starts)
        write_vectors(Path(folder), chunks, sizes.vectors, DIMENSIONS, FLAT)
        on_cpu = Vectors(Path(folder), FLAT, "cpu")
        queries_QD = unit_vectors(sizes.queries, sizes.vectors + 1)
        vectors_ND = torch.from_numpy(np.array(on_cpu.vectors_ND)).to(device)

        def candidates(rows: np.ndarray, wanted: int) -> Iterator[Candidates]:
            asked_QD = torch.from_numpy(queries_QD[rows]).to(device)
            for positions in (asked_QD @ vectors_ND.T).topk(wanted).indices.cpu().numpy():
                yield positions, on_cpu.vectors_ND[positions]

        def on_card() -> list[Hits]:
            return search_exactly(queries_QD, NEAREST, NEAREST, sizes.vectors, candidates)

        ours, theirs = on_card(), on_cpu.search(queries_QD, NEAREST)
        same = sum(one == other for one, other in zip(ours, theirs, strict=True))
        yield row("exact search, ids and scores as on the CPU", "queries", {OURS: same}, of=sizes.queries)
        steps = {OURS: on_card, "the project on the CPU": lambda: on_cpu.search(queries_QD, NEAREST)}
        yield from compared(f"exact search of {sizes.vectors:,} vectors", steps, sizes.queries, "queries", 1)
        if same < sizes.queries:
            raise ValueError(f"{sizes.queries - same} of {sizes.queries} queries found other vectors than on the CPU")
