"""Does the work of requests, of HTTP and MCP alike, and gives its results as values of JSON types."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pydantic_core import to_jsonable_python
from starlette.exceptions import HTTPException
from starlette.requests import Request

from common.errors import RefusedError, UnavailableError, UserError
from common.records import Answer, Question, Ranked
from harness.runtime.failures import failure_of
from harness.serving.guards import ServerMetrics
from harness.serving.parts import Served
from harness.serving.worker import Pending, QueueFullError, ServingLimits, Worker

CLIENT_LEFT = 499


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

    def submit(self, name: str, items: Sequence[Any], size: int = 1) -> list[Pending]:
        """Queue the work of a request, all of it or nothing.

        Args:
            name: ask, search, rerank or rewrite.
            items: As the work takes them.
            size: Of each, see `Work.budget`.

        Raises:
            HTTPException: If there is no such part, the queue is full, or there are more than it ever holds.
        """
        work = self.served.works.get(name)
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
        futures: list[Pending] = []
        left = asyncio.ensure_future(_left(request))
        try:
            futures += self.submit(name, items, size)
            waited = asyncio.gather(*map(asyncio.wrap_future, futures), return_exceptions=True)
            tasks: list[asyncio.Future[Any]] = [waited, left]
            seconds = self.limits.seconds
            done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if waited not in done:
                raise HTTPException(CLIENT_LEFT if done else 504, f"no answer within {seconds:g} s")
            return [refusal(each) if isinstance(each, Exception) else each for each in waited.result()]
        finally:
            left.cancel()
            for future in futures:
                future.give_up()

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
        if "ask" in self.served.works and not self.served.needs_passages and any(each.passages for each in questions):
            raise HTTPException(422, "passages: this system retrieves by itself and reads no others: omit them")

    async def answers(self, questions: Sequence[Question], request: Request | None = None) -> list[Answer]:
        """The answers of a system; one that fails says why, and raises if it is the only one."""
        self.check_passages(questions)
        found = await self.results("ask", [(question, None) for question in questions], request)
        answers = [
            Answer(each.id, "", (), notes={"error": one.detail}) if isinstance(one, HTTPException) else one
            for each, one in zip(questions, found, strict=True)
        ]
        if len(answers) == 1 and (why := failure_of(answers[0])):  # the same alone and beside others
            raise HTTPException(500 if getattr(found[0], "status_code", 502) == 500 else 502, why)
        for answer in answers:
            self.metrics.spent(answer.costs)
        return answers


async def _left(request: Request | None) -> None:
    """Ends when the client of a request has left; never without one."""
    while request is None or (await request.receive())["type"] != "http.disconnect":
        await asyncio.sleep(0 if request else 3600)


def refusal(error: Exception) -> HTTPException:
    """The response to a failure: of a service, of what was asked, or of the program, which the worker has logged."""
    if isinstance(error, UnavailableError | RefusedError | ConnectionError | TimeoutError):
        return HTTPException(502, " ".join(str(error).split()))
    if isinstance(error, UserError):
        return HTTPException(422, " ".join(str(error).split()))
    return HTTPException(500, "the server has failed, see its log")


def plain(value: Any) -> Any:
    """A value of JSON types, records included; JSON has no infinite numbers: null in their place."""
    return to_jsonable_python(value, inf_nan_mode="null")


def hit_row(hit: Ranked) -> dict[str, Any]:
    """A passage that was found."""
    return {**{name: value for name, value in hit.passage.row.items() if name != "indexed"}, "score": hit.score}


def answer_row(question: Question, answer: Answer) -> dict[str, Any]:
    """An answer, as `infer.py ask --json` prints it."""
    why = failure_of(answer)
    return plain({"question": question.text, **asdict(answer), **({"error": why} if why else {})})
