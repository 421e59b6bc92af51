"""Search and questions as tools of the Model Context Protocol, for assistants and editors."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from mcp.server import MCPServer
from pydantic import Field
from starlette.exceptions import HTTPException

from common.version import VERSION
from harness.serving.backend import Backend, answer_row, hit_row, plain
from harness.serving.requests import MOST_FOUND, AskRequest, Text, Turns


def mcp_server(backend: Backend) -> MCPServer[Any]:
    """A server with the tools that a system can fill: `search` and `ask`."""
    logging.basicConfig(level=logging.WARNING)  # else MCPServer sets a handler that opens files when it is used
    server: MCPServer[Any] = MCPServer("lightning-rag", version=VERSION, log_level="WARNING")

    async def search(query: Text, k: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 5) -> dict[str, Any]:
        """Find the passages of the corpus that match a query best, with their scores."""
        with _as_tool_error():
            hits = await backend.result("search", (query, k))
        return {"passages": plain([hit_row(hit) for hit in hits])}

    async def ask(question: Text, history: Turns = []) -> dict[str, Any]:  # noqa: B006 (not changed)
        """Answer a question from the corpus: the answer, and the passages that it rests on."""
        (asked,) = AskRequest(question=question, history=history).questions()
        with _as_tool_error():
            (answer,) = await backend.answers([asked])
        row = answer_row(asked, answer)
        return {name: row[name] for name in ("question", "text", "evidence")}

    if "search" in backend.served.works:
        server.add_tool(search)
    if "ask" in backend.served.works and not backend.served.needs_passages:
        server.add_tool(ask)
    return server


@contextmanager
def _as_tool_error() -> Iterator[None]:
    try:
        yield
    except HTTPException as error:
        raise ValueError(error.detail) from error
