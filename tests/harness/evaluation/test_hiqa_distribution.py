"""HiQA's Appendix C: cosines within documents, among homologous sections and of questions, by hand and against loops.

The four plots.
"""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.documents import Segment, as_passage
from common.records import GoldSegment, Passage, Question
from harness.evaluation.answer_scores import Bootstrap
from harness.evaluation.hiqa.distribution import (
    WITH,
    WITHOUT,
    Embedded,
    cohesion,
    contexts,
    distribution_tables,
    gold_places,
    heading_of,
    homologous,
    most_shared,
    shared_segments,
    unit,
)
from harness.evaluation.hiqa.planes import planes
from harness.evaluation.hiqa.projection import has_tsne
from harness.retrievers.dense import DenseRetriever, build_dense
from tests.helpers.retrieval_world import WORDS

HEADINGS = ("1 Safety", "2.1 Care", "Chapter 3: Parts")
BOOTSTRAP = Bootstrap(50)


def parts() -> list[Segment]:
    """Four documents of three sections; only one document has a fourth."""
    found = [
        (WORDS[d], heading, f"{WORDS[4 + h]} {WORDS[10 - d]}") for d in range(4) for h, heading in enumerate(HEADINGS)
    ]
    found.append(("amber", "4 More", "delta ember"))
    return [Segment(f"{name}.txt", name, (heading,), "text", text, text) for name, heading, text in found]


def passages(cascade: bool) -> list[Passage]:
    return [as_passage(each, each.path if cascade else ()) for each in parts()]


QUESTIONS = [
    Question(str(d), f"{WORDS[4]} of {WORDS[d]}", gold_segments=(GoldSegment(f"{WORDS[d]}.txt", (WORDS[4],)),))
    for d in range(1, 4)
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, encoder) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("distribution")
    build_dense(passages(True), root / "path", encoder)
    build_dense(passages(False)[::-1], root / "none", encoder)  # another order: segments are matched, not their places
    build_dense([Passage.of("amber", "delta"), Passage.of("basin", "ember")], root / "other", encoder)
    return {name: root / name for name in ("path", "none", "other")}


@pytest.fixture(scope="module")
def dense(folders: dict[str, Path], encoder) -> DenseRetriever:
    return DenseRetriever(folders["path"], "cpu", encoder=encoder.name)


@pytest.fixture(scope="module")
def embedded(dense: DenseRetriever, folders: dict[str, Path]) -> Embedded:
    found = shared_segments(dense, folders["none"])
    assert found is not None
    return found


def test_segments_are_matched_whatever_their_order(dense: DenseRetriever, embedded: Embedded, encoder) -> None:
    assert [each.id for each in embedded.passages] == [each.id for each in passages(True)]
    alone = unit(encoder.encode_passages([each.text for each in passages(False)]))
    assert embedded.vectors[WITHOUT] == pytest.approx(alone, abs=1e-5)
    whole = unit(encoder.encode_passages([f"{each.title} {each.text}" for each in passages(True)]))
    assert embedded.vectors[WITH] == pytest.approx(whole, abs=1e-5)


def test_without_shared_segments_nothing_is_measured(dense: DenseRetriever, folders: dict[str, Path]) -> None:
    assert shared_segments(dense, folders["other"]) is None
    (table,) = distribution_tables(None, dense, QUESTIONS, BOOTSTRAP)
    assert table.rows[WITH][0].reason == "the two indexes share no segments"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("1 Safety", "safety"), ("10.2 Electrical data", "electrical data"),
        ("Chapter 9: Facts and figures", "facts and figures"), ("A.1 Wiring", "wiring"), ("IV. Care", "care"),
        ("B) Parts", "parts"), ("Part numbers", "part numbers"), ("A guide", "a guide"), ("I see", "i see"), ("7", "7"),
        ("Appendix B Units", "units"), ("6) Use", "use"),
    ],
)  # fmt: skip
def test_headings_without_numbers(heading: str, expected: str) -> None:
    assert heading_of(Passage("1", "text", metadata={"headings": ["1 Chapter", heading]})) == expected
    assert heading_of(Passage("1", "text", metadata={"headings": []})) == heading_of(Passage("1", "text")) == ""


def test_cohesion_by_hand() -> None:
    east, north = [1.0, 0.0], [0.0, 1.0]
    places = {"a": np.array([0, 1]), "b": np.array([2, 3]), "single": np.array([4])}
    apart = cohesion(np.array([east, east, north, north, [-1.0, 0.0]]), places)
    assert apart["within a document"].tolist() == [1, 1]
    assert apart["between documents"].tolist() == pytest.approx([(0 + 0 - 1) / 3, 0])
    assert apart["silhouette"].tolist() == [1, 1]
    mixed = cohesion(np.array([east, north, east, north]), {"a": np.array([0, 1]), "b": np.array([2, 3])})
    assert mixed["within a document"].tolist() == [0, 0]
    assert mixed["between documents"].tolist() == [0.5, 0.5]
    assert mixed["silhouette"].tolist() == [-0.5, -0.5]  # own 1, the other document's 0.5


@given(st.integers(0, 2**32 - 1))
def test_cohesion_equals_loops_and_scikit_learn(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(seed)
    vectors = unit(random.normal(size=(9, 4)))
    labels = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])[random.permutation(9)]
    places = {str(label): np.flatnonzero(labels == label) for label in range(3)}
    found = cohesion(vectors, places)
    cosines = vectors @ vectors.T
    for label, own in enumerate(places.values()):
        assert found["within a document"][label] == pytest.approx(np.mean([cosines[p] for p in combinations(own, 2)]))
        rest = np.flatnonzero(labels != label)
        assert found["between documents"][label] == pytest.approx(cosines[np.ix_(own, rest)].mean())
        samples = metrics.silhouette_samples(vectors, labels, metric="cosine")
        assert found["silhouette"][label] == pytest.approx(samples[own].mean())
    assert found["difference"] == pytest.approx(found["within a document"] - found["between documents"])


@given(st.integers(0, 2**32 - 1))
def test_homologous_sections_equal_loops(seed: int) -> None:
    random = np.random.default_rng(seed)
    vectors = unit(random.normal(size=(8, 3)))
    documents = ["a", "a", "b", "b", "c", "c", "c", "a"]
    places = {"safety": np.array([0, 2, 4]), "care": np.array([1, 3, 5, 7])}
    found = homologous(vectors, places, documents)
    for number, own in enumerate(places.values()):
        pairs = [(i, j) for i in own for j in range(8) if documents[i] != documents[j]]
        same = np.mean([vectors[i] @ vectors[j] for i, j in pairs if j in own])
        other = np.mean([vectors[i] @ vectors[j] for i, j in pairs if j not in own])
        assert (found["same heading"][number], found["other heading"][number]) == pytest.approx((same, other))
        assert found["difference"][number] == pytest.approx(same - other)


def test_contexts_by_hand() -> None:
    vectors = unit(np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]]))
    found = contexts(vectors, np.array([[1.0, 0.0], [1.0, 0.0]]), [[0], [1, 2]])
    assert found["gold segment"].tolist() == pytest.approx([1, 0.3])
    assert found["nearest other"].tolist() == pytest.approx([0.6, 1])
    assert found["difference"].tolist() == pytest.approx([0.4, -0.7])
    assert found["gold nearest %"].tolist() == [100, 0]


def test_tables_and_plots(embedded: Embedded, dense: DenseRetriever, tmp_path: Path) -> None:
    documents, headings, asked = distribution_tables(embedded, dense, QUESTIONS, BOOTSTRAP)
    assert "Means over 4 documents" in documents.note
    assert "Means over 3 headings" in headings.note  # the fourth stands in one document
    assert "Means over 3 questions" in asked.note
    assert most_shared(embedded) == "care"  # of three in four documents the first by name
    assert gold_places(embedded, QUESTIONS) == [[3], [6], [9]]
    with_title = dict(zip(documents.columns, documents.rows[WITH], strict=True))["within a document"]
    assert with_title is not None
    assert with_title.value == pytest.approx(
        cohesion(embedded.vectors[WITH], embedded.places_by_document())["within a document"].mean()
    )
    for table in (documents, headings, asked):
        own, other, both = (table.rows[name][0].value for name in (WITH, WITHOUT, f"{WITH} - {WITHOUT}"))  # type: ignore[union-attr]
        assert both == pytest.approx(own - other)
    plots = planes(embedded, QUESTIONS, dense.encode_queries, 0)
    assert [*plots] == [
        "c2_single_document.png", "c3_several_documents.png", "c4_homologous_sections.png",
        "c5_question_and_context.png"
    ]  # fmt: skip
    for name, draw in plots.items():
        draw(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000


def test_planes_without_scikit_learn(embedded: Embedded, dense: DenseRetriever, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("harness.evaluation.hiqa.planes.has_tsne", lambda: False)
    for name, draw in planes(embedded, QUESTIONS, dense.encode_queries, 0).items():
        draw(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    assert isinstance(has_tsne(), bool)
