"""Requests a second of `infer.py serve` under many clients, beside one call of the model for each request.

    python -m benchmarks.serving --serving checkpoints/own-reranker/serving [--clients 32] [--pairs 1] [--tokens 64 160]

Both servers run at the same time and are asked in turns, so that a busy machine slows both; each client sends its next
request when the last one is answered. Printed are the median requests a second of the rounds, and seconds at the 50th
and 99th percentile. On a CPU both use torch's threads as the environment says.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread

WORDS = ["river", "market", "bridge", "town", "stone", "north", "road", "music"]  # one token each of MiniLM
ALONE = ("--limits.batch_tokens", "1", "--limits.wait_ms", "0")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--serving", type=Path, required=True, help="a reranker that training exported")
    options.add_argument("--clients", type=int, default=32)
    options.add_argument("--pairs", type=int, default=1, help="passages of a request")
    options.add_argument("--tokens", type=int, nargs="+", default=[64, 160], help="of a pair")
    options.add_argument("--requests", type=int, default=256, help="of a round")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--precision", choices=["auto", "fp32", "bf16"], default="fp32")
    return options


@contextmanager
def running(serving: Path, precision: str, *limits: str) -> Iterator[int]:
    """The port of a server."""
    typed = ["infer.py", "serve", "--serving", str(serving), "--precision", precision, "--port", "0", *limits]
    environment = os.environ | {"LIGHTNING_RAG_KEY": ""}
    process = subprocess.Popen([sys.executable, *typed], stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"Listening on \S+:(\d+)", line):
                Thread(target=process.stderr.read, daemon=True).start()
                yield int(found[1])
                return
        raise SystemExit("the server did not start")
    finally:
        process.terminate()
        process.wait()


def asked(port: int, bodies: list[str], clients: int) -> tuple[float, list[float]]:
    """Requests a second, and the seconds of each."""
    seconds: list[float] = []

    def client(own: list[str]) -> None:
        connection = HTTPConnection("127.0.0.1", port)
        for body in own:
            began = time.perf_counter()
            connection.request("POST", "/rerank", body, {"content-type": "application/json"})
            response = connection.getresponse()
            response.read()
            assert response.status == 200, response.status
            seconds.append(time.perf_counter() - began)
        connection.close()

    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        for _ in pool.map(client, [bodies[place::clients] for place in range(clients)]):
            pass
    return len(bodies) / (time.perf_counter() - began), seconds


def main() -> None:
    """Run the benchmark."""
    given = parser().parse_args()
    chance = random.Random(0)
    with running(given.serving, given.precision) as batched, running(given.serving, given.precision, *ALONE) as alone:
        for tokens in given.tokens:
            rates: dict[str, list[float]] = {"batches": [], "one call each": []}
            taken: dict[str, list[float]] = {"batches": [], "one call each": []}
            for turn in range(given.rounds + 1):  # the first one warms up
                bodies = [
                    json.dumps(
                        {
                            "query": " ".join(chance.choices(WORDS, k=10)),
                            "texts": [" ".join(chance.choices(WORDS, k=tokens - 13)) for _ in range(given.pairs)],
                        }
                    )
                    for _ in range(given.requests)
                ]
                for name, port in (("batches", batched), ("one call each", alone)):
                    rate, seconds = asked(port, bodies, given.clients)
                    if turn:
                        rates[name].append(rate)
                        taken[name] += seconds
            print(f"{given.clients} clients, {given.pairs} pairs of {tokens} tokens, {given.precision}:")
            for name, each in rates.items():
                ranked = sorted(taken[name])
                half, last = ranked[len(ranked) // 2], ranked[int(0.99 * len(ranked))]
                print(f"  {name:14} {statistics.median(each):7.1f} requests/s, p50 {half:.3f} s, p99 {last:.3f} s")
            ratio = [one / other for one, other in zip(*rates.values(), strict=True)]
            print(f"  {statistics.median(ratio):.2f} times as many (rounds: {min(ratio):.2f} to {max(ratio):.2f})")


if __name__ == "__main__":
    main()
