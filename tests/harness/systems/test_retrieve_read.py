"""Retrieve-then-read with the real BM25 index of the corpus worked out by hand."""

from common.records import Question, Ranked
from harness.systems.retrieve_read import RetrieveRead
from tests.helpers.echo_reader import EchoReader
from tests.helpers.river_corpus import PASSAGES, QUESTIONS

ASKED = [Question(id_, text) for id_, text, *_ in QUESTIONS]


def test_the_evidence_is_the_retriever_s_first_k_which_a_reader_reads(bm25) -> None:
    answers = RetrieveRead(bm25, k=2).answer(ASKED)
    assert [answer.question_id for answer in answers] == ["q1", "q2", "q3"]
    assert [list(answer.evidence) for answer in answers] == bm25.search([each.text for each in ASKED], 2)
    assert [hit.passage.title for hit in answers[0].evidence] == ["Alba", "Alba (ship)"]
    for answer in answers:
        assert (answer.text, answer.logprob, answer.notes) == ("", None, {})
        assert answer.costs.keys() == {"retriever_calls", "model_calls", "tokens", "seconds/retrieval"}
        assert (answer.costs["retriever_calls"], answer.costs["model_calls"]) == (1, 0)
    (read,) = RetrieveRead(bm25, k=2, reader=EchoReader()).answer(ASKED[:1])
    assert (read.text, read.logprob, read.notes) == ("Alba Alba (ship)", -1.0, {"read": True})
    assert read.evidence == answers[0].evidence
    counts = {name: value for name, value in read.costs.items() if "/" not in name}
    assert counts == {"retriever_calls": 1, "model_calls": 1, "tokens": 5}
    assert read.costs["seconds/reading"] >= 0


def test_without_a_retriever_shipped_passages_are_read_by_given_scores_then_in_file_order() -> None:
    elbe, alba, dorn = PASSAGES["Elbe"], PASSAGES["Alba"], PASSAGES["Dorn"]
    scored = Question("s", "?", passages=(elbe, alba, dorn), scores=(0.5, 2.0, 1.0))
    unscored = Question("u", "?", passages=(elbe, elbe, alba, dorn))
    first, second = RetrieveRead(None, k=2, reader=EchoReader()).answer([scored, unscored])
    assert first.evidence == (Ranked(alba, 2.0), Ranked(dorn, 1.0))
    assert second.evidence == (Ranked(elbe, 0.0), Ranked(alba, 0.0))
    assert (first.text, first.costs["retriever_calls"]) == ("Alba Dorn", 0)
