"""Search and questions as tools of the Model Context Protocol, for assistants and editors."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from mcp.server import MCPServer
from pydantic import Field
from starlette.exceptions import HTTPException

from common.version import VERSION
from harness.serving.requests import MOST_FOUND, AskRequest, Text, Turns

if TYPE_CHECKING:
    from harness.serving.app import Backend


def mcp_server(backend: "Backend") -> MCPServer[Any]:
    """A server with the tools that a system can fill: `search` and `ask`."""
    from harness.serving.app import answer_row, finite, hit_row

    logging.basicConfig(level=logging.WARNING)  # else MCPServer sets a handler that opens files when it is used
    server: MCPServer[Any] = MCPServer("lightning-rag", version=VERSION, log_level="WARNING")

    async def search(query: Text, k: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 5) -> dict[str, Any]:
        """Find the passages of the corpus that match a query best, with their scores."""
        with _as_tool_error():
            hits = await backend.result("search", (query, k))
        return {"passages": [finite(hit_row(hit)) for hit in hits]}

    async def ask(question: Text, history: Turns = []) -> dict[str, Any]:  # noqa: B006 (not changed)
        """Answer a question from the corpus: the answer, and the passages that it rests on."""
        (asked,) = AskRequest(question=question, history=history).questions()
        with _as_tool_error():
            (answer,) = await backend.answers([asked])
        return {name: finite(answer_row(asked, answer)[name]) for name in ("question", "text", "evidence")}

    if backend.served.search:
        server.add_tool(search)
    if backend.served.ask and not backend.served.needs_passages:
        server.add_tool(ask)
    return server


@contextmanager
def _as_tool_error() -> Iterator[None]:
    try:
        yield
    except HTTPException as error:
        raise ValueError(error.detail) from error
