"""A folder with indexes, serving folders of tiny untrained models and configs, for the memory plan."""

from pathlib import Path

import torch
import yaml

from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.bm25 import build_bm25
from harness.retrievers.dense import build_dense
from models.drrag.triple_classifier import KIND, TripleClassifier, text_format_of
from models.rerag.model import ReRagModel
from models.serving_manifest import write_manifest
from tests.helpers.rerag_parts import estimator, generator
from tests.helpers.retrieval_world import corpus, write_encoder

PASSAGES = corpus(300, longest=12)
DENSE = {"class_path": "harness.retrievers.dense.DenseRetriever", "init_args": {"index": "dense"}}
BM25 = {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": "bm25"}}
FUSED = {"class_path": "harness.retrievers.fusion.FusedRetriever", "init_args": {"retrievers": [DENSE, BM25]}}
STRATEGIES = {
    "drrag": ("harness.strategies.drrag.DrRag",
        {"retriever": FUSED, "serving": "drrag", "selection": {"method": "ranked"}}),
    "dense": ("harness.strategies.drrag.DrRag",
        {"retriever": DENSE, "serving": "drrag", "selection": {"method": "ranked"}}),
    "rerag": ("harness.strategies.rerag.ReRag", {"retriever": BM25, "serving": "rerag"}),
    "bm25": ("harness.strategies.retrieve_read.RetrieveRead", {"retriever": BM25}),
}  # fmt: skip


def save_classifier(folder: Path, network: TripleClassifier, attention: str = "auto", most_documents: int = 2) -> Path:
    """A serving folder of DR-RAG's classifier, of pairs or with more documents of chains."""
    folder.mkdir()
    network.save(folder)
    facts = {"most_documents": most_documents} if most_documents > 2 else {}
    write_manifest(
        folder, KIND, text_format_of(most_documents), network.encode.max_tokens,
        threshold=0.5, attention=attention, **facts,
    )  # fmt: skip
    return folder


def save_model(folder: Path, checkpoints: dict[str, Path], family: str) -> Path:
    """A serving folder of RE-RAG with an estimator of the family."""
    folder.mkdir()
    ReRagModel(estimator(checkpoints, family), generator(checkpoints), max_answer_tokens=6).save(folder)
    return folder


def write_world(folder: Path, checkpoints: dict[str, Path]) -> Path:
    """Everything that the configs `drrag.yaml`, `dense.yaml`, `rerag.yaml` and `bm25.yaml` name."""
    torch.manual_seed(0)
    encoder = write_encoder(folder / "encoder")
    build_dense(PASSAGES, folder / "dense", SentenceEncoder(encoder, "cpu"))
    build_bm25(PASSAGES, folder / "bm25")
    save_classifier(folder / "drrag", TripleClassifier.build(str(checkpoints["bert"]), 64))
    save_model(folder / "rerag", checkpoints, "bert")
    for name, (path, arguments) in STRATEGIES.items():
        config = {"strategy": {"class_path": path, "init_args": arguments}}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(config))
    return folder
