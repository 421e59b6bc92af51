"""The beam end to end on a corpus worked out by hand, with the real BM25 index."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import UserError
from common.records import Answer, Passage, Question, Ranked
from harness.commands.ask import ask
from harness.interfaces import ChainScorer, Strategy
from harness.retrievers.bm25 import Bm25Retriever
from harness.selection.beam import BeamOptions
from harness.strategies.drrag_beam import DrRagBeam, concatenate_chain
from models.drrag.triple_tokenizer import END, Chain
from tests.helpers.river_corpus import PASSAGES, QUESTIONS, write_index

ASKED = [Question(id=id_, text=text) for id_, text, *_ in QUESTIONS]
GOLD = {text: {PASSAGES[title].id for title in gold} for _, text, _, gold in QUESTIONS}


class RightAboutChains:
    """Log-odds 3 for a chain of gold documents and for the end of all of them, -3 for others.

    Counts what it is asked.
    """

    def __init__(self, most_documents: int = 4) -> None:
        self.most_documents, self.batches = most_documents, list[list[Chain]]()

    def chain_log_odds(self, chains: Sequence[Chain]) -> list[float]:
        self.batches.append(list(chains))
        return [3.0 if self._right(*chain) else -3.0 for chain in chains]

    @staticmethod
    def _right(question: str, *passages: Passage) -> bool:
        ids = {passage.id for passage in passages if passage is not END}
        return ids == GOLD[question] if passages[-1] is END else ids <= GOLD[question]


class Counted:
    """A retriever that notes its batched calls."""

    def __init__(self, inner: Bm25Retriever) -> None:
        self.inner, self.calls = inner, list[tuple[list[str], int]]()

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        self.calls.append((list(queries), k))
        return self.inner.search(queries, k)


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Bm25Retriever:
    return Bm25Retriever(write_index(tmp_path_factory.mktemp("index")))


def titles(answer: Answer) -> list[str]:
    return [hit.passage.title for hit in answer.evidence]


def test_the_second_hop_is_found_through_the_first_and_the_chain_ends(retriever: Bm25Retriever) -> None:
    strategy = DrRagBeam(retriever, scorer=RightAboutChains(), beam=BeamOptions(k=4, width=2, depth=3))
    assert isinstance(strategy, Strategy)
    assert isinstance(strategy.scorer, ChainScorer)
    answers = strategy.answer(ASKED)
    assert [set(titles(answer)[:2]) for answer in answers] == [{"Alba", "Brune"}, {"Calder", "Dorn"}, {"Elbe", "Fulda"}]
    assert titles(answers[0])[:2] == ["Alba", "Brune"]
    notes = answers[0].notes["documents"]
    assert isinstance(notes, list)
    assert notes[0] == {
        "id": PASSAGES["Alba"].id,
        "rank": 1,
        "hop": 1,
        "chain": "Alba -> Brune",
        "score": 3.0,
        "probability": pytest.approx(0.9526, abs=1e-4),
        "complete": pytest.approx(0.9526, abs=1e-4),
    }
    assert notes[1]["hop"] == 2
    chains = answers[0].notes["chains"]
    assert isinstance(chains, list)
    assert chains[0]["documents"] == [PASSAGES[title].id for title in ("Alba", "Brune")]
    json.dumps(answers[0].notes)


def test_one_search_and_one_batch_of_scores_per_hop_for_all_questions(retriever: Bm25Retriever) -> None:
    counted, scorer = Counted(retriever), RightAboutChains()
    beam = BeamOptions(k=3, width=1, depth=4)
    answers = DrRagBeam(counted, scorer=scorer, beam=beam).answer([*ASKED, ASKED[0]])
    assert [(len(queries), k) for queries, k in counted.calls] == [(3, 4), (3, 5), (3, 6)]
    assert counted.calls[1][0][0] == "alba river Alba alba river joins brune"
    assert counted.calls[2][0][0] == "alba river Brune brune ends ocean Alba alba river joins brune"  # the latest first
    assert len(scorer.batches) == 3
    scored = [chain for batch in scorer.batches for chain in batch]
    assert len({(chain[0], *(p.id for p in chain[1:])) for chain in scored}) == len(scored)
    assert len(scored) == sum(answer.costs["model_calls"] for answer in answers[:3])
    assert [answer.costs["retriever_calls"] for answer in answers] == [3.0] * 4
    assert answers[3].evidence == answers[0].evidence
    assert {name for name in answers[0].costs if name.startswith("seconds/")} == {
        "seconds/first_stage",
        "seconds/later_stages",
        "seconds/scoring",
    }


def test_batching_does_not_change_answers_and_k_bounds_them(retriever: Bm25Retriever) -> None:
    for k in (1, 2, 5):
        strategy = DrRagBeam(retriever, scorer=RightAboutChains(), beam=BeamOptions(k=k, width=3))
        together = strategy.answer(ASKED)
        alone = [strategy.answer([question])[0] for question in ASKED]
        for one, other in zip(together, alone, strict=True):
            assert (one.evidence, one.notes) == (other.evidence, other.notes)
        assert all(len(set(titles(answer))) == len(titles(answer)) <= k for answer in together)
    assert strategy.answer([]) == []


def test_without_a_retriever_every_hop_considers_what_the_question_ships() -> None:
    shipped = [Passage.of(f"noise {n}", "of no use") for n in range(20)] + [
        PASSAGES["Brune"],
        PASSAGES["Alba"],
    ]  # more than the depth
    questions = [replace(question, passages=tuple(shipped)) for question in ASKED]
    questions.append(replace(ASKED[0], id="other", passages=(PASSAGES["Alba"], PASSAGES["Elbe"])))  # the same text
    strategy = DrRagBeam(scorer=RightAboutChains(), beam=BeamOptions(k=4, width=2, depth=3, fill=False))
    answers = strategy.answer(questions)
    assert set(titles(answers[0])) == {"Alba", "Brune"}  # and no third one: the chain has ended
    assert titles(answers[3]) == ["Alba"]  # Brune is not among its passages
    assert answers[0].costs["model_calls"] == 22 + 2 * (21 + 1) + 2 * (20 + 1) + (
        19 + 1
    )  # all others, and each chain's end
    assert answers[3].costs["model_calls"] == 2 + 2 * (1 + 1) + 1  # two chains are one; then its end
    assert answers[0].costs["retriever_calls"] == 0
    with pytest.raises(UserError, match=r"'q1' ships no passages .* configure --strategy\.init_args\.retriever"):
        strategy.answer(ASKED)
    with pytest.raises(UserError, match=r"expansions are what its retriever finds"):
        strategy.expansions(["alba river"], 2)


def test_without_fill_the_best_chain_alone_is_chosen(retriever: Bm25Retriever) -> None:
    whole, alone = (
        DrRagBeam(retriever, scorer=RightAboutChains(), beam=BeamOptions(k=4, width=2, depth=3, fill=fill)).answer(
            ASKED
        )
        for fill in (True, False)
    )
    assert [len(answer.evidence) for answer in whole] == [4, 4, 2]
    for one, other in zip(alone, whole, strict=True):
        assert one.evidence == other.evidence[:2]
        assert {PASSAGES[title].id for title in titles(one)} == GOLD[ASKED[whole.index(other)].text]


def test_concatenation_puts_the_latest_document_first() -> None:
    chain = [PASSAGES["Alba"], PASSAGES["Brune"]]
    assert concatenate_chain("where", []) == concatenate_chain("where", [], 3) == "where"
    assert concatenate_chain("where", chain[:1], 2) == "where where Alba alba river joins brune"
    assert concatenate_chain("where", chain) == "where Brune brune ends ocean Alba alba river joins brune"


def test_a_classifier_of_pairs_is_refused_with_the_cure(retriever: Bm25Retriever) -> None:
    with pytest.raises(UserError, match=r"trained on pairs .* data\.chains .* harness\.strategies\.drrag\.DrRag"):
        DrRagBeam(retriever, scorer=RightAboutChains(2))
    with pytest.raises(UserError, match=r"at most 3 documents: set beam\.most_hops to 3"):
        DrRagBeam(retriever, scorer=RightAboutChains(3))
    DrRagBeam(retriever, scorer=RightAboutChains(3), beam=BeamOptions(most_hops=3))
    for given in ({}, {"scorer": RightAboutChains(), "serving": Path("checkpoints/x/serving")}):
        with pytest.raises(UserError, match="trained on chains with serving"):
            DrRagBeam(retriever, **given)  # type: ignore[arg-type]


def test_ask_shows_the_chain(retriever: Bm25Retriever, capsys: pytest.CaptureFixture[str]) -> None:
    ask(DrRagBeam(retriever, scorer=RightAboutChains(), beam=BeamOptions(k=2)), question="alba river")
    shown = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "hop 2; chain Alba -> Brune; score 3.000" in shown
    assert "retriever calls" in shown
