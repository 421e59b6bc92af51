"""A chat endpoint that replies from a file and injects faults, as a process: `python fault_server.py FILE`.

Standard library only. The file says, per last message of a chat, the reply and which faults come before it. GET /counts
says what was requested. The key that requests must carry is in the environment variable FAULT_SERVER_KEY; none is
needed without it.
"""

import json
import os
import sys
import threading
import time
from collections import Counter
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

# Faults that an attempt may succeed after; each costs one retry.
PASSING = (
    "429",
    "429 date",
    "500",
    "503 html",
    "408",
    "409",
    "cut",
    "no response",
    "invalid",
    "half",
    "empty",
    "200 error",
    "broken off",
)
SLOW = ("stall", "drip")  # beyond the deadline of an attempt
LASTING = {  # a response with another message or reason in place of the reply, which no further attempt would change
    "empty stop": {"message": {"content": ""}},
    "empty length": {"message": {"content": None, "reasoning_content": "Paris, for"}, "finish_reason": "length"},
    "thinking": {"message": {"content": "<think>Is it Lyon?"}, "finish_reason": "length"},
    "filtered": {"message": {"content": None}, "finish_reason": "content_filter"},
    "tool": {"message": {"content": None}, "finish_reason": "tool_calls"},
    "refusal": {"message": {"content": None, "refusal": "I cannot help with that."}},
}
ANY = "*"  # in the place of a chat: all chats that are not listed
HANGS_SECONDS = 8.0  # a hung response; the tests' deadlines are shorter
CODES = {"429": 429, "429 second": 429, "429 date": 429, "500": 500, "503 html": 503, "408": 408, "409": 409,
         "400": 400, "413": 413, "403": 403, "quota": 429, "404": 404}  # fmt: skip


class Server(ThreadingHTTPServer):
    """Counts what is requested."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, file: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        plan = json.loads(file.read_text(encoding="utf-8"))
        self.replies: dict[str, dict[str, Any]] = plan["replies"]
        self.faults: dict[str, list[str]] = plan["faults"]
        self.delay_seconds: float = plan.get("delay_seconds", 0.0)
        self.gives_logprobs: bool = plan.get("logprobs", True)
        self.key = os.environ.get("FAULT_SERVER_KEY", "")
        self.lock = threading.Lock()
        self.requests: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.now = self.max_at_once = 0

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gives up a request, or dies, is what these tests are about."""
        if not isinstance(sys.exception() if sys.version_info >= (3, 12) else sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """What was requested so far."""
        counted = self.server
        with counted.lock:
            body = {"requests": counted.requests, "answered": counted.answered, "max_at_once": counted.max_at_once}
        self.whole(200, json.dumps(body))

    def do_POST(self) -> None:
        """A chat completion, or the next fault of its chat."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = body["messages"][-1]["content"]
        with self.server.lock:
            number = self.server.requests[asked]
            self.server.requests[asked] += 1
            self.server.now += 1
            self.server.max_at_once = max(self.server.max_at_once, self.server.now)
        try:
            given = self.headers.get("Authorization", "")
            if self.server.key and given != f"Bearer {self.server.key}":
                words = f"Incorrect API key provided: {given}. You can find your API key at /account."
                return self.whole(401, json.dumps({"error": {"message": words, "code": "invalid_api_key"}}))
            if self.path != "/v1/chat/completions":
                return self.whole(404, '{"detail": "Not Found"}')
            if body["model"] != "tiny":
                return self.whole(
                    404, json.dumps({"error": {"message": f"The model {body['model']!r} does not exist"}})
                )
            time.sleep(self.server.delay_seconds)
            reply = self.server.replies.get(asked) or self.server.replies[ANY]
            faults = self.server.faults.get(asked, self.server.faults.get(ANY, []))
            if faults and faults[-1] == "always":
                faults = faults[:1] * (number + 1)
            if number < len(faults):
                return self.fault(faults[number], body, reply)
            self.reply(body, reply)
            with self.server.lock:
                self.server.answered[asked] += 1
        finally:
            with self.server.lock:
                self.server.now -= 1

    def fault(self, name: str, body: dict, reply: dict) -> None:
        """Fail in one of the ways that endpoints do."""
        if name in CODES:
            headers = {"Retry-After": "0.05"} if name == "429" else {}
            if name == "429 second":
                headers = {"Retry-After": "1"}
            if name == "429 date":
                headers = {"Retry-After": formatdate(time.time() + 1, usegmt=True)}
            error = {"message": f"no luck\nwith {self.headers.get('Authorization')}", "code": None}
            if name == "quota":
                error = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
            text = "<html>\n<h1>Service Unavailable</h1></html>" if name == "503 html" else json.dumps({"error": error})
            return self.whole(CODES[name], text, **headers)
        if name == "stall":
            time.sleep(HANGS_SECONDS)
        elif name == "drip":
            self.begin(200, 10**6)
            for _ in range(int(HANGS_SECONDS / 0.1)):  # a byte now and then, for longer than the client should wait
                self.wfile.write(b" ")
                time.sleep(0.1)
        elif name == "cut":
            text = completion(body, reply).encode()
            self.begin(200, len(text))
            self.wfile.write(text[: len(text) // 2])
        elif name == "invalid":
            return self.whole(200, "{nonsense")
        elif name == "half":
            return self.whole(200, completion(body, reply)[:-40])
        elif name == "empty":
            return self.whole(200, '{"choices": null}')
        elif name == "200 error":
            return self.whole(200, '{"error": {"message": "the model crashed"}}')
        elif name == "broken off":
            return self.whole(200, completion(body, {**reply, "text": reply["text"][:3], "finish": "error"}))
        elif name in LASTING:
            whole = json.loads(completion(body, reply))
            whole["choices"][0] |= LASTING[name]
            return self.whole(200, json.dumps(whole))
        self.close_connection = True  # also "no response"

    def reply(self, body: dict, reply: dict) -> None:
        """The whole reply."""
        if not self.server.gives_logprobs:
            body = {**body, "logprobs": False}
        self.whole(200, completion(body, reply))

    def begin(self, status: int, size: int, kind: str = "application/json", **headers: str) -> None:
        """Status line and headers."""
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(size), **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def whole(self, status: int, text: str, **headers: str) -> None:
        """A response of known length."""
        self.begin(status, len(text.encode()), **{name.replace("_", "-"): value for name, value in headers.items()})
        self.wfile.write(text.encode())


def completion(body: dict, reply: dict) -> str:
    """A chat completion as one JSON object."""
    choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": reply["text"]}, "logprobs": None}
    choice["finish_reason"] = reply["finish"]
    if body.get("logprobs"):
        choice["logprobs"] = {"content": [{"token": "", "logprob": value} for value in reply["logprobs"]]}
    return json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage(reply)}, ensure_ascii=False)


def usage(reply: dict) -> dict[str, int]:
    """Tokens read and written."""
    return {"prompt_tokens": reply["prompt_tokens"], "completion_tokens": len(reply["logprobs"])}


if __name__ == "__main__":
    server = Server(Path(sys.argv[1]))
    print(server.server_port, flush=True)
    server.serve_forever()
