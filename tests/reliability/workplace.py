"""The folder in which files are damaged: a tiny world, models, configurations, and an endpoint of a language model."""

import contextlib
import json
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from datamodules.world.world import WorldConfig
from datamodules.world.writing import write_world
from tests.conftest import hotpot_rows
from tests.exactness import systems
from tests.exactness.tiny_models import common_words, save_bert, save_qwen, save_t5
from tests.exactness.workplace import rows

LARGE_BYTES = 33 << 20  # of training files whose rows are kept


def write_files(address: str) -> None:
    """Write what the commands of all artefacts start from, into the present folder.

    Args:
        address: Of an `Endpoint`.
    """
    sizes = {"questions": 60, "singles": 60, "open_singles": 20, "web_questions": 8, "manuals": 3, "rephrased": 60}
    write_world(WorldConfig(seed=3, **sizes), Path("world"))
    words = common_words((row["contents"] for row in rows(Path("world/corpus.jsonl"))), 300)
    for folder, save in {
        "models/bert": save_bert, "models/t5": save_t5, "models/qwen": save_qwen, "encoder": save_bert
    }.items():  # fmt: skip
        Path(folder).mkdir(parents=True)
        save(Path(folder), words)
    systems.write_serving(None)
    Path("questions.json").write_text(json.dumps(json.loads(Path("world/test.json").read_text())[:6]))
    Path("many.json").write_text(json.dumps(hotpot_rows(600)))
    stretch = " ".join(words) * 300
    write_lines("large.jsonl", [{"id": f"p{n}", "title": words[n], "text": stretch} for n in range(34)])
    write_lines("segments.jsonl", [with_segment(row) for row in rows(Path("world/manual_questions.jsonl"))])
    for name, blank in {"train": 0, "stored": LARGE_BYTES}.items():
        for layout, file in {"hotpotqa": "train.json", "fid": "fid_train.json"}.items():
            some = json.loads(Path("world", file).read_text())[:12]
            write_lines(f"{name}_{layout}.jsonl", some, " " * blank)
    for name, config in configs(address).items():
        Path(f"{name}.json").write_text(json.dumps(config))


def write_lines(file: str, values: list[dict[str, Any]], blanks: str = "") -> None:
    """JSON Lines, the first one blank if there are blanks."""
    text = "".join(json.dumps(value) + "\n" for value in values)
    Path(file).write_text(f"{blanks}\n{text}" if blanks else text)


def with_segment(row: dict[str, Any]) -> dict[str, Any]:
    """A question about a manual with the segment that holds its answer."""
    gold = {"document": row["metadata"]["manual"], "evidence": row["golden_answers"][0], "kind": "text"}
    return {**row, "metadata": {**row["metadata"], "gold_segments": [gold]}}


def part(class_path: str, **options: Any) -> dict[str, Any]:
    """A class and its options, as configurations name them."""
    return {"class_path": class_path, "init_args": options}


def configs(address: str) -> dict[str, dict[str, Any]]:
    """The configurations by name."""
    bm25 = part("harness.retrievers.bm25.Bm25Retriever", index="bm25")
    dense = part("harness.retrievers.dense.DenseRetriever", index="dense", precision="fp32")
    manuals = part("harness.retrievers.dense.DenseRetriever", index="manuals-dense", precision="fp32")
    reader = part("harness.readers.t5.ContextReader", serving="serving/rerag", precision="fp32")
    web = part("harness.context_sources.web.WebContext", retriever=bm25, passages=2)
    facts = part("harness.context_sources.facts.IndexedFacts", retriever=dense, passages=2)
    words = part("harness.retrievers.bm25.Bm25Retriever", index="manuals")
    routes = part("harness.retrievers.multi_route.MultiRouteRetriever", dense=manuals, bm25=words)
    replies = {"model": "m", "base_url": address, "key_variable": None, "cache": "cache/llm", "max_retries": 0}
    triples = {"train": source("hotpotqa", "stored_hotpotqa.jsonl"), "validation_fraction": 0.25,
               "tokens_per_step": 1500, "cache": "cache/triples"}  # fmt: skip
    drrag = {"pretrained": "models/bert", "max_tokens": 128, "optimizer": {"learning_rate": 2e-4}}
    rerag = {"estimator": "models/bert", "generator": "models/t5", "max_tokens": 96, "text": {"max_answer_tokens": 4}}
    frozen = rerag | {"optimizer": {"generator_learning_rate": 0.0, "learning_rate": 2e-4}}
    causal = {"pretrained": "models/qwen", "max_tokens": 160, "max_rewrite_tokens": 20, "lora": {"rank": 4}}
    constant = {"schedule": "constant"}  # so that the end of training changes no step
    whole = causal | {"pretrained": "models/t5", "lora": {"rank": None}, "optimizer": constant}
    written = {"train": source("rewrites", "world/rewrites_train.jsonl", limit=24), "rewrites_per_step": 8,
               "validation": source("rewrites", "world/rewrites_train.jsonl", limit=8)}  # fmt: skip
    return {
        "hiqa": {"system": part("harness.systems.hiqa.HiQa", retriever=routes)},
        "msrag": {"system": part("harness.systems.msrag.Msrag", reader=reader, web=web, knowledge=facts)},
        "endpoint": part("harness.llm.endpoint.ChatEndpoint", **replies),
        "merged": part("harness.llm.local.CausalLm", model="exported/merged/rewriter", device="cpu"),
        "drrag_stored": training("drrag.DrRagTrainer", drrag, "drrag.DrRagData", triples, "val/auc"),
        "rerag_stored": training("rerag.ReRagTrainer", rerag, "rerag.ReRagData", contexts("stored"), "val/em"),
        "rerag_frozen": training("rerag.ReRagTrainer", frozen, "rerag.ReRagData", contexts("train"), "val/recall_1"),
        "resumed": training("dmqr.RewriterTrainer", whole, "dmqr.RewriteData", written, "val/loss_nats", mode="min"),
        "causal": training("dmqr.RewriterTrainer", causal, "dmqr.RewriteData", written, "val/loss_nats", mode="min"),
    }


def source(layout: str, path: str, **more: int) -> list[dict[str, Any]]:
    """Training data."""
    return [{"layout": layout, "path": path, **more}]


def contexts(file: str) -> dict[str, Any]:
    """The data of estimator and generator."""
    return {"train": source("fid", f"{file}_fid.jsonl"), "validation_fraction": 0.25, "contexts": 3,
            "questions_per_step": 6, "cache": "cache/contexts" if file == "stored" else "cache/numbers"}  # fmt: skip


def training(
    trainer: str, model: dict[str, Any], module: str, data: dict[str, Any], monitor: str, mode: str = "max"
) -> dict[str, Any]:
    """The configuration of a tiny run."""
    quiet = {"accelerator": "cpu", "max_epochs": 2, "num_sanity_val_steps": 0, "enable_progress_bar": False}
    return {
        "seed_everything": 0, "model": part(f"trainers.{trainer}", **model),
        "data": part(f"datamodules.{module}", **data), "trainer": quiet,
        "checkpoint": {"monitor": monitor, "mode": mode}, "early_stopping": {"mode": mode, "patience": None},
    }  # fmt: skip


class Endpoint(BaseHTTPRequestHandler):
    """A chat endpoint whose reply is a digest of the messages."""

    def do_POST(self) -> None:
        """Reply."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = sha256(json.dumps(asked["messages"]).encode()).hexdigest()[:8]
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        body = json.dumps({"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice],
                           "usage": usage}).encode()  # fmt: skip
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def endpoint() -> Iterator[str]:
    """The address of a running endpoint."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
