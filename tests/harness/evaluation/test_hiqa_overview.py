"""HiQA's Tables 3 and 6, Figure 11: hand-worked counts and data fields; ranks equal those of the index."""

import math
from pathlib import Path

import numpy as np
import pytest

from common.documents import Document, Heading, Paragraph, Table
from common.records import GoldSegment, Passage, Question
from harness.documents.segments.augmentation import passages, segments
from harness.evaluation.answer_scores import Bootstrap
from harness.evaluation.hiqa.table_fields import (
    WHOLE,
    WITH,
    WITHOUT,
    data_fields,
    embed_tables,
    fields_table,
)
from harness.evaluation.hiqa.tables import draw_gammas, overview_table
from harness.evaluation.log_rank import log_rank
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.dense import DenseRetriever, build_dense
from tests.helpers.retrieval_world import WORDS, write_encoder

BOOTSTRAP = Bootstrap(50)
COUNT = 6


def manual(number: int) -> list[Passage]:
    """A manual of two pages with a table of three rows, in words that the encoder knows."""
    own = WORDS[number]
    rows = (("basin", "cedar"), ("delta", WORDS[number + 6]), ("ember | fjord", WORDS[number + 7]))
    blocks = (
        Heading("1 amber", 1, 1),
        Paragraph("glade harbour amber.", 1),
        Table(rows, 1, "Table 1. amber", 2),
        Heading("2 harbour", 1, 2),
        Paragraph("harbour with glade.", 2),
    )
    return passages(segments(Document(f"{own}.pdf", own, blocks, 2)))


PASSAGES = [passage for number in range(COUNT) for passage in manual(number)]
QUESTIONS = [
    Question(WORDS[n], f"delta of {WORDS[n]}", ("?",), kind="table",
             gold_segments=(GoldSegment(f"{WORDS[n]}.pdf", ("delta", WORDS[n + 6]), "table"),))
    for n in range(COUNT)
]  # fmt: skip
OTHERS = [Question("text", "harbour", ("?",), gold_segments=(GoldSegment("basin.pdf", ("with glade",)),))]


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> DenseRetriever:
    folder = tmp_path_factory.mktemp("tables")
    build_dense(PASSAGES, folder / "dense", SentenceEncoder(write_encoder(folder / "encoder", max_tokens=32), "cpu"))
    return DenseRetriever(folder / "dense", "cpu")


def test_the_collection_by_hand(dense: DenseRetriever) -> None:
    table = overview_table(PASSAGES, [*QUESTIONS, *OTHERS], dense.encoder.tokenizer)
    found = {
        name: [cell and (math.nan if cell.reason else cell.value) for cell in cells]
        for name, cells in table.rows.items()
    }
    assert found["documents"] == [6, None, None, None]
    assert found["pages"] == [12, 2, 2, 2]
    assert found["segments"] == [18, 3, 3, 3]
    assert found["segments, text"] == [12, 2, 2, 2]
    assert found["segments, table"] == [6, 1, 1, 1]
    assert "segments, image" not in found
    # of the first section's text, of the table's caption behind it and in its own segment, of the second section, of
    # the cells
    words = 3 + 3 + 3 + 3 + 7
    assert found["words"] == [6 * words, words, words, words]
    tokens = sum(len(dense.encoder.tokenizer.tokenize(passage.text)) for passage in PASSAGES)
    assert found["tokens"][0] == tokens > 6 * words  # punctuation counts, too
    assert found["questions"][0] == 7
    assert (found["questions, table"][0], found["questions, -"][0]) == (6, 1)
    assert found["gold segments of a question"] == [7, 1, 1, 1]
    bare = overview_table([Passage("1", "some text", metadata={"document": "a.txt"})], OTHERS, None)
    assert bare.rows["pages"][0].reason == "the documents have no pages"  # type: ignore[union-attr]
    assert bare.rows["tokens"][0].reason == "the retriever has no vectors"  # type: ignore[union-attr]


def test_data_fields_by_hand() -> None:
    table = next(passage for passage in PASSAGES if (passage.metadata or {})["kind"] == "table")
    assert data_fields(table.text) == f"{WORDS[6]} {WORDS[7]}"
    assert (
        data_fields("Ratings\n\n| a | b | c |\n| --- | --- | --- |\n| w | 1 \\| 2 |  |\n| v | 3 | 4 |") == "1 \\| 2 3 4"
    )
    assert data_fields("no table at all") == ""


def test_ranks_without_data_fields_are_those_of_the_index(dense: DenseRetriever) -> None:
    found = embed_tables(dense, [*QUESTIONS, *OTHERS], 2, 1.0)
    assert found is not None
    assert (found.questions, found.tables) == (COUNT, COUNT)  # the question about a text does not count
    hits, indexes = [], []
    for number, question in enumerate(QUESTIONS):
        ranking = [hit.passage for hit in dense.search([question.text], len(PASSAGES))[0]]
        gold = next(p for p in ranking if p.title.startswith(WORDS[number]) and "|" in p.text)
        hits.append(100.0 * (ranking.index(gold) < 2))
        indexes.append(100 * log_rank(ranking.index(gold) + 1, len(PASSAGES)))
    assert found.values[WITHOUT]["hit@2 %"].tolist() == hits
    assert found.values[WITHOUT]["Log-Rank %"] == pytest.approx(indexes)
    for way in (WITH, WHOLE):
        assert not np.allclose(found.values[way]["inner product"], found.values[WITHOUT]["inner product"], atol=1e-4)
    products = found.values[WITHOUT]["inner product"]
    for product, question, number in zip(products, QUESTIONS, range(COUNT), strict=True):
        (hits_of_all,) = dense.search([question.text], len(PASSAGES))
        gold_score = next(
            h.score for h in hits_of_all if h.passage.title.startswith(WORDS[number]) and "|" in h.passage.text
        )
        assert product == pytest.approx(gold_score, abs=1e-6)
    table = fields_table(found, BOOTSTRAP)
    own, other, lost = (table.rows[name][0].value for name in (WITHOUT, WITH, f"{WITHOUT} - {WITH}"))  # type: ignore[union-attr]
    assert lost == pytest.approx(own - other)


def test_without_a_gold_table_nothing_is_measured(dense: DenseRetriever, tmp_path: Path) -> None:
    assert embed_tables(dense, OTHERS, 2, 1.0) is None
    assert "no gold segment is a table" in fields_table(None, BOOTSTRAP).rows[WITHOUT][0].reason  # type: ignore[union-attr]
    draw_gammas(18, tmp_path / "gammas.png")
    assert (tmp_path / "gammas.png").stat().st_size > 1000
