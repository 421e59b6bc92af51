"""What release 0.2.0 wrote loads, and gives the values that it gave; the fixture's README tells how it was made."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from common.records import Answer, Passage, Ranked
from harness.answer_selection.learned import LearnedSelector
from harness.context_sources.facts import IndexedFacts
from harness.context_sources.web import WebContext
from harness.readers.t5 import ContextReader
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.dense import DenseRetriever
from harness.retrievers.multi_route import MultiRouteRetriever
from harness.rewriters.extractive import ExtractiveRewriter
from harness.selection.options import SelectionOptions
from harness.systems.drrag import DrRag
from harness.systems.msrag import Msrag
from harness.systems.rerag import ReRag
from models.drrag.triple_classifier import TripleClassifier
from models.rerag.model import ReRagModel

RELEASE = Path(__file__).parent / "fixtures/release_0_2"
DRRAG, RERAG, EXTRACTIVE = (RELEASE / f"checkpoints/{name}/serving" for name in ("drrag", "rerag", "extractive"))
KEPT = json.loads((RELEASE / "values.json").read_text())
TOLERANCE = {"rel": 1e-5, "abs": 1e-5}
QUESTIONS = (
    "To which year does the bitrh of Adam Longade date?",
    "Who tutored the composer Oscar Moonard?",
    "In which town of Seakshire does the singer Max Brookov live?",
)
CPU = {"device": "cpu", "precision": "fp32"}
Values = tuple[object, list[float]]  # what is equal, and numbers that are close


def bm25() -> Bm25Retriever:
    return Bm25Retriever(RELEASE / "bm25")


def dense() -> DenseRetriever:
    return DenseRetriever(RELEASE / "dense", encoder=str(RELEASE / "encoder"), **CPU)


def searched(results: Sequence[Sequence[Ranked]]) -> Values:
    return [[hit.passage.id for hit in hits] for hits in results], [hit.score for hits in results for hit in hits]


def answered(answers: Sequence[Answer]) -> Values:
    ids, scores = searched([answer.evidence for answer in answers])
    return [[answer.text for answer in answers], ids], scores


def found() -> list[tuple[str, list[Passage]]]:
    """Each question with passages of the index."""
    hits = bm25().search(QUESTIONS, 3)
    return [(question, [hit.passage for hit in own]) for question, own in zip(QUESTIONS, hits, strict=True)]


def routes() -> Values:
    retriever = MultiRouteRetriever(dense(), bm25(), weights=RELEASE / "weights.json")
    ids, scores = searched(retriever.search(QUESTIONS, 5))
    return ids, [retriever.alpha, retriever.beta, *scores]


def classifier() -> Values:
    model = TripleClassifier.load(DRRAG, "cpu")
    triples = [(question, one, other) for question, each in found() for one in each for other in each]
    return len(triples), [model.threshold, *model.probabilities(triples)]


def selection() -> Values:
    options = SelectionOptions("cfs", k=4)
    return answered(DrRag(bm25(), DRRAG, options, selection_file=RELEASE / "selection.json", **CPU).answer(QUESTIONS))


def estimator_and_generator() -> Values:
    model = ReRagModel.load(RERAG, "cpu")
    assert model.estimator is not None
    assert model.generator is not None
    pairs = [(question, passage) for question, each in found() for passage in each]
    answers = model.generator.answers([(question, [passage]) for question, passage in pairs], 6)
    numbers = [model.calibration.scale, model.calibration.offset, model.refusal_threshold, model.relevance_temperature]
    return [text for text, _ in answers], [*numbers, *model.estimator.scores(pairs), *(logp for _, logp in answers)]


def prior() -> Values:
    return answered(ReRag(bm25(), RERAG, contexts=5, prior=RELEASE / "prior.json", **CPU).answer(QUESTIONS))


def words() -> Values:
    rewriter = ExtractiveRewriter(EXTRACTIVE, **CPU)
    made = rewriter.rewrite(QUESTIONS, rewriter.strategies, bm25().search(QUESTIONS, 3))
    pairs = [(question, passage) for question, each in found() for passage in each]
    scored = rewriter.model.scores(pairs)
    return [each.queries for each in made], [word.log_odds for each in scored for word in (*each.stays, *each.joins)]


def selector() -> Values:
    learned = LearnedSelector(RELEASE / "selector.json", encoder=str(RELEASE / "encoder"), device="cpu")
    system = Msrag(ContextReader(RERAG, **CPU), learned, WebContext(bm25(), passages=2), IndexedFacts(dense(), 2))
    answers = system.answer(QUESTIONS)
    told = [each for answer in answers for each in answer.notes["sources"]]
    return answered(answers)[0], [each["score"] for each in told]


COMPUTED: dict[str, Callable[[], Values]] = {
    "bm25": lambda: searched(bm25().search(QUESTIONS, 5)),
    "dense": lambda: searched(dense().search(QUESTIONS, 5)),
    **{
        each.__name__: each for each in (routes, classifier, selection, estimator_and_generator, prior, words, selector)
    },
}


@pytest.mark.numeric
@pytest.mark.parametrize("name", COMPUTED)
def test_it_loads_and_gives_the_same(name: str) -> None:
    decided, numbers = COMPUTED[name]()
    assert json.loads(json.dumps(decided)) == KEPT[name][0]
    assert numbers == pytest.approx(KEPT[name][1], **TOLERANCE)
