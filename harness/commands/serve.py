"""`infer.py serve` and `infer.py mcp`: a system, or a trained part alone, behind HTTP and for assistants."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.backends import Backend, chosen
from common.errors import UserError
from common.packages import require
from common.progress import say
from common.ranges import Precision, ranged
from harness.interfaces import System
from harness.serving.worker import ServingLimits

if TYPE_CHECKING:
    Port = int
else:
    Port = ranged("Port", int, (">=", 0), ("<=", 65535))

KEY_VARIABLE = "LIGHTNING_RAG_KEY"


def serve(
    system: System | None = None,
    serving: Path | None = None,
    host: str = "127.0.0.1",
    port: Port = 8000,
    limits: ServingLimits = ServingLimits(),  # noqa: B008 (frozen)
    device: str = "auto",
    precision: Precision = "auto",
    backend: Backend = "torch",
) -> None:
    """Serve a system, or a trained part alone, over HTTP until Ctrl-C or SIGTERM; accepted requests are finished.

    Routes: /ask, /search, /rerank, /rewrite, /v1/chat/completions, /mcp, /health, /ready, /metrics, and a page at /. If
    the environment has LIGHTNING_RAG_KEY, requests must bring it along: Authorization: Bearer KEY.

    Args:
        system: The system that answers.
        serving: In its place a part alone: a folder that training exported, checkpoints/NAME/serving, or folder or hub
            id of a cross-encoder. A classifier or an estimator reranks, a rewriter rewrites.
        host: Address to listen on; 0.0.0.0 for all of this machine.
        port: Port to listen on; 0 for any that is free.
        limits: How much is taken at once.
        device: Of the part alone: auto, cpu or cuda.
        precision: Of the part alone: auto (bf16 where the device has it in hardware), fp32 or bf16.
        backend: What computes encoders that are trained parts: torch, or onnx: ONNX Runtime on the CPU, from the export
            in the folder `onnx` beside their serving folder.
    """
    if (system is None) == (serving is None):
        raise UserError(
            "Give one of a system, such as --config configs/infer/retrieve_read.yaml, and a part alone, "
            "--serving checkpoints/NAME/serving."
        )
    require("serve", "Serving")
    from harness.serving.server import bound, run

    listening = bound(host, port)
    key = os.environ.get(KEY_VARIABLE, "").strip()
    with chosen(backend):
        served = _served(system, serving, limits, device, precision)
    run(served, limits, listening, host, key)


def mcp(
    system: System,
    limits: ServingLimits = ServingLimits(),  # noqa: B008
) -> None:
    """Give an assistant the tools `search` and `ask` of a system: a server of the Model Context Protocol on stdio.

    Args:
        system: The system that answers.
        limits: How much is taken at once.
    """
    require("serve", "Serving")
    from harness.serving.backend import Backend
    from harness.serving.mcp_tools import mcp_server

    backend = Backend(_served(system, None, limits), limits)
    try:
        mcp_server(backend).run("stdio")
    finally:
        backend.worker.close(limits.seconds)


def _served(system: System | None, serving: Path | None, limits: ServingLimits, *of_part: Any) -> Any:
    """What is served, loaded."""
    from harness.serving.parts import served_part, served_system

    if serving is not None:
        return served_part(serving, limits, *of_part)
    assert system is not None
    served = served_system(system, limits)
    say(f"{served.name} is loaded.")
    return served
