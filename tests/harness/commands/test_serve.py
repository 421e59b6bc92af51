"""`infer.py serve` and `infer.py mcp` as processes: many clients, some that leave or are slow, and a stop."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from harness.retrievers.bm25 import build_bm25
from tests.helpers.forked import ROOT, SAME_THREADS
from tests.helpers.rerag_world import corpus, write_serving

pytestmark = pytest.mark.whole_run
TYPED = [
    "--system", "harness.systems.rerag.ReRag", "--system.retriever", "harness.retrievers.bm25.Bm25Retriever",
    "--system.retriever.index", "bm25", "--system.serving", "serving", "--system.candidates", "4",
    "--system.contexts", "2", "--system.device", "cpu",
]  # fmt: skip
HEADERS = {"content-type": "application/json"}
ENVIRONMENT = {**os.environ, **SAME_THREADS, "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    folder = tmp_path_factory.mktemp("serving")
    build_bm25(corpus(), folder / "bm25")
    write_serving(checkpoints["t5"], folder / "serving")
    return folder


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A running server, and its port; the last test that asks for it ends it."""
    limits = ["--limits.requests", "24", "--limits.seconds", "20"]
    typed = [sys.executable, str(ROOT / "infer.py"), "serve", *TYPED, "--port", "0", *limits]
    process = subprocess.Popen(typed, cwd=place, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert process.stderr is not None
    said = ""
    while not (found := re.search(r"Listening on http://127\.0\.0\.1:(\d+)", said)):
        line = process.stderr.readline()
        assert line, said
        said += line
    threading.Thread(target=process.stderr.read, daemon=True).start()  # a full pipe would stop it
    try:
        yield process, int(found[1])
    finally:
        process.kill()


def ask(port: int, number: int) -> int | str:
    """The status of a request's answer, which is its own; `gone` if the connection was not accepted or was closed."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/ask", json.dumps({"question": f"where was name{number % 12} born"}), HEADERS)
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (OSError, HTTPException):
        return "gone"
    finally:
        connection.close()
    if response.status == 200:
        assert answer["question"] == f"where was name{number % 12} born"
    return response.status


def resident_mib(process: subprocess.Popen[str]) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="needs /proc: the memory of a process")
def test_overload_clients_that_leave_and_slow_ones_harm_no_other(server: tuple[subprocess.Popen[str], int]) -> None:
    process, port = server

    def leave(number: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            body = json.dumps({"question": f"where was name{number % 12} born"})
            fields = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            head = f"POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}"
            connection.sendall((head + body)[: len(head) + number % 2 * len(body)].encode())  # half send no body

    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
    for connection in slow:
        connection.sendall(b"POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
    silent = socket.create_connection(("127.0.0.1", port))
    silent.sendall(b"GET /health HTTP/1.1\r\nHo")  # its head never ends
    statuses: Counter[int | str] = Counter()
    before = 0.0
    count = int(os.environ.get("SERVE_REQUESTS", "600"))
    with ThreadPoolExecutor(48) as pool:
        for _ in range(3):
            for number in range(count // 12):
                pool.submit(leave, number)
            statuses.update(pool.map(lambda number: ask(port, number), range(count // 3)))
            before = before or resident_mib(process)
    assert {*statuses} == {200, 429}, statuses
    assert statuses[200] > 24
    assert resident_mib(process) < before + 100
    for connection in slow:
        assert b"408" in connection.recv(100)
        connection.close()
    assert silent.recv(100) == b""
    assert ask(port, 0) == 200  # nothing of theirs is left in the queue


def test_sigterm_in_the_middle_answers_what_was_accepted(server: tuple[subprocess.Popen[str], int]) -> None:
    process, port = server
    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(ask, port, number) for number in range(400)]
        while sum(each.done() for each in asked) < 40:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        statuses = [each.result() for each in asked]
    assert process.wait(60) == 0
    first_gone = statuses.index("gone")
    assert {*statuses[: first_gone - 20]} == {200}
    assert {*statuses} == {200, "gone"}


def test_an_assistant_starts_the_tools_by_itself(place: Path) -> None:
    typed = [str(ROOT / "infer.py"), "mcp", *TYPED]

    async def asked() -> None:
        started = StdioServerParameters(command=sys.executable, args=typed, cwd=place, env=ENVIRONMENT)
        async with Client(started) as tools:
            assert {tool.name for tool in (await tools.list_tools()).tools} == {"search", "ask"}
            told = await tools.call_tool("ask", {"question": "where was name1 born"})
            assert told.structured_content["evidence"]  # type: ignore[index]

    asyncio.run(asked())
