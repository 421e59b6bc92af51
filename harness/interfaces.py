"""Interfaces of the harness: a retriever finds passages, a reader generates answers, a system answers questions.
All are batched.  Standard library only, so that the command line can show its help without loading a model."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from common.chat import Chat, Reply
from common.context_sources import SelectedSource, SourceContext
from common.records import Answer, Passage, Question, Ranked
from common.retrieval import Retriever as Retriever
from common.rewrites import Rewrites

if TYPE_CHECKING:
    from models.calibration import Calibration
    from models.cross_encoder import RelevanceEstimator
    from models.rerag.generator import Generator
    from models.rerag.marginal_reader import AnswerMatrix, AnyMarginal
    from models.rerag.model import Relevance

    Questions = Sequence[Question]
else:
    # a system may accept more, such as texts; the command line would refuse any other type than the one written here
    Questions = Any


@runtime_checkable
class Reader(Protocol):
    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        """One answer per question, generated from its evidence (best first)."""


@runtime_checkable
class ClosedBookReader(Reader, Protocol):
    """A reader that also answers from the question alone."""

    def read_closed_book(self, questions: Sequence[Question]) -> list[Answer]:
        """One answer per question, generated without any passage."""


@runtime_checkable
class PerContextReader(Protocol):
    """A reader that reads each context alone, for a system that weighs the answers by the contexts' relevance."""

    @property
    def marginal(self) -> "AnyMarginal":
        """How the answers are weighed, given the log-probabilities in `matrices`."""

    def matrices(self, questions: Sequence[str], contexts: Sequence[Sequence[Passage]]) -> "list[AnswerMatrix]":
        """The answer from each context, and log-probabilities of the distinct answers, for every question in order."""


@runtime_checkable
class System(Protocol):
    """A system.  If it has an attribute `retriever` that is None, it answers only questions that ship passages."""

    def answer(self, questions: Questions) -> list[Answer]:
        """One answer per question, in the order of the questions; that to a question that fails has the note `error`.

        `harness.runtime.answer_text` says in which form the answers' notes and costs are shown.
        """


@runtime_checkable
class LanguageModel(Protocol):
    """A model that replies to chats: an endpoint, or a local model (`harness/llm/`).

    One that knows its context has a method `room(chat)`: the tokens that are left for the reply to a chat.
    """

    name: str  # for reports, such as the model and the endpoint's address; holds no key

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat, in order.  A chat that fails gets a `Reply` with `error`, the others are not affected.

        Raises:
            UserError: If no chat can succeed (wrong key, unknown model), or a chat asks for log-probabilities and this
                model gives none.
        """


@runtime_checkable
class Rewriter(Protocol):
    """Makes search queries of questions (DMQR-RAG): a trained model, or a language model by prompt.

    A class whose attribute `reads_history` is true reads `Question.history`, so that its queries stand alone; another
    one gets the earlier turns as a part of the question's text.
    """

    name: str  # for reports

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        """The queries of every question by every strategy, in order.

        A strategy without a valid query falls back to the question itself, which is recorded. A rewriter that chooses
        among the strategies leaves out those that it has not chosen.

        Raises:
            UserError: If the rewriter does not know a strategy.
        """


@runtime_checkable
class ChoosingRewriter(Rewriter, Protocol):
    """A rewriter that may choose among the strategies for each question."""

    adaptive: bool  # whether it does

    def without_choice(self) -> Rewriter:
        """The same rewriter with all strategies for each question."""


@runtime_checkable
class FeedbackRewriter(Protocol):
    """A rewriter that reads what a first search with the question found."""

    name: str
    feedback_passages: int  # passages of the first search that it reads

    def rewrite(
        self, questions: Sequence[Question], strategies: Sequence[str], found: Sequence[Sequence[Ranked]]
    ) -> list[Rewrites]:
        """As `Rewriter.rewrite`, with what the first search found for each question, best first."""


@runtime_checkable
class ContextSource(Protocol):
    """Gives context for questions (MSRAG): searches, or lets a language model write what it knows."""

    def contexts(self, questions: Sequence[Question]) -> list[SourceContext]:
        """One record per question, in order.

        A question without context has the reason, and the others are not affected.

        Raises:
            UnavailableError: If the service behind the source cannot be reached.
        """


@runtime_checkable
class AnswerSelector(Protocol):
    """Chooses one of the answers that a question got from several sources (MSRAG)."""

    name: str  # in notes and reports
    uses_gold: bool  # whether it reads `Question.answers`; then its figures are an upper bound

    def choose(self, questions: Sequence[Question], answers: Sequence[Mapping[str, Answer]]) -> list[SelectedSource]:
        """The chosen source of every question.

        Args:
            questions: The questions.
            answers: Of each question by source, in the order that decides ties; a text is empty where a source has no
                answer.
        """


@runtime_checkable
class PairScorer(Protocol):
    """DR-RAG's classifier C(q, d1, d2); implemented by `models.drrag.triple_classifier.TripleClassifier`."""

    threshold: float  # a pair is positive if P(positive) >= threshold; chosen on validation data

    def probabilities(self, triples: Sequence[tuple[str, Passage, Passage]]) -> list[float]:
        """P(positive | q, d1, d2) of every triple, in order; not symmetric in d1 and d2."""


@runtime_checkable
class RelevanceModel(Protocol):
    """RE-RAG's estimator, generator or both; implemented by `models.rerag.model.ReRagModel`."""

    estimator: "RelevanceEstimator | None"
    generator: "Generator | None"
    calibration: "Calibration"
    refusal_threshold: float | None  # unanswerable if no context's calibrated P(relevant) reaches it
    refusal_contexts: int | None  # number of best contexts that the threshold was chosen for; None if unknown
    refusal_cost: float | None  # cost of a wrong refusal in wrong answers; None: chosen by F1
    max_answer_tokens: int
    relevance_temperature: float  # divides relevance logits when `thorough` uses them as weights
    relevance: "Relevance | None"  # what weighted the contexts in training; None if unknown
    retriever_temperature: float | None  # divides the retriever's scores if these weighted the contexts
