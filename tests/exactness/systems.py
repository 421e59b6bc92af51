"""Answers of the five systems to fifty questions of the world: passages, their order and scores, and texts.

The models are not trained: their weights tell texts apart, and differ by nothing from run to run.
"""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

import infer
from harness.answer_selection.answer_encoder import AnswerEncoder
from harness.answer_selection.features import FEATURES
from models.calibration import Calibration
from models.cross_encoder import RelevanceEstimator
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import Pool
from models.dmqr.word_selector import KIND as WORDS_KIND
from models.dmqr.word_selector import WordSelector
from models.dmqr.word_tokenizer import TEXT_FORMAT as WORDS_FORMAT
from models.drrag.triple_classifier import KIND as PAIRS_KIND
from models.drrag.triple_classifier import TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT as PAIRS_FORMAT
from models.msrag.answer_model import ANSWER_MODEL, AnswerModel
from models.rerag.generator import Generator
from models.rerag.model import ReRagModel
from models.serving_manifest import write_manifest
from tests.exactness.tiny_models import fill
from tests.exactness.values import digest
from tests.exactness.workplace import QUESTIONS, STRATEGIES

ENCODER_GAIN, T5_GAIN = 3.0, 1.5  # of the weights, so that scores and texts differ by far more than rounding
NOISES = (1, 2, 3)  # seeds of the weights' changes that no decision may depend on


def _part(class_path: str, **options: Any) -> dict[str, Any]:
    return {"class_path": class_path, "init_args": options}


def _bm25(index: str) -> dict[str, Any]:
    return _part("harness.retrievers.bm25.Bm25Retriever", index=f"indexes/{index}")


def _dense(index: str) -> dict[str, Any]:
    return _part("harness.retrievers.dense.DenseRetriever", index=f"indexes/{index}", precision="fp32")


def _fused(*retrievers: dict[str, Any]) -> dict[str, Any]:
    return _part("harness.retrievers.fusion.FusedRetriever", retrievers=list(retrievers), method="weighted_score")


BOTH = _fused(_dense("dense"), _bm25("bm25"))
LINKS = _part("harness.retrievers.links.LinkRetriever", index="indexes/links")


def _drrag(retriever: dict[str, Any] = BOTH, second: dict[str, Any] | None = None, **selection: Any) -> dict[str, Any]:
    return _part(
        "harness.systems.drrag.DrRag", retriever=retriever, serving="serving/drrag", precision="fp32",
        second_retriever=second, selection={"k": 4, **selection},
    )  # fmt: skip


def _rerag(**options: Any) -> dict[str, Any]:
    return _part(
        "harness.systems.rerag.ReRag", **{"serving": "serving/rerag", "precision": "fp32", "contexts": 4, **options}
    )


def _dmqr(rewriter: dict[str, Any] | None, strategies: tuple[str, ...] = STRATEGIES, **options: Any) -> dict[str, Any]:
    scorer = {} if options.get("fusion") == "rrf" else {"serving": "serving/reranker", "precision": "fp32"}
    return _part(
        "harness.systems.dmqr.Dmqr", retriever=_bm25("bm25"), rewriter=rewriter, strategies=list(strategies),
        **scorer, **options,
    )  # fmt: skip


def _msrag(selector: dict[str, Any] | None) -> dict[str, Any]:
    return _part(
        "harness.systems.msrag.Msrag",
        reader=_part("harness.readers.t5.ContextReader", serving="serving/rerag", precision="fp32"),
        selector=selector,
        web=_part("harness.context_sources.web.WebContext", retriever=_bm25("msrag_web"), passages=2),
        knowledge=_part("harness.context_sources.facts.IndexedFacts", retriever=_bm25("msrag_knowledge"), passages=2),
    )


def _hiqa(**options: Any) -> dict[str, Any]:
    routes = _part(
        "harness.retrievers.multi_route.MultiRouteRetriever",
        dense=_dense("manuals-dense"), bm25=_bm25("manuals-bm25"),
        keywords=_part("harness.retrievers.keywords.KeywordRetriever", index="indexes/manuals-keywords"),
    )  # fmt: skip
    return _part("harness.systems.hiqa.HiQa", retriever=routes, **options)


FILE = _part("harness.rewriters.file.FileRewriter", rewrites="world/rewrites_test.jsonl")
GENERATIVE = _part("harness.rewriters.trained.TrainedRewriter", serving="serving/rewriter", precision="fp32")
EXTRACTIVE = _part("harness.rewriters.extractive.ExtractiveRewriter", serving="serving/extractive", precision="fp32")
MULTI_HOP, SINGLE, NOISY = (
    ("hotpotqa", "world/test.json"),
    ("fid", "world/fid_test.json"),
    ("hotpotqa", "world/rephrased_test.json"),
)
SOURCES, MANUALS = ("flashrag", "world/msrag_test.jsonl"), ("flashrag", "world/manual_questions.jsonl")

SYSTEMS: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "drrag_sm": (_drrag(method="sm"), MULTI_HOP),
    "drrag_qdc": (_drrag(method="qdc", fill_budget=True), MULTI_HOP),
    "drrag_cis": (_drrag(method="cis"), MULTI_HOP),
    "drrag_cfs": (_drrag(method="cfs", depth=6), MULTI_HOP),
    "drrag_cfs_all": (_drrag(method="cfs", cfs_rule="all", fill_budget=True, symmetric=True, second_stage="ranking"),
    MULTI_HOP),
    "drrag_ranked": (_drrag(method="ranked", candidate_pool="both", anchors=2, anchor_depth=4, prior_weight=3.0),
    MULTI_HOP),
    "drrag_ranked_links": (
        _drrag(second=_fused(BOTH, LINKS), method="ranked", candidate_pool="both", anchor_depth=4, score_weight=2.0),
        MULTI_HOP,
    ),
    "rerag_thorough": (_rerag(marginal="thorough"), SINGLE),
    "rerag_fast": (_rerag(marginal="fast", retriever=_bm25("bm25"), candidates=12), SINGLE),
    "rerag_refuse": (_rerag(serving="serving/reranker", abstain=True, threshold=0.6), SINGLE),
    "dmqr_rrf": (_dmqr(FILE, fusion="rrf"), NOISY),
    "dmqr_rerank": (_dmqr(FILE, per_query=6), NOISY),
    "dmqr_generative": (
        _dmqr(GENERATIVE, ("gqr", "kwr"), fusion="rrf"), NOISY,
    ),
    "dmqr_extractive": (_dmqr(EXTRACTIVE, ("kwr", "par", "hop"), judged_by="kwr"), NOISY),
    "msrag_relevance": (_msrag(None), SOURCES),
    "msrag_learned": (_msrag(_part("harness.answer_selection.learned.LearnedSelector", file="serving/selector.json")),
    SOURCES),
    "hiqa_routes": (_hiqa(k=6, max_words=60), MANUALS),
}  # fmt: skip


def write_indexes() -> None:
    """Index the world's corpora and manuals; needs `encoder/`."""
    corpora = {
        "bm25": "world/corpus.jsonl", "links": "world/corpus.jsonl", "dense": "world/corpus.jsonl",
        "msrag_web": "world/msrag_web.jsonl", "msrag_knowledge": "world/msrag_knowledge.jsonl",
    }  # fmt: skip
    dense = ["--kind", "dense", "--dense.encoder", "encoder", "--dense.precision", "fp32"]
    for name, corpus in corpora.items():
        kind = dense if name == "dense" else ["--kind", name if name == "links" else "bm25"]
        infer.main(["index", "--corpus", corpus, *kind, "--out", f"indexes/{name}"])
    for name in ("dense", "bm25", "keywords"):
        kind = dense if name == "dense" else ["--kind", name]
        infer.main(
            ["index", "--documents", "world/manuals", *kind, "--out", f"indexes/manuals-{name}",
             "--reading.document_cache", "documents", "--workers", "1"]
        )  # fmt: skip


def write_serving(noise: int | None) -> None:
    """Write the serving folders of all models, from `models/`.

    Args:
        noise: Of `tests.exactness.tiny_models.fill`.
    """
    folder = Path("serving")
    pairs = TripleClassifier.build("models/bert", 160)
    words = WordSelector.build("models/bert", 160)
    rewriter = RewriterModel.build("models/t5", 192, 12, Pool.load(None).strategies)
    t5_estimator, generator = RelevanceEstimator.build("models/t5", 128), Generator.build("models/t5", 128)
    rerag = {
        "rerag": ReRagModel(t5_estimator, generator, Calibration(), 0.5, 5),
        "reranker": ReRagModel(RelevanceEstimator.build("models/bert", 128), None, Calibration(), 0.5, 5),
    }
    parts = [part for model in rerag.values() for part in (model.estimator, model.generator) if part is not None]
    for part in (pairs, words, rewriter, *parts):
        fill(part, T5_GAIN if any("shared" in name for name, _ in part.named_parameters()) else ENCODER_GAIN, noise)
    for network in (rewriter.lm.network, *(part.network for part in parts if isinstance(part, Generator))):
        network.get_input_embeddings().weight.data[network.config.eos_token_id] = 0  # or most texts are empty
    for name, facts in {
        "drrag": (PAIRS_KIND, PAIRS_FORMAT, {"threshold": 0.5, "attention": "auto"}),
        "extractive": (WORDS_KIND, WORDS_FORMAT, {}),
    }.items():
        (folder / name).mkdir(parents=True)
        {"drrag": pairs, "extractive": words}[name].save(folder / name)
        write_manifest(folder / name, facts[0], facts[1], 160, **facts[2])
    (folder / "rewriter").mkdir()
    rewriter.save(folder / "rewriter", ["gqr", "kwr"], {})
    for name, model in rerag.items():
        (folder / name).mkdir()
        model.save(folder / name)
    weights = np.random.default_rng(0).standard_normal(len(FEATURES))
    zeros, ones = (0.0,) * len(FEATURES), (1.0,) * len(FEATURES)
    recipe = AnswerEncoder("encoder", "cpu").recipe
    model = AnswerModel(FEATURES, zeros, ones, tuple(weights.tolist()), 0.1, 1.0, "encoder", recipe)
    ANSWER_MODEL.write(folder / "selector.json", model.content)


def answers(name: str) -> dict[str, Any]:
    """Question -> text of the answer, digest of the queries searched, ids and scores of the evidence in order."""
    system, (layout, questions) = SYSTEMS[name]
    config = Path(f"{name}.json")
    config.write_text(json.dumps({"system": system}))
    asked = ["--questions", questions, "--layout", layout, "--limit", str(QUESTIONS), "--json", "true"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        infer.main(["ask", "--config", str(config), *asked])
    found = [json.loads(line) for line in printed.getvalue().splitlines() if line.startswith("{")]
    return {
        row["question_id"]: [
            row["text"],
            digest([each["query"] for each in row["notes"].get("queries", ())]),
            [hit["passage"]["id"] for hit in row["evidence"]],
            [hit["score"] for hit in row["evidence"]],
        ]
        for row in found
    }
