"""The routes of the server: ask, search, rerank, rewrite, chat completions, health and metrics.

Errors are `{"error": {"message", "type"}}`: 422 names the field, 404 a part that is not served, 429 says when to try
again, 502 that a service behind a system has failed, 504 that the time is over.
"""

import asyncio
import json
import math
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException

from common.records import Answer, Question, clean
from common.version import VERSION
from harness.runtime.failures import failure_of
from harness.serving.backend import Backend, answer_row, hit_row, plain, refusal
from harness.serving.guards import Guard, HeadAsGet, error_response
from harness.serving.mcp_tools import mcp_server
from harness.serving.parts import EMPTY, Served
from harness.serving.requests import AskRequest, ChatRequest, RerankRequest, RewriteRequest, SearchRequest
from harness.serving.worker import ServingLimits, tokens_of

PAGE = Path(__file__).with_name("page.html")
SECURE = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}


def create_app(served: Served, limits: ServingLimits, key: str = "", hosts: tuple[str, ...] = ()) -> FastAPI:
    """The server's application, to be run by any ASGI server in one process.

    Args:
        served: See `harness.serving.parts`.
        limits: See `ServingLimits`.
        key: That requests must bring along; empty for none.
        hosts: Names by which it may be called; empty for any.
    """
    backend = Backend(served, limits)
    tools = mcp_server(backend)
    mcp_app = tools.streamable_http_app(stateless_http=True, json_response=True, host="0.0.0.0")  # checked by Guard

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with tools.session_manager.run():
            yield
        await asyncio.to_thread(backend.worker.close, limits.seconds)

    app = FastAPI(title="Lightning RAG", version=VERSION, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.backend = backend
    app.add_middleware(Guard, limits=limits, metrics=backend.metrics, key=key, hosts=hosts)
    app.add_middleware(HeadAsGet)
    _add_routes(app, backend)
    app.router.routes.extend(mcp_app.routes)

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        return error_response(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        wrong = dict.fromkeys(map(_mistake, error.errors()[:3]))
        return error_response(422, "; ".join(wrong))

    @app.exception_handler(Exception)
    async def failed(_: Request, __: Exception) -> Response:  # its traceback is in the server's log
        return error_response(500, "the server has failed, see its log")

    return app


def _mistake(error: dict[str, Any]) -> str:
    """A field and what is wrong with it, without the names of checks."""
    if error["type"] == "json_invalid":
        return "the body is no JSON"
    place = ".".join(str(part) for part in error["loc"][1:] if "[" not in str(part))
    return f"{place or 'the body, as application/json'}: {error['msg'].removeprefix('Value error, ')}"


def _add_routes(app: FastAPI, backend: Backend) -> None:
    served = backend.served

    @app.get("/", response_class=HTMLResponse)
    async def page() -> HTMLResponse:
        return HTMLResponse(PAGE.read_text(encoding="utf-8"), headers=SECURE)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        about = {"status": "ok", "serves": served.name, "parts": [*served.works]}
        return {**about, "reads": served.reads, "version": VERSION}

    @app.get("/ready")
    async def ready() -> Response:
        full = backend.worker.waiting >= backend.limits.requests
        status = "stopping" if backend.stopping else "busy" if full else "ready" if backend.worker.works else "failed"
        return JSONResponse({"status": status}, 200 if status == "ready" else 503)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(generate_latest(backend.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @app.post("/ask")
    async def ask(asked: AskRequest, request: Request) -> Response:
        questions = asked.questions()
        if asked.stream or "text/event-stream" in request.headers.get("accept", ""):
            if len(questions) > 1:
                raise HTTPException(422, "question: events are for one question")
            return StreamingResponse(_followed(backend, questions[0]), media_type="text/event-stream")
        answers = await backend.answers(questions, request)
        rows = [answer_row(question, answer) for question, answer in zip(questions, answers, strict=True)]
        return JSONResponse(rows if isinstance(asked.question, list) else rows[0])

    @app.post("/search")
    async def search(asked: SearchRequest, request: Request) -> Response:
        queries = [asked.query] if isinstance(asked.query, str) else asked.query
        found = await backend.results("search", [(query, asked.k) for query in queries], request)
        if failed := [each for each in found if isinstance(each, HTTPException)]:
            raise failed[0]
        lists = plain([{"results": [hit_row(hit) for hit in hits]} for hits in found])
        return JSONResponse(lists[0] if isinstance(asked.query, str) else lists)

    @app.post("/rewrite")
    async def rewrite(asked: RewriteRequest, request: Request) -> Response:
        known = served.strategies
        named = tuple(asked.strategies or known)
        if unknown := [each for each in named if each not in known] if "rewrite" in served.works else []:
            raise HTTPException(422, f"strategies: {unknown[0]!r} is none of {', '.join(known)}")
        question = AskRequest(question=asked.question, history=asked.history).questions()[0]
        made = await backend.result("rewrite", (question, named), request)
        return JSONResponse(plain({"question": question.text, **asdict(made)}))

    @app.post("/rerank")
    @app.post("/v1/rerank")
    @app.post("/v2/rerank")
    async def rerank(asked: RerankRequest, request: Request) -> Response:
        reranker, passages = served.reranker, asked.passages()
        if reranker is None:
            raise HTTPException(404, f"{served.name} has no part that can rerank")
        filled = [place for place, each in enumerate(passages) if clean(each.text)]
        read = [passages[place] for place in filled]
        size = reranker.size(asked.query, read)
        found = await backend.result("rerank", (asked.query, read), request, size) if read else []
        log_odds = dict(zip(filled, found, strict=True))
        for place in range(len(passages)):  # an empty text comes last
            log_odds.setdefault(place, min([EMPTY, *found]))
        rows = []
        for place in sorted(log_odds, key=lambda place: -log_odds[place])[: asked.top_n]:
            score = log_odds[place] if asked.raw_scores else _sigmoid(log_odds[place])
            row = {"index": place, "score" if asked.texts is not None else "relevance_score": score}
            if asked.texts is not None and asked.return_text:
                row["text"] = asked.texts[place]
            if asked.texts is None and asked.return_documents:
                row["document"] = {"text": passages[place].text}
            rows.append(row)
        if asked.texts is not None:
            return JSONResponse(plain(rows))
        about = {"id": f"rerank-{uuid.uuid4().hex}", "model": served.name}
        return JSONResponse(plain({**about, "results": rows, "usage": {"total_tokens": size}}))

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": served.name, "object": "model", "owned_by": "lightning-rag"}]}

    @app.post("/v1/chat/completions")
    async def chat(asked: ChatRequest, request: Request) -> Response:
        if "ask" in served.works and not served.reads:
            raise HTTPException(404, f"{served.name} has no reader, so it writes no answers: POST /ask or /search")
        (answer,) = await backend.answers([asked.question()], request)
        about = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": served.name}
        tokens = int(answer.costs.get("tokens", 0))
        written = int(answer.costs.get("reply_tokens", 0)) or (tokens_of(answer.text) if answer.text else 0)
        usage = {"prompt_tokens": tokens, "completion_tokens": written, "total_tokens": tokens + written}
        if asked.stream:
            told = usage if asked.stream_options.include_usage else None
            return StreamingResponse(_chunks(about, answer.text, told), media_type="text/event-stream")
        choice = {"index": 0, "message": {"role": "assistant", "content": answer.text}, "finish_reason": "stop"}
        evidence = plain([hit_row(hit) for hit in answer.evidence])
        return JSONResponse(
            {**about, "object": "chat.completion", "choices": [choice], "usage": usage, "evidence": evidence}
        )


def _sigmoid(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds)) if log_odds > 0 else math.exp(log_odds) / (1 + math.exp(log_odds))


def _followed(backend: Backend, question: Question) -> AsyncIterator[str]:
    """The stages of a question as they end, then `answer` or `error`.  Raises HTTPException if it is not taken."""
    backend.check_passages([question])
    loop = asyncio.get_running_loop()
    stages: asyncio.Queue[str | None] = asyncio.Queue()

    def follow(stage: str, found: Answer) -> None:
        told = {"stage": stage, "evidence": [hit_row(hit) for hit in found.evidence], "notes": found.notes}
        loop.call_soon_threadsafe(stages.put_nowait, _event("stage", told))

    (future,) = backend.submit("ask", [(question, follow)])
    future.add_done_callback(lambda _: loop.call_soon_threadsafe(stages.put_nowait, None))

    async def events() -> AsyncIterator[str]:
        end = time.monotonic() + backend.limits.seconds
        try:
            while (told := await asyncio.wait_for(stages.get(), end - time.monotonic())) is not None:
                yield told
            answer = future.result()
            why = failure_of(answer)
        except Exception as error:
            over = isinstance(error, TimeoutError) and not future.done()
            why = f"no answer within {backend.limits.seconds:g} s" if over else refusal(error).detail
        finally:
            future.give_up()
        if why:
            yield _event("error", {"message": why})
            return
        backend.metrics.spent(answer.costs)
        yield _event("answer", answer_row(question, answer))

    return events()


def _event(name: str, value: Any) -> str:
    """A server-sent event."""
    return f"event: {name}\ndata: {json.dumps(plain(value), ensure_ascii=False)}\n\n"


async def _chunks(about: dict[str, Any], text: str, usage: dict[str, int] | None) -> AsyncIterator[str]:
    """An answer as OpenAI streams it; with a usage, that of all chunks but the last is null."""
    about = {**about, "object": "chat.completion.chunk"} | ({"usage": None} if usage else {})
    deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": text}, None), ({}, "stop")]
    choices = [[{"index": 0, "delta": delta, "finish_reason": finish}] for delta, finish in deltas]
    last = [{**about, "choices": [], "usage": usage}] if usage else []
    for chunk in [*({**about, "choices": each} for each in choices), *last]:
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"
