"""Systems, readers, rewriters and selections from Python: wrong options and files are refused, and named."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from common.errors import ArtifactError, DataError, MissingInputError, UserError
from common.records import Question
from harness.answer_selection.estimator import EstimatedRelevance
from harness.answer_selection.learned import LearnedSelector
from harness.answer_selection.oracle import Oracle
from harness.llm.local import CausalLm
from harness.llm.prompts import Prompt
from harness.readers.llm import LlmReader
from harness.readers.t5 import ContextReader, PackedReader
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.multi_query import MultiQueryRetriever
from harness.rewriters.extractive import ExtractiveRewriter
from harness.rewriters.file import FileRewriter
from harness.rewriters.llm import LlmRewriter
from harness.rewriters.prompted import PromptRewriter
from harness.rewriters.strategy_checks import check_strategies
from harness.rewriters.trained import TrainedRewriter
from harness.selection.options import SelectionOptions
from harness.systems.dmqr import Dmqr
from harness.systems.drrag import DrRag
from harness.systems.msrag import Msrag
from harness.systems.rerag import ReRag
from tests.helpers.echo_reader import EchoReader
from tests.helpers.llm_world import reading_rows
from tests.helpers.rerag_world import write_serving
from tests.helpers.river_corpus import PASSAGES, gold_scorer, indexed
from tests.helpers.scripted_lm import ScriptedLm

ASKED = [Question("q", "alba river")]
LM = ScriptedLm({"": ["Answer: sea"]})


class Made:
    """What the calls need: an index, folders of models, and files."""

    def __init__(self, folder: Path, bm25: Bm25Retriever, t5: Path, serving: Path) -> None:
        self.folder, self.bm25, self.t5, self.both = folder, bm25, t5, serving
        self.none = folder / "nowhere.jsonl"

    def serving(self, **parts) -> Path:
        """A folder with some of RE-RAG's parts."""
        return write_serving(self.t5, self.folder / "serving", **parts)

    def estimator(self) -> Path:
        return self.serving(generator=None)

    def generator(self) -> Path:
        return self.serving(estimator=False)

    def other_index(self) -> Bm25Retriever:
        return indexed(self.folder / "other", [PASSAGES["Alba"]])

    def file(self, content: str) -> Path:
        """Of a prompt, a pool of strategies, rewrites or questions."""
        (self.folder / "own.yaml").write_text(content)
        return self.folder / "own.yaml"

    def yaml(self, **content) -> str:
        return str(self.file(yaml.safe_dump(content)))

    def examples(self) -> str:
        """Two questions in HotpotQA's layout, the first of which has no answer in its passages."""
        first, second = reading_rows(count=2)
        return str(self.file(json.dumps([first | {"answer": "nowhere"}, second])))


def msrag(reader=None, **options) -> Msrag:
    given = {"web": object(), "knowledge": object(), **options}
    return Msrag(reader or LlmReader(LM), EstimatedRelevance(), **given)


Call = Callable[[Made], object]
CALLS: dict[str, tuple[Call, str] | tuple[Call, str, type[Exception]]] = {  # a UserError, unless another is named
    "ReRag: candidates": (lambda m: ReRag(m.bm25, m.both, candidates=10), "candidates is 10, fewer than"),
    "ReRag: no model": (lambda m: ReRag(m.bm25), "serving"),
    "ReRag: two models": (lambda m: ReRag(m.bm25, serving=m.both, model=object()), "serving"),
    "ReRag: reader of all": (lambda m: ReRag(m.bm25, m.both, reader=EchoReader()), "reader is EchoReader"),
    "ReRag: weights and abstain": (lambda m: ReRag(m.bm25, m.both, weights="retriever", abstain=True), "omit weights"),
    "ReRag: abstain without threshold": (
        lambda m: ReRag(m.bm25, m.estimator(), abstain=True).load(), "needs a threshold"),
    "ReRag: abstain without estimator": (
        lambda m: ReRag(m.bm25, m.generator(), abstain=True).load(), "need an estimator"),
    "ReRag: threshold without estimator": (
        lambda m: ReRag(m.bm25, m.generator(), threshold=0.5).load(), "need an estimator"),
    "ReRag: no folder": (lambda m: ReRag(m.bm25, m.none).load(), "nowhere", MissingInputError),
    "ReRag: packed": (
        lambda m: ReRag(m.bm25, m.serving(generator="packed", estimator=False)).load(), "t5.PackedReader"),
    "DrRag: no classifier": (lambda m: DrRag(m.bm25), "selection cfs needs the trained classifier"),
    "DrRag: two classifiers": (lambda m: DrRag(m.bm25, m.folder, scorer=gold_scorer()), "Both serving and scorer"),
    "DrRag: no folder": (lambda m: DrRag(m.bm25, m.none).load(), "nowhere", MissingInputError),
    "DrRag: two corpora": (
        lambda m: DrRag(m.bm25, selection=SelectionOptions("qdc"), second_retriever=m.other_index()).load(),
        "different corpora", ArtifactError),
    "Dmqr: no scorer": (lambda m: Dmqr(m.bm25), "fusion rerank needs one scorer"),
    "Dmqr: strategy": (lambda m: Dmqr(m.bm25, LlmRewriter(LM), ("hyde",), fusion="rrf").answer("alba"), "'hyde'"),
    "Msrag: unknown source": (lambda m: msrag(sources=("web", "gpt")), "sources contains 'gpt'"),
    "Msrag: no source": (lambda m: msrag(sources=()), "sources is empty"),
    "Msrag: one twice": (lambda m: msrag(sources=("web", "web")), "sources names one twice"),
    "Msrag: no knowledge": (lambda m: msrag(knowledge=None), "set sources to [web, none]"),
    "Msrag: no web": (lambda m: msrag(web=None, sources=("web",)), "set sources to [none]"),
    "Msrag: reader needs a context": (lambda m: msrag(EchoReader()), "reader is EchoReader"),
    "Msrag: prompt for no context": (
        lambda m: msrag(LlmReader(LM, m.yaml(user="${documents} ${question}", document="${text}"))).load(),
        "closed_book"),
    "CausalLm: no model": (lambda m: CausalLm("no/model").load(), "no/model: no such folder", MissingInputError),
    "CausalLm: device": (lambda m: CausalLm(str(m.t5), "gpu").load(), "device 'gpu' is unknown"),
    "CausalLm: two devices": (lambda m: CausalLm("lm", "cpu", device_map="auto"), "device_map"),
    "LlmReader: thorough": (lambda m: LlmReader(LM, marginal="thorough"), "marginal"),
    "LlmReader: no prompt": (lambda m: LlmReader(LM, "none").load(), "prompt is 'none'"),
    "LlmReader: shots": (lambda m: LlmReader(LM, "rerag_nq", shots=8).load(), "has 3 examples"),
    "LlmReader: no place for shots": (lambda m: LlmReader(LM, "drrag", shots=1).load(), "prompt drrag"),
    "LlmReader: no shots": (lambda m: LlmReader(LM, "rerag_nq", examples="x.json").load(), "shots"),
    "LlmReader: no examples": (lambda m: LlmReader(LM, "few_shot").load(), "prompt few_shot"),
    "LlmReader: few examples": (
        lambda m: LlmReader(LM, "rerag_nq", examples=m.examples(), examples_layout="hotpotqa", shots=8).load(),
        "own.yaml gives 1"),
    "PackedReader: alone": (lambda m: PackedReader(m.both).load(), "ContextReader"),
    "PackedReader: no generator": (lambda m: PackedReader(m.estimator()).load(), "no generator", ArtifactError),
    "PackedReader: no folder": (lambda m: PackedReader(m.none).load(), "nowhere", MissingInputError),
    "ContextReader: packed": (lambda m: ContextReader(m.serving(generator="packed")).load(), "PackedReader"),
    "ContextReader: no estimator": (lambda m: ContextReader(m.generator()).load(), "no estimator", ArtifactError),
    "LlmRewriter: printed and pool": (lambda m: LlmRewriter(LM, m.folder, printed_prompt=True), "omit pool"),
    "LlmRewriter: printed and adaptive": (
        lambda m: LlmRewriter(LM, adaptive=True, printed_prompt=True), "omit adaptive"),
    "LlmRewriter: printed strategy": (
        lambda m: LlmRewriter(LM, printed_prompt=True).rewrite(ASKED, ["decomposition"]), "decomposition"),
    "LlmRewriter: no pool": (lambda m: LlmRewriter(LM, m.none).load(), "nowhere", MissingInputError),
    "LlmRewriter: bad pool": (lambda m: LlmRewriter(LM, Path(m.yaml(strategies=3))).load(), "is no pool", DataError),
    "LlmRewriter: strategy": (lambda m: LlmRewriter(LM).rewrite(ASKED, ["hyde"]), "'hyde'"),
    "PromptRewriter: no prompt": (lambda m: PromptRewriter(LM, "hide").load(), "prompt is 'hide'"),
    "PromptRewriter: another place": (lambda m: PromptRewriter(LM, "judge_answer").load(), "has a place"),
    "PromptRewriter: no file": (lambda m: PromptRewriter(LM, "no.yaml").load(), "no.yaml", MissingInputError),
    "PromptRewriter: no place": (lambda m: PromptRewriter(LM, m.yaml(user="Jaws")).load(), "needs a place ${question}"),
    "PromptRewriter: strategy": (lambda m: PromptRewriter(LM, "hyde").rewrite(ASKED, ["gqr"]), "'gqr'"),
    "FileRewriter: strategy": (
        lambda m: check_strategies(FileRewriter(m.file('{"question":"a","strategy":"gqr","rewrite":"b"}')), ["kwr"]),
        "'kwr'; it knows: gqr"),
    "FileRewriter: no file": (lambda m: FileRewriter(m.none).load(), "nowhere.jsonl", MissingInputError),
    "FileRewriter: row": (lambda m: FileRewriter(m.file('{"question": "who"}')).load(), "line 1", DataError),
    "TrainedRewriter: no folder": (lambda m: TrainedRewriter(m.none).load(), "nowhere", MissingInputError),
    "ExtractiveRewriter: strategy": (
        lambda m: MultiQueryRetriever(m.bm25, ExtractiveRewriter(m.none), ("gqr",), fusion="rrf").find(ASKED, 3),
        "'gqr'; it knows: kwr, cce, par, hop"),
    "ExtractiveRewriter: no search": (
        lambda m: ExtractiveRewriter(m.none).rewrite(ASKED, ["par"]), "what a first search found"),
    "Oracle: no gold answer": (lambda m: Oracle().choose([Question("x", "who?")], [{}]), "question 'x'"),
    "LearnedSelector: no file": (lambda m: LearnedSelector(m.none).load(), "nowhere", MissingInputError),
    "Prompt: name": (lambda m: Prompt.load("no_such"), "drrag"),
    "Prompt: file": (lambda m: Prompt.load("no_such.yaml"), "no_such.yaml", MissingInputError),
    "Prompt: place": (lambda m: Prompt.load(m.yaml(user="${date} ${question}")).messages(question="Who?"), "${date}"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_it_is_refused(name: str, tmp_path: Path, bm25: Bm25Retriever, checkpoints, serving: Path) -> None:
    call, part, error = (*CALLS[name], UserError)[:3]
    LM.asked.clear()
    with pytest.raises(error) as raised:
        call(Made(tmp_path, bm25, checkpoints["t5"], serving))
    assert part in str(raised.value)
    assert "\n" not in str(raised.value)
    assert LM.asked == []
