"""The routes of the server: ask, search, rerank, rewrite, chat completions, health and metrics.

Errors are `{"error": {"message", "type"}}`: 422 names the field, 404 a part that is not served, 429 says when to try
again, 502 that a service behind a system has failed, 504 that the time is over.
"""

import asyncio
import json
import math
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException

from common.errors import RefusedError, UnavailableError, UserError
from common.records import Answer, Question, Ranked
from common.version import VERSION
from harness.runtime.failures import failure_of
from harness.serving.guards import Guard, ServerMetrics, error_type
from harness.serving.parts import AskedQuestion, Served
from harness.serving.requests import AskRequest, ChatRequest, RerankRequest, RewriteRequest, SearchRequest
from harness.serving.worker import QueueFullError, ServingLimits, Work, Worker, give_up

PAGE = Path(__file__).with_name("page.html")
CLIENT_LEFT = 499
SECURE = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}


class Backend:
    """Does the work of requests, of HTTP and MCP alike.

    Args:
        served: What there is.
        limits: See `ServingLimits`.
    """

    def __init__(self, served: Served, limits: ServingLimits) -> None:
        self.served, self.limits, self.stopping = served, limits, False
        self.metrics = ServerMetrics(lambda: self.worker.waiting)
        self.worker = Worker(limits, self.metrics.batched)

    def submit(self, name: str, items: Sequence[Any], size: int = 1) -> "list[Future[Any]]":
        """Queue the work of a request, all of it or nothing.

        Args:
            name: ask, search, rerank or rewrite.
            items: As the work takes them.
            size: Of each, see `Work.budget`.

        Raises:
            HTTPException: If there is no such part, the queue is full, or there are more than it ever holds.
        """
        work: Work | None = getattr(self.served, name)
        if work is None:
            raise HTTPException(404, f"{self.served.name} has no part that can {name}")
        if len(items) > self.limits.requests:
            raise HTTPException(422, f"{len(items)} in one request, this server takes {self.limits.requests} at once")
        try:
            return self.worker.submit(work, items, size)
        except QueueFullError as error:
            raise HTTPException(429, str(error), {"retry-after": str(error.retry_seconds)}) from error

    async def results(
        self, name: str, items: Sequence[Any], request: Request | None = None, size: int = 1
    ) -> list[Any]:
        """The result of each item; an HTTPException in the place of one that fails.

        All are given up if the client of the request leaves, or the time is over.

        Raises:
            HTTPException: If there is no such part, the queue is full or the time is over.
        """
        futures: list[Future[Any]] = []
        left = asyncio.ensure_future(_left(request))
        try:
            futures += self.submit(name, items, size)
            waited = asyncio.gather(*map(asyncio.wrap_future, futures), return_exceptions=True)
            tasks: list[asyncio.Future[Any]] = [waited, left]
            seconds = self.limits.seconds
            done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if waited not in done:
                raise HTTPException(CLIENT_LEFT if done else 504, f"no answer within {seconds:g} s")
            return [_refusal(each) if isinstance(each, Exception) else each for each in waited.result()]
        finally:
            left.cancel()
            for future in futures:
                give_up(future)

    async def result(self, name: str, item: Any, request: Request | None = None, size: int = 1) -> Any:
        """The result of one item.  Raises HTTPException, also if the item fails."""
        (found,) = await self.results(name, [item], request, size)
        if isinstance(found, HTTPException):
            raise found
        return found

    def check_passages(self, questions: Sequence[Question]) -> None:
        """Raise HTTPException if a system without a retriever gets no passages, or another one gets some."""
        if self.served.needs_passages and not all(each.passages for each in questions):
            raise HTTPException(422, "passages: this system has no retriever and reads what a request brings along")
        if self.served.ask and not self.served.needs_passages and any(each.passages for each in questions):
            raise HTTPException(422, "passages: this system retrieves by itself and reads no others: omit them")

    async def answers(self, questions: Sequence[Question], request: Request | None = None) -> list[Answer]:
        """The answers of a system; one that fails says why, and raises if it is the only one."""
        self.check_passages(questions)
        found = await self.results("ask", [*map(AskedQuestion, questions)], request)
        answers = [
            Answer(each.id, "", (), notes={"error": one.detail}) if isinstance(one, HTTPException) else one
            for each, one in zip(questions, found, strict=True)
        ]
        if len(answers) == 1 and (why := failure_of(answers[0])):  # the same alone and beside others
            raise HTTPException(500 if _is_of_program(found[0]) else 502, why)
        for answer in answers:
            self.metrics.spent(answer.costs)
        return answers


async def _left(request: Request | None) -> None:
    """Ends when the client of a request has left; never without one."""
    while request is None or (await request.receive())["type"] != "http.disconnect":
        await asyncio.sleep(0 if request else 3600)


def _refusal(error: Exception) -> HTTPException:
    """The response to a failure: of a service, of what was asked, or of the program, which the worker has logged."""
    if isinstance(error, UnavailableError | RefusedError | ConnectionError | TimeoutError):
        return HTTPException(502, " ".join(str(error).split()))
    if isinstance(error, UserError):
        return HTTPException(422, " ".join(str(error).split()))
    return HTTPException(500, "the server has failed, see its log")


def _is_of_program(found: Any) -> bool:
    return isinstance(found, HTTPException) and found.status_code == 500


def hit_row(hit: Ranked) -> dict[str, Any]:
    """A passage that was found, as JSON."""
    return {**{name: value for name, value in hit.passage.row.items() if name != "indexed"}, "score": hit.score}


def answer_row(question: Question, answer: Answer) -> dict[str, Any]:
    """An answer as JSON: as `infer.py ask --json` prints it."""
    why = failure_of(answer)
    return {"question": question.text, **asdict(answer), **({"error": why} if why else {})}


def finite(value: Any) -> Any:
    """JSON has no infinite numbers: null in their place."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(value: Any) -> str:
    """A value as JSON in one line."""
    return json.dumps(finite(value), ensure_ascii=False, allow_nan=False)


def as_json(value: Any, status: int = 200) -> Response:
    """A response."""
    return Response(json_text(value), status, media_type="application/json")


def event(name: str, value: Any) -> str:
    """A server-sent event."""
    return f"event: {name}\ndata: {json_text(value)}\n\n"


def create_app(served: Served, limits: ServingLimits, key: str = "", hosts: tuple[str, ...] = ()) -> FastAPI:
    """The server's application, to be run by any ASGI server in one process.

    Args:
        served: See `harness.serving.parts`.
        limits: See `ServingLimits`.
        key: That requests must bring along; empty for none.
        hosts: Names by which it may be called; empty for any.
    """
    from harness.serving.mcp_tools import mcp_server

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
    _add_routes(app, backend)
    app.router.routes.extend(mcp_app.routes)

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        detail = {"error": {"message": str(error.detail), "type": error_type(error.status_code)}}
        return JSONResponse(detail, error.status_code, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        wrong = dict.fromkeys(map(_mistake, error.errors()[:3]))
        return as_json({"error": {"message": "; ".join(wrong), "type": error_type(422)}}, 422)

    @app.exception_handler(Exception)
    async def failed(_: Request, __: Exception) -> Response:  # its traceback is in the server's log
        return as_json({"error": {"message": "the server has failed, see its log", "type": error_type(500)}}, 500)

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
        parts = [name for name in ("ask", "search", "rerank", "rewrite") if getattr(served, name)]
        return {"status": "ok", "serves": served.name, "parts": parts, "reads": served.reads, "version": VERSION}

    @app.get("/ready")
    async def ready() -> Response:
        full = backend.worker.waiting >= backend.limits.requests
        status = "stopping" if backend.stopping else "busy" if full else "ready" if backend.worker.works else "failed"
        return as_json({"status": status}, 200 if status == "ready" else 503)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(generate_latest(backend.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @app.post("/ask")
    async def ask(asked: AskRequest, request: Request) -> Response:
        questions = asked.questions()
        if asked.stream or "text/event-stream" in request.headers.get("accept", ""):
            if len(questions) > 1:
                raise HTTPException(422, "question: events are for one question")
            return _followed(backend, questions[0])
        rows = [
            answer_row(question, answer)
            for question, answer in zip(questions, await backend.answers(questions, request), strict=True)
        ]
        return as_json(rows if isinstance(asked.question, list) else rows[0])

    @app.post("/search")
    async def search(asked: SearchRequest, request: Request) -> Response:
        queries = [asked.query] if isinstance(asked.query, str) else asked.query
        found = await backend.results("search", [(query, asked.k) for query in queries], request)
        if failed := [each for each in found if isinstance(each, HTTPException)]:
            raise failed[0]
        lists = [{"results": [hit_row(hit) for hit in hits]} for hits in found]
        return as_json(lists[0] if isinstance(asked.query, str) else lists)

    @app.post("/rewrite")
    async def rewrite(asked: RewriteRequest, request: Request) -> Response:
        known = served.strategies
        named = tuple(asked.strategies or known)
        if unknown := [each for each in named if each not in known] if served.rewrite else []:
            raise HTTPException(422, f"strategies: {unknown[0]!r} is none of {', '.join(known)}")
        question = AskRequest(question=asked.question, history=asked.history).questions()[0]
        made = await backend.result("rewrite", (question, named), request)
        return as_json({"question": question.text, **asdict(made)})

    for path in ("/rerank", "/v1/rerank", "/v2/rerank"):
        app.post(path)(_reranks(backend))

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": served.name, "object": "model", "owned_by": "lightning-rag"}]}

    @app.post("/v1/chat/completions")
    async def chat(asked: ChatRequest, request: Request) -> Response:
        if served.ask and not served.reads:
            raise HTTPException(404, f"{served.name} has no reader, so it writes no answers: POST /ask or /search")
        (answer,) = await backend.answers([asked.question()], request)
        about = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": served.name}
        if asked.stream:
            return StreamingResponse(_chunks(about, answer.text), media_type="text/event-stream")
        tokens = int(answer.costs.get("tokens", 0))
        choice = {"index": 0, "message": {"role": "assistant", "content": answer.text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": tokens, "completion_tokens": 0, "total_tokens": tokens}
        evidence = [hit_row(hit) for hit in answer.evidence]
        return as_json(
            {**about, "object": "chat.completion", "choices": [choice], "usage": usage, "evidence": evidence}
        )


def _reranks(backend: Backend) -> Any:
    async def rerank(asked: RerankRequest, request: Request) -> Response:
        reranker, passages = backend.served.reranker, asked.passages()
        if reranker is None:
            raise HTTPException(404, f"{backend.served.name} has no part that can rerank")
        if not reranker.least_passages <= len(passages) <= reranker.most_passages:
            allowed = f"{reranker.least_passages} to {reranker.most_passages}"
            raise HTTPException(422, f"{'texts' if asked.texts else 'documents'}: {len(passages)}, allowed {allowed}")
        size = reranker.size(asked.query, passages)
        log_odds = await backend.result("rerank", (asked.query, passages), request, size)
        scores = log_odds if asked.raw_scores else [_sigmoid(each) for each in log_odds]
        order = sorted(range(len(scores)), key=lambda place: -log_odds[place])[: asked.top_n]
        if asked.texts is not None:
            return as_json(
                [
                    {"index": place, "score": scores[place]}
                    | ({"text": asked.texts[place]} if asked.return_text else {})
                    for place in order
                ]
            )
        results = [{"index": place, "relevance_score": scores[place]} for place in order]
        if asked.return_documents:
            results = [
                each | {"document": {"text": passages[place].text}} for each, place in zip(results, order, strict=True)
            ]
        about = {"id": f"rerank-{uuid.uuid4().hex}", "model": backend.served.name}
        return as_json({**about, "results": results, "usage": {"total_tokens": size}})

    return rerank


def _sigmoid(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds)) if log_odds > 0 else math.exp(log_odds) / (1 + math.exp(log_odds))


def _followed(backend: Backend, question: Question) -> StreamingResponse:
    """The stages of a question as they end, then `answer` or `error`.  Raises HTTPException if it is not taken."""
    backend.check_passages([question])
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[str | None] = asyncio.Queue()

    def follow(stage: str, found: Answer) -> None:
        told = {"stage": stage, "evidence": [hit_row(hit) for hit in found.evidence], "notes": found.notes}
        loop.call_soon_threadsafe(events.put_nowait, event("stage", told))

    (future,) = backend.submit("ask", [AskedQuestion(question, follow)])
    future.add_done_callback(lambda _: loop.call_soon_threadsafe(events.put_nowait, None))
    return StreamingResponse(_events(backend, question, events, future), media_type="text/event-stream")


async def _events(
    backend: Backend, question: Question, events: "asyncio.Queue[str | None]", future: "Future[Answer]"
) -> AsyncIterator[str]:
    end = time.monotonic() + backend.limits.seconds
    try:
        while (told := await asyncio.wait_for(events.get(), end - time.monotonic())) is not None:
            yield told
        answer = future.result()
        why = failure_of(answer)
    except Exception as error:
        over = isinstance(error, TimeoutError) and not future.done()
        why = f"no answer within {backend.limits.seconds:g} s" if over else _refusal(error).detail
    finally:
        give_up(future)
    if why:
        yield event("error", {"message": why})
        return
    backend.metrics.spent(answer.costs)
    yield event("answer", answer_row(question, answer))


async def _chunks(about: dict[str, Any], text: str) -> AsyncIterator[str]:
    """An answer as OpenAI streams it."""
    deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": text}, None), ({}, "stop")]
    for delta, finish in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        yield f"data: {json_text({**about, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"
    yield "data: [DONE]\n\n"
