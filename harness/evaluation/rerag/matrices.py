"""Lossless JSON serialization of the matrices of answer scores.  Shape legend: N contexts, A answers."""

from math import inf
from typing import Any

import torch

from models.rerag.marginal_reader import Matrix


def pack_matrix(matrix: Matrix | None) -> dict[str, Any] | None:
    """The matrix as JSON types, its (A, N) log-probabilities row by row."""
    if matrix is None:
        return None
    logp_AN = matrix.answer_logp_AN
    return {
        "written": list(matrix.written),
        "candidates": list(matrix.candidates),
        # JSON has no infinity: null is -inf
        "answer_logp": None
        if logp_AN is None
        else [[None if v == -inf else v for v in row] for row in logp_AN.tolist()],
        **({"failed": list(matrix.failed)} if matrix.failed else {}),
    }


def unpack_matrix(packed: dict[str, Any] | None) -> Matrix | None:
    """The inverse of `pack_matrix`, log-probabilities as float32."""
    if packed is None:
        return None
    written, candidates = tuple(packed["written"]), tuple(packed["candidates"])
    failed = tuple(packed.get("failed", ()))
    if packed["answer_logp"] is None:
        return Matrix(written, candidates, None, failed)
    rows = [[-inf if value is None else value for value in row] for row in packed["answer_logp"]]
    logp_AN = torch.tensor(rows, dtype=torch.float32).reshape(
        len(candidates), len(written)
    )  # an empty list has no shape
    return Matrix(written, candidates, logp_AN, failed)
