"""Any OpenAI-compatible chat endpoint as a language model, by the `openai` package."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from common.chat import Chat, Reply
from common.errors import UnavailableError, UserError
from common.progress import Progress
from common.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from harness.llm.attempt import NO_KEY, Failure, attempt
from harness.llm.connection import Connection, TokenLimitField, check_connection
from harness.llm.response_cache import FILE, ResponseCache, key_of
from harness.runtime.event_loop import for_each, run
from harness.runtime.retries import Health, backoff_seconds
from harness.runtime.services import one_line, without_key

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_FIRST_CONNECTIONS = (
    3  # attempts to reach an endpoint that has not answered yet; a wrong address should not take a minute
)


class ChatEndpoint:
    """A model behind an OpenAI-compatible endpoint (`POST BASE_URL/chat/completions`).

    OpenAI, vLLM, llama.cpp, and others.

    Replies are cached on disk, so that no reply is paid for twice.  `totals` counts what was requested.

    Args:
        model: Name of the model, as the endpoint knows it.
        base_url: Address of the endpoint, such as http://localhost:8000/v1; when None that in the environment variable
            OPENAI_BASE_URL, or else OpenAI's.
        key_variable: Name of the environment variable that holds the key.  The key itself is no option, so that it is
            never written to a file.  Without the variable, or with None, requests carry no key, as your own server
            allows; OpenAI needs one.
        timeout_seconds: Deadline of each attempt, for the whole reply.
        max_retries: Further attempts after 408, 409, 429, 5xx, no connection, no reply in time or a malformed reply.
        concurrency: Requests at the same time.
        stream: Receive replies token by token; for gateways that close connections without traffic.
        cache: Folder of the response cache; None stores nothing and requests everything again.
        usd_per_million_prompt_tokens: Price; None leaves the costs in US dollars unknown.
        usd_per_million_reply_tokens: Price; None as above.
        options: Further fields of each request, such as {"reasoning_effort": "low"}; null omits a field that is
            otherwise sent: temperature, seed or stream_options.
        token_limit_field: Field for the length of the reply; newer models of OpenAI accept only max_completion_tokens.
        reasoning_tokens: Added to each chat's limit, for models that think before they reply and whose thoughts count.

    Raises:
        UserError: If an option contradicts another or holds a secret, or the key is missing.
    """

    concurrent_calls = True  # several threads may call it

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        key_variable: str | None = "OPENAI_API_KEY",
        timeout_seconds: PositiveFloat = 60.0,
        max_retries: NonNegativeInt = 6,
        concurrency: PositiveInt = 8,
        stream: bool = False,
        cache: Path | None = Path("cache/llm"),
        usd_per_million_prompt_tokens: NonNegativeFloat | None = None,
        usd_per_million_reply_tokens: NonNegativeFloat | None = None,
        options: dict[str, Any] | None = None,
        token_limit_field: TokenLimitField = "max_tokens",
        reasoning_tokens: NonNegativeInt = 0,
    ) -> None:
        check_connection(model, base_url, key_variable, options)
        prices = (usd_per_million_prompt_tokens, usd_per_million_reply_tokens)
        self.connection = Connection(
            model, Connection.resolve(base_url), key_variable, options or {}, token_limit_field, reasoning_tokens
        )
        self.timeout_seconds, self.max_retries, self.concurrency = timeout_seconds, max_retries, concurrency
        self.stream, self.cache, self.prices = stream, None if cache is None else Path(cache), prices
        self.name = f"{model} at {self.connection.host}"
        self.totals = {"calls": 0, "failures": 0, "retries": 0, "prompt_tokens": 0, "reply_tokens": 0, "usd": 0.0}
        if self.cache is None or not (self.cache / FILE).exists():  # stored replies can be had without a key
            self.connection.key()
        kept = f"Replies so far are kept in {self.cache}." if self.cache else "No replies are kept: cache is null."
        self._health = Health(self.name, concurrency, kept)
        self._answered = False  # whether the endpoint has ever sent a response
        self._gave_logprobs = False
        self._not_before = 0.0  # of `monotonic`; a rate limit concerns all requests

    @property
    def identity(self) -> dict[str, Any]:
        """What determines replies and their costs, JSON types only; saved results are reused for the same."""
        known = {name: value for name, value in asdict(self.connection).items() if name != "key_variable"}
        return {**known, "prices": list(self.prices)}

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat, in order: stored by an earlier request, or requested now; equal chats are requested once.

        A chat that fails gets a `Reply` with `error`.  The log-probability is the sum over the tokens that the endpoint
        lists; whether the end of the text is among them depends on the endpoint.

        Raises:
            UserError: If no chat can succeed (wrong key, unknown model), the endpoint gives no log-probabilities and a
                chat needs them, or the key is missing.
            UnavailableError: If the endpoint cannot be reached, or too many chats in a row have failed.
            ArtifactError: If the cache is corrupt or cannot be written.
        """
        names = [self._name(chat) for chat in chats]
        wanted = dict(zip(names, chats, strict=True))
        with ResponseCache.opened(self.cache) if self.cache else nullcontext() as cache:
            replies = {name: self._priced(reply) for name, reply in (cache.find(wanted) if cache else {}).items()}
            missing = {name: chat for name, chat in wanted.items() if name not in replies}
            if missing:
                if cache:
                    cache.check_writable()
                with Progress(f"asking {self.connection.model}", len(wanted)) as progress:
                    progress.skip(len(replies))
                    replies |= run(self._ask_all(missing, cache, progress))
        found = []
        for name in names:
            found.append(replies[name])
            if not replies[name].error:  # further equal chats cost nothing
                replies[name] = replace(replies[name], cached=True)
        return found

    def _name(self, chat: Chat) -> str:
        """The name of a chat's reply in the cache."""
        return key_of(
            {"base_url": self.connection.base_url, "sample": chat.sample, "request": self.connection.request(chat)}
        )

    async def _ask_all(
        self, chats: Mapping[str, Chat], cache: ResponseCache | None, progress: Progress
    ) -> dict[str, Reply]:
        """The replies to named chats; each is stored as soon as it is there."""
        from openai import AsyncOpenAI

        key = self.connection.key()
        replies: dict[str, Reply] = {}
        async with AsyncOpenAI(
            api_key=key or NO_KEY, base_url=self.connection.base_url, max_retries=0, timeout=None
        ) as client:

            async def ask(named: tuple[str, Chat]) -> None:
                name, chat = named
                reply = await self._ask(client, chat, key)
                if cache and not reply.error:
                    cache.store(name, reply)
                replies[name] = reply
                progress.advance()

            await for_each(chats.items(), ask, min(self.concurrency, len(chats)))
        return replies

    async def _ask(self, client: "AsyncOpenAI", chat: Chat, key: str) -> Reply:
        """The reply to one chat after as many attempts as it takes, or why there is none.

        Raises:
            UserError: If no chat can succeed.
            UnavailableError: If the endpoint cannot be reached, or too many chats in a row have failed.
        """
        began = monotonic()
        request = self.connection.request(chat, self.stream)
        for number in range(self.max_retries + 1):
            await asyncio.sleep(self._not_before - monotonic())
            outcome = await attempt(client, request, self.timeout_seconds)
            if isinstance(outcome, Reply):
                self._answered = True
                self._gave_logprobs |= outcome.logprob is not None
                reply = replace(
                    outcome, text=without_key(outcome.text, key), retries=number, seconds=monotonic() - began
                )
                return self._counted(self._priced(reply))
            why = one_line(outcome.text, key)
            self._answered |= outcome.kind != "connect"
            self._raise_if_hopeless(outcome, why, number)
            if outcome.kind not in ("retry", "connect") or number == self.max_retries:
                break
            if outcome.wait_seconds:
                self._not_before = max(self._not_before, monotonic() + outcome.wait_seconds)
            await asyncio.sleep(backoff_seconds(number, outcome.wait_seconds))
        assert isinstance(outcome, Failure)  # a reply was returned
        passing = outcome.kind in ("retry", "connect")
        error = f"{why} (retries: {number})" if passing else why
        reply = self._counted(Reply("", error, finish="", retries=number, seconds=monotonic() - began))
        (self._health.failed if passing else self._health.refused)(error)
        return reply

    def _raise_if_hopeless(self, failure: Failure, why: str, number: int) -> None:
        """Raise if no chat can succeed, after attempt `number`."""
        if failure.kind == "setup":
            raise UserError(f"{self.name} refuses all requests ({why}): {self.connection.cure(failure.status)}")
        if failure.kind == "no logprobs" and not self._gave_logprobs:
            raise UserError(
                f"{self.name} gives no log-probabilities, which are needed here: set the reader's marginal to fast, or "
                "use an endpoint that gives them, such as vLLM, llama.cpp or OpenAI."
            )
        if failure.kind == "connect" and not self._answered and number + 1 >= _FIRST_CONNECTIONS:
            raise UnavailableError(f"{self.name} cannot be reached ({why}): start the server, or correct base_url.")

    def _priced(self, reply: Reply) -> Reply:
        """The reply with its price, if it has none and prices are known."""
        if reply.usd is not None or None in self.prices:
            return reply
        counts = (reply.prompt_tokens, reply.reply_tokens)
        return replace(reply, usd=sum(n * (usd or 0.0) for n, usd in zip(counts, self.prices, strict=True)) / 1e6)

    def _counted(self, reply: Reply) -> Reply:
        """The reply, added to the totals and to what is known of the endpoint's health."""
        self.totals["calls"] += 1
        self.totals["failures"] += bool(reply.error)
        self.totals["retries"] += reply.retries
        self.totals["prompt_tokens"] += reply.prompt_tokens
        self.totals["reply_tokens"] += reply.reply_tokens
        self.totals["usd"] += reply.usd or 0.0
        if not reply.error:
            self._health.succeeded()
        return reply
