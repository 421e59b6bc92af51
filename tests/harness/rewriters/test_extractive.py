"""The extractive rewriter: queries of chosen words by hand, feedback from the first search, fallbacks."""

import pytest
import torch

from common.records import Ranked
from common.words import words_of
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.multi_query import MultiQueryRetriever
from harness.retrievers.multi_query_records import counts
from harness.rewriters.extractive import JOIN_WORDS, NOTHING_FOUND, NOTHING_JOINS, NOTHING_STAYS, ExtractiveRewriter
from harness.runtime.retriever_tree import inner
from harness.systems.dmqr import Dmqr
from models.dmqr.word_selection import core, joining, staying, written
from models.dmqr.word_selector import KIND, ScoredWord, WordScores, WordSelector
from models.dmqr.word_tokenizer import TEXT_FORMAT
from models.serving_manifest import write_manifest
from tests.helpers.rerag_world import corpus, questions
from tests.helpers.river_corpus import indexed
from tests.helpers.table_rewriter import CountingRetriever, WorstFirst

PASSAGES = corpus(60)
ASKED = questions(PASSAGES)[:8]
TEXT = "Who directed the film Lulu?"


@pytest.fixture(scope="module")
def serving(checkpoints, tmp_path_factory: pytest.TempPathFactory):
    """An untrained selector, exported."""
    folder = tmp_path_factory.mktemp("words") / "serving"
    torch.manual_seed(1)
    WordSelector.build(str(checkpoints["bert"]), 64).save(folder)
    write_manifest(folder, KIND, TEXT_FORMAT, 64)
    return folder


@pytest.fixture(scope="module")
def bm25(tmp_path_factory: pytest.TempPathFactory) -> Bm25Retriever:
    return indexed(tmp_path_factory.mktemp("index") / "bm25", PASSAGES)


def scored(text: str, *log_odds: float) -> list[ScoredWord]:
    return [ScoredWord(word, value) for word, value in zip(words_of(text), log_odds, strict=True)]


def test_words_are_judged_over_the_passages_by_hand() -> None:
    read = [WordScores(scored(TEXT, -3, 1, -2, 3, 5), []), WordScores(scored(TEXT, -1, 0, 1, 1, 5), [])]
    stays = staying(read, 0.5)  # by the mean
    assert [(each.word.text, each.log_odds) for each in stays] == [("directed", 0.5), ("film", 2), ("lulu", 5)]
    assert written(TEXT, stays) == "directed film Lulu"
    assert written(TEXT, core(stays, 0.5)) == "film Lulu"  # two of three, rounded up
    assert written(TEXT, core(stays, 0.1)) == "Lulu"
    assert core([], 0.5) == []
    first = WordScores([], scored("Georg Pabst born in Raudnitz", 1.0, 2.0, -1.0, -5, 0.5))
    second = WordScores([], scored("pabst Wien 1885", 3.0, 1.5, 0.4))
    for passages, least, most, words in (  # by the maximum, in the order of the text
        ([first, second], 0.0, 9, ["georg", "raudnitz", "pabst", "wien", "1885"]),
        ([first, second], 0.0, 3, ["georg", "pabst", "wien"]),  # the most probable three
        ([first, second], 2.5, 9, ["pabst"]),
        ([first], 9.0, 9, []),
    ):
        assert joining(passages, least, most) == words


def test_a_multi_query_retriever_gives_it_what_the_question_finds_in_one_search_more(serving, bm25) -> None:
    rewriter = ExtractiveRewriter(serving, passages=2, join_probability=0.0, stay_probability=0.0)
    counting, texts = CountingRetriever(bm25), [each.text for each in ASKED]
    both = MultiQueryRetriever(counting, rewriter, ("kwr", "cce", "par"), per_query=4, fusion="rrf")
    found = both.find(ASKED, 5).results
    assert counting.asked[0] == (texts, 4)
    assert len(counting.asked) == 2
    assert not set(counting.asked[1][0]) & set(texts)  # no query twice
    for question, result in zip(ASKED, found, strict=True):
        (first,) = bm25.search([question.text], 4)
        assert result.searches[0].hits == tuple(first)
        (made,) = rewriter.rewrite([question], ("kwr", "cce", "par", "hop"), [first])
        hop = made.queries.pop("hop")
        assert result.rewrites.queries == made.queries
        assert made.costs["model_calls"] == 2
        words, added = words_of(question.text), made.queries["par"][0].removeprefix(question.text).split()
        passages = {word.text for hit in first[:2] for word in words_of(f"{hit.passage.title} {hit.passage.text}")}
        assert 1 <= len(added) <= JOIN_WORDS
        assert set(added) <= passages - {word.text for word in words}
        assert hop == (" ".join([*made.queries["kwr"], *added]),)
        assert made.queries["kwr"][0].split() == [question.text[word.start : word.end] for word in words]
    assert both.search([texts[0], texts[0], ""], 3)[0] == both.search([texts[0]], 3)[0]
    counting.asked.clear()  # it reads as many passages as it needs, also where fewer are asked for
    rewriter = ExtractiveRewriter(serving, passages=5, join_probability=0.0)
    (result,) = MultiQueryRetriever(counting, rewriter, ("par",), per_query=2, fusion="rrf").find(ASKED[:1], 2).results
    assert (counting.asked[0][1], result.rewrites.costs["model_calls"]) == (5, 5)
    assert all(len(search.hits) <= 2 for search in result.searches)


def test_it_can_read_what_another_retriever_finds(serving, bm25: Bm25Retriever) -> None:
    searched, read = CountingRetriever(WorstFirst(bm25)), CountingRetriever(bm25)
    rewriter = ExtractiveRewriter(serving, passages=2, join_probability=0.0, stay_probability=0.0)
    both = MultiQueryRetriever(searched, rewriter, ("kwr", "par"), per_query=4, fusion="rrf", feedback_retriever=read)
    found = both.find(ASKED, 5).results
    assert read.asked == [([each.text for each in ASKED], 2)]
    assert len(searched.asked) == 1  # the questions with their rewrites
    for question, result in zip(ASKED, found, strict=True):
        (made,) = rewriter.rewrite([question], ("kwr", "par"), bm25.search([question.text], 2))
        assert result.rewrites.queries == made.queries
        queries = dict.fromkeys([question.text, *made.queries["kwr"], *made.queries["par"]])
        assert [each.query for each in result.searches] == [*queries]
        assert result.searches[0].hits == tuple(WorstFirst(bm25).search([question.text], 4)[0])
        assert counts(result, 0.0)["retriever_calls"] == len(result.searches) + 1
    system = Dmqr(searched, rewriter, ("kwr", "par"), 4, "rrf", feedback_retriever=read)
    assert [answer.evidence for answer in system.answer(ASKED)] == [each.ranked for each in found]
    assert bm25 in [*inner(system)]


def test_what_it_cannot_make_falls_back_and_says_why(serving) -> None:
    strict = ExtractiveRewriter(serving, stay_probability=1.0, join_probability=1.0)
    hits = [Ranked(PASSAGES[0], 1.0)]
    kept, nothing = strict.rewrite(ASKED[:2], ["kwr", "par"], [hits, []])
    assert kept.fallbacks == {"kwr": NOTHING_STAYS, "par": NOTHING_JOINS}
    assert nothing.fallbacks == {"kwr": NOTHING_FOUND, "par": NOTHING_FOUND}
    assert kept.queries == {"kwr": (ASKED[0].text,), "par": (ASKED[0].text,)}
    assert (kept.costs["model_calls"], nothing.costs["model_calls"]) == (1, 0)
