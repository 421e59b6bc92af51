"""DR-RAG over more than two hops: a beam search over chains of documents, one reader call (not in the paper).

q -> d_1 -> Concat(q, d_1) -> d_2 -> ... ; C(q, d_1 .. d_h) scores each chain and its end -> at most k documents
    -> answer
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from common.checks import Precision
from common.errors import UserError
from common.records import Answer, Asked, Passage, Question, Ranked, as_questions
from datamodules.formats.expansions import Expansion
from harness.interfaces import ChainScorer, Reader, Retriever
from harness.readers.read_answers import read_answers
from harness.retrievers.shipped import given_ranking
from harness.retrievers.two_stage import concatenate
from harness.selection.beam import BeamOptions, BeamResult, Found, Ids, ScoredChain, beam_search
from models.token_count import tokens_read

if TYPE_CHECKING:
    from models.drrag.triple_tokenizer import Chain


class DrRagBeam:
    """Searches chains of documents with a classifier trained on chains, and answers from at most k documents.

    The evidence comes by its best chains, best first, with the scores of the search that found each document first,
    which do not compare between hops. The answer's notes say of each document (`documents`) its `rank` in Retriever(q)
    (None if only a later search found it), and of its best chain: the titles (`chain`), the document's place in it
    (`hop`), the chain's `score` (nats), the `probability` that all of it up to the document belongs to the answer, and
    where it was asked, that it is `complete`.

    Args:
        retriever: Used for every hop. None: every hop considers all passages that a question ships, the distractor
            setting of HotpotQA and MuSiQue.
        serving: Folder that training on chains exported, e.g. checkpoints/drrag-beam-multihop/serving.
        beam: The budget k, width and depth of the search, and how chains are scored.
        scorer: A loaded classifier, instead of `serving`.
        reader: Generates the answer; without a reader only the evidence is returned.
        device: Device of the classifier: auto, cpu or cuda.
        precision: Of the classifier: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        UserError: If a value is not allowed, or the classifier reads fewer documents than the beam has hops.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If the serving folder is corrupt or of another text format.
    """

    def __init__(
        self,
        retriever: Retriever | None = None,
        serving: Path | None = None,
        beam: BeamOptions = BeamOptions(),  # noqa: B008 (frozen; these are the defaults that --help shows)
        scorer: ChainScorer | None = None,
        reader: Reader | None = None,
        device: str = "auto",
        precision: Precision = "auto",
    ) -> None:
        self.check_options(serving, scorer)
        self.retriever, self.reader, self.serving, self.beam = retriever, reader, serving, beam
        if serving is not None:
            from models.drrag.triple_classifier import TripleClassifier

            scorer = TripleClassifier.load(Path(serving), device, precision=precision)
        assert scorer is not None  # checked above
        self.scorer = scorer
        if beam.hops > 1 and scorer.most_documents <= 2:
            raise UserError(
                f"the classifier in {serving} was trained on pairs of documents, a beam scores chains of 1 to "
                f"{beam.hops}: train one with data.chains (configs/train/drrag_beam_multihop.yaml), or use "
                "harness.strategies.drrag.DrRag."
            )
        if beam.hops > scorer.most_documents:
            raise UserError(
                f"the classifier in {serving} was trained on chains of at most {scorer.most_documents} documents: set "
                f"beam.most_hops to {scorer.most_documents}, or train with data.chains.most_documents {beam.hops}."
            )

    @staticmethod
    def check_options(serving: Path | None, scorer: ChainScorer | None) -> None:
        """Raise UserError if the classifier is given twice or not at all."""
        if (serving is None) == (scorer is None):
            given = "Both serving and scorer are given" if serving is not None else "The beam needs a classifier"
            raise UserError(
                f"{given}: name the folder of one trained on chains with serving (checkpoints/<name>/serving)."
            )

    def answer(self, questions: Asked) -> list[Answer]:
        """One answer per question: per hop one batched search and one batch of scores, then one reader call.

        Args:
            questions: One text, several texts, or `Question` records.

        Raises:
            UserError: If there is no retriever and a question ships no passages.
        """
        questions = as_questions(questions)
        # A question that is asked twice is searched once.
        distinct = {self._key(question): question for question in questions}
        place_of = {key: place for place, key in enumerate(distinct)}
        work = self._work(list(distinct.values()))
        tokens = tokens_read(self.scorer)
        results = beam_search(len(distinct), work.options, work.retrieve, work.score)
        shared = {"tokens": float(tokens_read(self.scorer) - tokens), **work.seconds}
        costs = {name: value / max(1, len(questions)) for name, value in shared.items()}
        answers = []
        for question in questions:
            place = place_of[self._key(question)]
            answers.append(self._answer(question, results[place], work.found[place], costs))
        return read_answers(self.reader, questions, answers)

    def _key(self, question: Question) -> tuple[str, ...]:
        """What a question's search depends on."""
        return (question.text, *(passage.id for passage in question.passages if self.retriever is None))

    def _work(self, questions: Sequence[Question]) -> "_Work":
        """Retrieval and scoring for the beam."""
        if self.retriever is not None:
            return _Work(self.scorer, self.beam, [question.text for question in questions], self.retriever.search)
        for question in questions:
            if not question.passages:
                raise UserError(
                    f"question {question.id!r} ships no passages and the beam has no retriever: configure "
                    "--strategy.init_args.retriever."
                )
        shipped = [given_ranking(question) for question in questions]
        most = max((len(hits) for hits in shipped), default=0)
        options = replace(self.beam, depth=max(1, most))  # all of them, however many
        return _Work(self.scorer, options, [question.text for question in questions], shipped=shipped)

    def expansions(self, questions: Sequence[str], candidates: int) -> list[list[Expansion]]:
        """The chains of each question that the beam extends, each with its best scored candidates, gold or not.

        Args:
            questions: Texts.
            candidates: Most candidates of a chain.

        Raises:
            UserError: If there is no retriever.
        """
        if self.retriever is None:
            raise UserError(
                "the beam's expansions are what its retriever finds: configure --strategy.init_args.retriever."
            )
        work = self._work(as_questions(questions))
        results = beam_search(len(questions), self.beam, work.retrieve, work.score)
        found: list[list[Expansion]] = []
        for result, hits in zip(results, work.found, strict=True):
            best = {
                chain: sorted(of_chain, key=lambda each: -of_chain[each])[:candidates]
                for chain, of_chain in result.expansions.items()
            }
            found.append(
                [
                    Expansion(*(tuple(hits[each].passage for each in ids) for ids in (chain, of_chain)))
                    for chain, of_chain in best.items()
                ]
            )
        return found

    def _answer(
        self, question: Question, result: BeamResult, found: dict[str, Ranked], shared: dict[str, float]
    ) -> Answer:
        """The evidence of one question, with notes and costs, without a text."""
        chosen = result.documents(self.beam.k, self.beam.fill)
        ranks = {document: rank for rank, document in enumerate(result.ranking, start=1)}
        notes = []
        for document, chain in chosen.items():
            why = {} if chain is None else _why(document, chain, found)
            notes.append({"id": document, "rank": ranks.get(document), **why})
        chains = [
            {"documents": list(chain.documents), "score": chain.score, "log_odds": list(chain.log_odds)}
            for chain in result.chains
        ]
        return Answer(
            question_id=question.id,
            text="",
            evidence=tuple(found[document] for document in chosen),
            costs={
                "retriever_calls": float(result.searches if self.retriever is not None else 0),
                "model_calls": float(result.scored),
                **shared,
            },
            notes={"selection": "beam", "documents": notes, "chains": chains},
        )


class _Work:
    """Retrieves and scores for the beam, and remembers the passages found and the seconds spent.

    Args:
        scorer: The classifier.
        options: Of the beam.
        texts: Of the questions.
        search: Of the retriever.
        shipped: Without a retriever, what every hop considers, for each question.
    """

    def __init__(
        self,
        scorer: ChainScorer,
        options: BeamOptions,
        texts: Sequence[str],
        search: Callable[[Sequence[str], int], list[list[Ranked]]] | None = None,
        shipped: Sequence[list[Ranked]] = (),
    ) -> None:
        self.scorer, self.options, self.texts, self._search, self._shipped = scorer, options, texts, search, shipped
        self.found: list[dict[str, Ranked]] = [{} for _ in texts]  # of each question, a document's first hit
        self.seconds = dict.fromkeys(("seconds/first_stage", "seconds/later_stages", "seconds/scoring"), 0.0)

    def retrieve(self, chains: list[tuple[int, Ids]]) -> list[Found]:
        """Candidates of the chains, in one search."""
        started = time.perf_counter()
        hop = len(chains[0][1])  # the chains of one hop are equally long
        if self._search is None:
            lists = [self._shipped[n] for n, _ in chains]
        else:
            size = self.options.depth + hop if hop else self.options.ranking_size
            weight = self.options.question_weight
            queries = [concatenate_chain(self.texts[n], self._passages(n, chain), weight) for n, chain in chains]
            lists = self._search(queries, size)
        for (question, _), hits in zip(chains, lists, strict=True):
            for hit in hits:
                self.found[question].setdefault(hit.passage.id, hit)
        stage = "seconds/later_stages" if hop else "seconds/first_stage"
        self.seconds[stage] += time.perf_counter() - started
        return [Found([hit.passage.id for hit in hits], [hit.score for hit in hits]) for hits in lists]

    def score(self, steps: list[tuple[int, Ids, bool]]) -> list[float]:
        """Log-odds of the chains, in one batch."""
        from models.drrag.triple_tokenizer import END

        started = time.perf_counter()
        chains: list[Chain] = []
        for question, documents, ended in steps:
            passages = self._passages(question, documents) + [END] * ended
            chains.append((self.texts[question], *passages))
        log_odds = self.scorer.chain_log_odds(chains)
        self.seconds["seconds/scoring"] += time.perf_counter() - started
        return log_odds

    def _passages(self, question: int, chain: Ids) -> list[Passage]:
        return [self.found[question][document].passage for document in chain]


def concatenate_chain(question: str, chain: Sequence[Passage], question_weight: int = 1) -> str:
    """Concat(q, d_1 .. d_h), the latest document first after the question: encoders truncate at the end.

    Args:
        question: Its text.
        chain: The documents found so far, in order.
        question_weight: As in `concatenate`; the question alone stands once.
    """
    asked = " ".join([question] * question_weight) if chain else question
    return reduce(concatenate, reversed(chain), asked)


def _why(document: str, chain: ScoredChain, found: dict[str, Ranked]) -> dict[str, object]:
    """What a document's note says of its chain."""
    place = chain.documents.index(document)
    note: dict[str, object] = {
        "hop": place + 1,
        "chain": " -> ".join(found[each].passage.title or each for each in chain.documents),
        "score": chain.score,
        "probability": _probability(chain.log_odds[place]),
    }
    return {**note, "complete": _probability(chain.log_odds[-1])} if chain.ended else note


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0
