"""Chat endpoints as processes on loopback.

The fault server with exact replies of a tiny causal LM, and `transformers serve`.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from harness.llm.endpoint import ChatEndpoint

ROOT = Path(__file__).parents[2]
KEY = "test-key-4f9a1c77e2d04b6b"  # of the fault server; must be found nowhere on disk
MAX_TOKENS = 8  # of a generated reply
FOREIGN = {  # chats in other languages, and what the model is made to reply
    "日本の首都はどこですか。": "東京は日本の首都です。",
    "ما عاصمة مصر؟": "القاهرة",
    "Где жил Пушкин? 🪶": "Он жил в Москве 🏙 и в Петербурге",
    "भारत की राजधानी?": "नई दिल्ली",
    "Separators?": "a\u2028b\u2029c\x85d\x1ce\nf\r\n\ng",  # at which lines end in Python, not in server-sent events
}
LONG = "Say amber two thousand times."


def exact_replies(
    folder: Path, chats: Sequence[str], given: Mapping[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    """What a causal LM replies to chats of one user message, with the log-probability of every token.

    Args:
        folder: The model and its tokenizer, with a chat template.
        chats: The messages; greedy replies of at most MAX_TOKENS.
        given: Further messages with the replies that the model is made to give, followed by its end token.

    Returns:
        By message: text, finish, tokens of the prompt, and the log-probabilities (nats) of the reply's tokens, its end
        included.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    end = tokenizer.eos_token_id

    def prompt(chat: str) -> str:
        return tokenizer.apply_chat_template(
            [{"role": "user", "content": chat}], tokenize=False, add_generation_prompt=True
        )

    replies = {}
    for start in range(0, len(chats), 250):
        some = chats[start : start + 250]
        inputs = tokenizer([prompt(chat) for chat in some], return_tensors="pt", padding=True)
        with torch.inference_mode():
            out = network.generate(
                **inputs, max_new_tokens=MAX_TOKENS, do_sample=False, output_logits=True, return_dict_in_generate=True
            )
        logp_BTV = torch.stack(out.logits, 1).double().log_softmax(-1)
        ids_BT = out.sequences[:, inputs.input_ids.shape[1] :]
        for chat, ids, logp_TV, mask in zip(some, ids_BT.tolist(), logp_BTV, inputs.attention_mask, strict=True):
            stops = [place for place, token in enumerate(ids) if token in network.generation_config.eos_token_id]
            ids = ids[: stops[0] + 1] if stops else ids
            replies[chat] = {
                "text": tokenizer.decode(ids, skip_special_tokens=True), "finish": "stop" if stops else "length",
                "prompt_tokens": int(mask.sum()), "logprobs": [logp_TV[t, token].item() for t, token in enumerate(ids)],
            }  # fmt: skip
    for chat, text in (given or {}).items():
        asked = tokenizer(prompt(chat))["input_ids"]
        ids = [*tokenizer(text)["input_ids"], end]
        values = token_logprobs(network, asked, ids)
        replies[chat] = {"text": text, "finish": "stop", "prompt_tokens": len(asked), "logprobs": values}
    return replies


def token_logprobs(network: Any, prompt: Sequence[int], reply: Sequence[int]) -> list[float]:
    """Log-probability of each token of a reply."""
    with torch.inference_mode():
        logits_TV = network(torch.tensor([[*prompt, *reply]])).logits[0, len(prompt) - 1 : -1]
        logp_TV = logits_TV.double().log_softmax(-1)
    return logp_TV[torch.arange(len(reply)), torch.tensor(reply)].tolist()


@dataclass(frozen=True)
class FaultServer:
    """A running fault server."""

    base_url: str
    process: subprocess.Popen

    def counts(self) -> dict[str, Any]:
        """Requests and answers per chat, and the largest number of requests at once."""
        with urllib.request.urlopen(f"{self.base_url}/counts", timeout=30) as response:
            return json.load(response)

    def client(self, folder: Path | None, **options: Any) -> ChatEndpoint:
        """A client whose key is in TEST_LLM_KEY."""
        return ChatEndpoint(
            "tiny", **{"base_url": self.base_url, "key_variable": "TEST_LLM_KEY", "cache": folder, **options}
        )


@contextmanager
def fault_server(file: Path, replies: Mapping[str, Any], key: str = KEY, **plan: Any) -> Iterator[FaultServer]:
    """Run a fault server while the `with` block runs.

    Args:
        file: For what the server is told.
        replies: By chat, as `exact_replies` returns.
        key: That requests must carry; none if empty.
        plan: Optionally `faults` by chat, `delay_seconds` before each response, `logprobs` False.
    """
    file.write_text(json.dumps({"faults": {}, **plan, "replies": dict(replies)}), encoding="utf-8")
    command = [sys.executable, str(ROOT / "tests/helpers/fault_server.py"), str(file)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "FAULT_SERVER_KEY": key}
    ) as process:
        assert process.stdout is not None
        try:
            yield FaultServer(f"http://127.0.0.1:{int(process.stdout.readline())}/v1", process)
        finally:
            process.kill()


@contextmanager
def transformers_serve(model: Path, log: Path, seconds: float = 120.0) -> Iterator[str]:
    """Run `transformers serve` with one model while the `with` block runs; yields its base URL.

    Args:
        model: Folder of the model, which is also its name.
        log: File for its output.
        seconds: How long it may take to start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("transformers")), "serve", str(model), "--host", "127.0.0.1",
               "--port", str(port), "--device", "cpu"]  # fmt: skip
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            deadline = time.monotonic() + seconds
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                    break
                except (urllib.error.URLError, OSError):
                    assert process.poll() is None, log.read_text()
                    assert time.monotonic() < deadline, log.read_text()
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def files_with(text: str, folder: Path) -> list[Path]:
    """The files below a folder, whatever their kind, that hold a text."""
    return [file for file in folder.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]
