"""Every number that a configuration can set is checked, by the constructor and before anything is loaded."""

import importlib
import inspect
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import UserError
from datamodules.dmqr import RewriteData, RewriteSource
from datamodules.dmqr_choice import ChoiceData
from datamodules.dmqr_preferences import PreferenceData
from datamodules.dmqr_words import WordData
from datamodules.drrag import DrRagData
from datamodules.examples.splits import QuestionSource, Source
from datamodules.examples.triples import Sampling
from datamodules.rerag import ReRagData
from datamodules.t5 import SpanCorruptionData
from datamodules.world.world import WorldConfig
from harness.choice.estimator import EstimatedRelevance
from harness.documents.llm.formatter import LlmFormatter
from harness.preferences.model_rewards import AnswerProbability, AnswerQuality
from harness.preferences.rewards import GoldRank, GoldRecall, HasAnswer
from harness.readers.llm import LlmReader
from harness.readers.t5 import ContextReader, PackedReader
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.dense import DenseRetriever
from harness.retrievers.fusion import FusedRetriever
from harness.retrievers.links import LinkRetriever
from harness.retrievers.multi_query import MultiQueryRetriever
from harness.retrievers.multi_route import MultiRouteRetriever
from harness.retrievers.qdrant import QdrantRetriever
from harness.retrievers.rerank import RerankedRetriever
from harness.retrievers.rm3 import Rm3Retriever
from harness.retrievers.web import WebRetriever
from harness.rewriters.adaptive import AdaptiveRewriter
from harness.rewriters.extractive import ExtractiveRewriter
from harness.rewriters.llm import LlmRewriter
from harness.rewriters.prompted import PromptRewriter
from harness.selection.options import SelectionOptions
from harness.sources.facts import IndexedFacts
from harness.sources.generated import GeneratedContext
from harness.sources.web import WebContext
from harness.strategies.dmqr import Dmqr
from harness.strategies.drrag import DrRag
from harness.strategies.hiqa import HiQa
from harness.strategies.rerag import ReRag
from harness.strategies.retrieve_read import RetrieveRead
from models.t5.from_scratch import Sizes
from tests.helpers.commands import command, refused
from tests.test_imports import MODULES
from trainers.dmqr import RewriterTrainer
from trainers.dmqr_choice import ChoiceTrainer
from trainers.dmqr_dpo import DpoTrainer
from trainers.dmqr_dpo_loss import DpoLoss
from trainers.dmqr_rewriter_module import RewriterModule
from trainers.dmqr_words import WordSelectorTrainer
from trainers.drrag import DrRagTrainer
from trainers.rerag import ReRagTrainer
from trainers.run.collapse import CollapseGuard
from trainers.t5 import SpanCorruptionTrainer

NOWHERE = Path("no/such/folder")
FILES = [QuestionSource("hotpotqa", "no/such/file.json")]
GIVEN: dict[type, dict[str, object]] = {  # what a constructor needs besides numbers; none of the files exists
    CollapseGuard: {},
    DpoLoss: {},
    DrRagTrainer: {"pretrained": str(NOWHERE)},
    ReRagTrainer: {"estimator": str(NOWHERE), "generator": str(NOWHERE)},
    SpanCorruptionTrainer: {"pretrained": str(NOWHERE)},
    DrRagData: {"train": FILES, "validation": FILES},
    ReRagData: {"train": FILES, "validation": FILES},
    SpanCorruptionData: {"corpora": [*FILES]},
    Source: {"layout": "hotpotqa", "path": "no/such/file.json"},
    QuestionSource: {"layout": "hotpotqa", "path": "no/such/file.json"},
    Sampling: {},
    WorldConfig: {},
    Sizes: {},
    SelectionOptions: {},
    DrRag: {"retriever": None, "serving": NOWHERE},
    ReRag: {"serving": NOWHERE},
    RetrieveRead: {},
    HiQa: {"retriever": None},
    MultiRouteRetriever: {"dense": None, "words": None},
    DenseRetriever: {"index": NOWHERE},
    Bm25Retriever: {"index": NOWHERE},
    QdrantRetriever: {"collection": "none", "url": "http://localhost:6333"},
    FusedRetriever: {"retrievers": [None]},
    LinkRetriever: {"index": NOWHERE},
    RerankedRetriever: {"retriever": None, "serving": NOWHERE},
    PackedReader: {"serving": NOWHERE},
    ContextReader: {"serving": NOWHERE},
    LlmFormatter: {"llm": None},
    LlmReader: {"llm": None},
    RewriterTrainer: {"pretrained": str(NOWHERE)},
    RewriterModule: {"pretrained": str(NOWHERE)},
    DpoTrainer: {"pretrained": str(NOWHERE)},
    PreferenceData: {"train": [Source("rewrite_preferences", "no/such/folder")]},
    RewriteData: {"train": [RewriteSource("rrr", "no/such/train.source")]},
    RewriteSource: {"layout": "rrr", "path": "no/such/train.source"},
    WordSelectorTrainer: {"pretrained": str(NOWHERE)},
    WordData: {"train": [Source("word_labels", "no/such/file.jsonl")]},
    ChoiceTrainer: {"strategies": ["kwr"], "pretrained": str(NOWHERE)},
    ChoiceData: {"train": [Source("rewrite_preferences", "no/such/folder")]},
    ExtractiveRewriter: {"serving": NOWHERE},
    AdaptiveRewriter: {"rewriter": None, "serving": NOWHERE},
    LlmRewriter: {"llm": None},
    PromptRewriter: {"llm": None, "prompt": "hyde"},
    MultiQueryRetriever: {"retriever": None, "serving": NOWHERE},
    Rm3Retriever: {"retriever": None},
    WebRetriever: {"service": "searxng", "base_url": "http://localhost:8888"},
    Dmqr: {"retriever": None, "serving": NOWHERE},
    WebContext: {"retriever": None},
    GeneratedContext: {"llm": None},
    IndexedFacts: {"retriever": None},
    EstimatedRelevance: {"serving": NOWHERE},
    GoldRank: {},
    GoldRecall: {},
    HasAnswer: {},
    AnswerQuality: {"reader": None},
    AnswerProbability: {"serving": NOWHERE},
}
ANY_NUMBER = {"seed", "sampling_seed"}
SHARES = {  # 7 is refused
    "validation_fraction", "warmup_fraction", "dropout", "noise_share", "substitution", "word_swaps", "mixed_share",
    "mined_share", "threshold", "unhelpful_share", "stay_probability", "join_probability", "core_share", "kept_gain",
    "most_unchanged_share", "most_empty_share",
}  # fmt: skip
BUILDERS = (
    "trainers",
    "datamodules",
    "harness.strategies",
    "harness.retrievers",
    "harness.readers",
    "harness.rewriters",
    "harness.sources",
    "harness.choice",
    "harness.preferences",
)  # what configs name


def numbers(class_type: type) -> Iterator[str]:
    """The constructor's parameters that are a number, or a list of numbers."""
    hints = typing.get_type_hints(
        class_type.__init__,
        {**vars(inspect.getmodule(class_type)), "DType": str, "RelevanceEstimator": object, "AnswerEncoder": object},
    )
    for name, hint in hints.items():
        kinds = [hint, *typing.get_args(hint)]
        if any(kind in kinds for kind in (int, float, list[float])):
            yield name


CASES = [(class_type, name) for class_type in GIVEN for name in numbers(class_type) if name not in ANY_NUMBER]


@pytest.mark.parametrize(("class_type", "name"), CASES, ids=lambda each: getattr(each, "__name__", each))
def test_an_absurd_number_is_refused_before_anything_is_loaded(class_type: type, name: str) -> None:
    for absurd in (-1, float("nan"), *[7] * (name in SHARES)):
        value = [absurd] if name == "weights" else absurd
        with pytest.raises(UserError, match=rf"\b{name}\b") as refusal:
            class_type(**{**GIVEN[class_type], name: value})
        assert type(refusal.value) is UserError  # not a file that is missing


def test_the_list_of_classes_is_complete() -> None:
    """Every class of these folders that a configuration can name, and that has a number, is checked above."""
    missing = []
    for module in (
        m for m in MODULES if m.startswith(BUILDERS) and not m.startswith(("trainers.run", "datamodules.world"))
    ):
        for _, each in inspect.getmembers(importlib.import_module(module), inspect.isclass):
            documented = "\n    Args:\n" in (each.__doc__ or "")
            if each.__module__ == module and documented and each not in GIVEN and any(True for _ in numbers(each)):
                missing.append(f"{module}.{each.__name__}")
    # built by the project's own classes, from numbers that are checked there
    assert set(missing) <= {
        "datamodules.dmqr_rewards.GreedyReward",
        "datamodules.dmqr_substitution.WordSubstitution",
        "datamodules.examples.computed.Computed",
        "datamodules.examples.context_batches.ContextBatches",
        "datamodules.examples.context_batches.ContextTensors",
        "datamodules.examples.context_draws.ContextDraws",
        "datamodules.examples.made_ahead.MadeAhead",
        "datamodules.examples.step_loader.StepLoader",
        "datamodules.examples.token_stream.CorpusStream",
        "harness.preferences.collecting.Collector",
        "harness.retrievers.hard_negatives.HardNegatives",
        "harness.retrievers.parent_sections.ParentSections",
        "harness.rewriters.word_labels.WordLabeler",
    }


DRRAG = ("ask", "--strategy", "harness.strategies.drrag.DrRag", "--question", "x", "--strategy.serving", "no/serving")
DENSE = ("--strategy.retriever", "harness.retrievers.dense.DenseRetriever", "--strategy.retriever.index", "no/index")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([*DRRAG, *DENSE, "--strategy.selection.k", "0"], "k must be at least 1, got 0."),
        ([*DRRAG, *DENSE, "--strategy.lookahead", "0"], "lookahead must be at least 1, got 0."),
        ([*DRRAG, *DENSE, "--strategy.retriever.nprobe=-1"], "nprobe must be at least 1, got -1."),
        ([*DRRAG, *DENSE, "--strategy.selection.threshold", "7"], "threshold must lie in [0, 1], got 7.0."),
        ([*DRRAG, *DENSE, "--question", " "], 'question is empty: type one, e.g. --question "Who wrote Hamlet?"'),
    ],
    ids=lambda each: each[-1][:40] if isinstance(each, list) else "",
)
def test_infer_checks_all_options_before_it_loads(tmp_path: Path, arguments: list[str], line: str) -> None:
    """Neither the index nor the serving folder exists: a check that came after loading would name one of them."""
    assert refused(command(tmp_path, "infer.py", *arguments), 2) == f"infer.py: {line}"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("--data.validation_fraction=7", "validation_fraction must lie in (0, 1), got 7.0."),
        ("--data.tokens_per_step=-1", "tokens_per_step must be at least 1, got -1."),
        ("--data.sampling.mixed_share=7", "mixed_share must lie in [0, 1], got 7.0."),
        ("--model.learning_rate=-1", "learning_rate must be above 0, got -1.0."),
        ("--model.dropout=1.5", "dropout must lie in [0, 1), got 1.5."),
    ],
)
def test_train_checks_all_options_before_it_loads(tmp_path: Path, option: str, line: str) -> None:
    """The model's folder does not exist, nor do the data files."""
    config = Path(__file__).parents[2] / "configs/train/drrag_world.yaml"
    ended = command(tmp_path, "train.py", "fit", "--config", str(config), "--model.pretrained", "no/model", option)
    assert refused(ended, 2) == f"train.py: {line}"
    assert not list(tmp_path.iterdir())
