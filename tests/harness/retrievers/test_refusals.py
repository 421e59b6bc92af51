"""What indexes, retrievers and selections refuse: each by the class of its error and a word that names the argument.

What is refused writes nothing.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from common.errors import ArtifactError, DataError, MissingInputError, UserError
from common.records import Passage
from common.sealed_json import write_sealed
from documents.records import Segment, as_passage
from harness.indexing.faiss_building import build_approximate
from harness.indexing.faiss_devices import place
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.corpora import absent_gold, check_same_corpus
from harness.retrievers.dense import DenseRetriever, build_dense
from harness.retrievers.fusion import FusedRetriever
from harness.retrievers.keywords import build_keywords
from harness.retrievers.links import LinkRetriever, build_links
from harness.retrievers.multi_query import MultiQueryRetriever
from harness.retrievers.multi_route import MultiRouteRetriever
from harness.retrievers.rerank import RerankedRetriever
from harness.retrievers.rerank_prior import PRIOR, RerankPrior
from harness.retrievers.rm3 import Rm3Retriever
from harness.selection.options import SelectionOptions
from harness.selection.tuned import SELECTION, Tuned, completed, read_selection
from harness.systems.dmqr import Dmqr
from models.calibration import Calibration
from models.pretrained import resolve
from tests.helpers.rerag_world import write_serving
from tests.helpers.small_world import corpus, write_encoder
from tests.helpers.table_rewriter import CountingRetriever, TableRewriter

PASSAGES, GIB = corpus(30), 2**30
CHOSEN = {3: Tuned(2, 12, 0.4, 3, True), 4: Tuned(3, 8, 0.7, 1, False)}
NONE, ONE = TableRewriter({}), np.ones((100, 16), dtype=np.float32)


class At:
    """Indexes, models and files, in a folder in which nothing else may appear."""

    def __init__(self, folder: Path, encoder: SentenceEncoder, t5: Path) -> None:
        self.folder, self.encoder, self.out = folder, encoder, folder / "out"
        build_bm25(PASSAGES, folder / "bm25")
        build_bm25([Passage.of("", "other words")], folder / "other")
        build_dense(PASSAGES, folder / "dense", encoder)
        whole = Segment("a.pdf", "Alto", ("Use",), "text", "hold it", "hold it")
        for name, metadata in (("path", whole.path), ("pathless", ())):
            build_bm25([as_passage(whole, metadata)], folder / name)
        self.bm25, self.other = (Bm25Retriever(folder / name) for name in ("bm25", "other"))
        self.dense = DenseRetriever(folder / "dense", "cpu")
        self.serving = write_serving(t5, folder / "serving", generator=None)
        self.reader = write_serving(t5, folder / "reader", estimator=False)
        torn = write_serving(t5, folder / "torn", generator=None) / "estimator/model.safetensors"
        torn.write_bytes(bytes([*(whole := torn.read_bytes())[:-1], whole[-1] ^ 1]))
        PRIOR.write(folder / "prior.json", RerankPrior(3.0, Calibration(2.0, -1.0), "abc").content)
        (folder / "edited.json").write_text((folder / "prior.json").read_text().replace("3.0", "4.0"))
        chosen = {str(k): asdict(each) for k, each in CHOSEN.items()}
        SELECTION.write(folder / "selection.json", {"selection": chosen, "classifier": "abc", "chosen_on": {}})
        (folder / "empty.txt").write_text("\n")
        self.spare = folder / "spare"  # where an unfinished build may stay
        self.spare.mkdir()
        for name, options in (("far", {"seed": 1}), ("pooled", {"pooling": "max"}), ("deep", {})):
            write_encoder(folder / name, **options)
        (folder / "deep/modules.json").write_text('[{"type": "sentence_transformers.models.Dense", "path": "3_Dense"}]')

    def queries(self, **options: Any) -> MultiQueryRetriever:
        return MultiQueryRetriever(self.bm25, **options)

    def chosen(self, selection: object) -> object:
        """A sealed file of other options."""
        write_sealed(self.folder / "selection.json", {"selection": selection, "classifier": "abc", "chosen_on": {}})
        return read_selection(self.folder / "selection.json", "abc")

    def cut(self, change: Callable[[str], str]) -> object:
        """The file of options, changed."""
        file = self.folder / "selection.json"
        file.write_text(change(file.read_text()))
        return read_selection(file, "abc")


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory, encoder: SentenceEncoder, checkpoints: dict[str, Path]) -> At:
    return At(tmp_path_factory.mktemp("refusals"), encoder, checkpoints["t5"])


Case = tuple[str, Callable[[At], object], type[Exception], str]
CASES: list[Case] = [
    ("an empty corpus", lambda at: build_bm25([], at.out), DataError, "holds no passage"),
    ("a corpus without words", lambda at: build_bm25([Passage.of("", "? !")], at.out), DataError, "contains a word"),
    ("an empty corpus of vectors", lambda at: build_dense([], at.out, at.encoder), DataError, "holds no passage"),
    ("no keyword", lambda at: build_keywords([Passage.of("", "all is small")], at.out), DataError, "no critical"),
    ("an empty file of keywords", lambda at: build_keywords(PASSAGES, at.out, given=at.folder / "empty.txt"),
        DataError, "has no keyword"),
    ("a lost file of keywords", lambda at: build_keywords(PASSAGES, at.out, given=at.folder / "none"),
        DataError, "none"),
    ("no title", lambda at: build_links([Passage.of("", "text"), Passage.of("?!", "text")], at.out),
        DataError, "No passage of the corpus has a title"),
    ("HNSW without links", lambda at: build_dense(PASSAGES, at.out, at.encoder, faiss_index="HNSW1"),
        UserError, "faiss_index HNSW1 .*flat"),
    *((f"FAISS's {slip}", lambda at, slip=slip: build_dense(PASSAGES, at.out, at.encoder, faiss_index=slip),
        UserError, f"faiss_index {slip} .*flat")
        for slip in ("IVF31,Flat", "IVF0,Flat", "ivf", "IVF2,PQ4x8np", "IVF2,PQ3x4np", "PQ4")),
    *((f"FAISS's {kind} of few vectors", lambda at, kind=kind: build_approximate(ONE, kind, at.out),
        UserError, f"{kind} cannot be built of 100 vectors") for kind in ("OPQ8,IVF4,PQ8x8np", "IDMap,Flat")),
    ("a small GPU", lambda at: place("cuda", "flat", 8 * GIB, 1, [GIB].__getitem__),
        UserError, "index device cuda: it takes 9.5 GiB on GPU 0, where 1.0 GiB are free. Choose cpu, or"),
    ("one of two small GPUs", lambda at: place("cuda", "flat", 8 * GIB, 2, [6 * GIB, 6 * GIB].__getitem__),
        UserError, "or all, which splits it"),
    ("two small GPUs", lambda at: place("all", "flat", 8 * GIB, 2, [9 * GIB, GIB].__getitem__),
        UserError, "index device all: it takes 5.5 GiB on each of 2 GPUs, where 1.0 GiB"),
    ("a graph on a GPU", lambda at: place("cuda", "HNSW8", 8 * GIB, 1, [GIB].__getitem__), UserError, "HNSW"),
    ("no GPU", lambda at: place("all", "flat", 8 * GIB, 0, [].__getitem__), UserError, "no GPU"),
    ("vectors that overflow", lambda at: build_dense(PASSAGES, at.spare / "out", overflowing(at.encoder)),
        UserError, "not finite"),
    *((f"{tokens} tokens", lambda at, tokens=tokens: SentenceEncoder(at.encoder.name, "cpu", max_tokens=tokens),
        UserError, "max_tokens must be 3 to 32") for tokens in (2, 33)),
    ("an unknown module", lambda at: SentenceEncoder(str(at.folder / "deep"), "cpu"), UserError, "Dense modules"),
    ("a folder without a model", lambda at: resolve(str(at.folder)), MissingInputError, "holds no model"),
    ("a model that is nowhere", lambda at: resolve("no/such-model"), MissingInputError, "hf download .*folder"),
    *((f"a {name} encoder", 
        lambda at, name=name: DenseRetriever(at.folder / "dense", "cpu", str(at.folder / name)).load(), ArtifactError,
        "another encoder") for name in ("far", "pooled")),
    ("no index", lambda at: Bm25Retriever(at.folder / "none").load(), MissingInputError, "infer.py index .*bm25"),
    ("BM25 as vectors", lambda at: DenseRetriever(at.folder / "bm25").load(), ArtifactError, "a bm25 index, .* dense"),
    ("vectors as BM25", lambda at: Bm25Retriever(at.folder / "dense").load(), ArtifactError, "is a dense index"),
    ("BM25 as links", lambda at: LinkRetriever(at.folder / "bm25").load(), ArtifactError, "is a bm25 index, .* links"),
    ("another k1", lambda at: build_bm25(PASSAGES, at.folder / "bm25", k1=1.2), UserError, "differs in: k1"),
    ("routes of two corpora", lambda at: MultiRouteRetriever(at.dense, at.other).load(), ArtifactError, "corpora"),
    ("segments with other metadata", lambda at: check_same_corpus(
        [Bm25Retriever(at.folder / name) for name in ("path", "pathless")]), ArtifactError, "different corpora"),
    ("no gold passage", lambda at: absent_gold(at.bm25, {"none"}), ArtifactError, "none of the 1 gold passages"),
    ("RM3 without BM25", lambda at: Rm3Retriever(CountingRetriever(at.bm25)), UserError, "retriever is Counting"),
    ("RM3 of two corpora", lambda at: Rm3Retriever(at.bm25, at.other).load(), ArtifactError, "different corpora"),
    ("nothing to fuse", lambda at: FusedRetriever([]), UserError, "one weight per retriever"),
    ("a weight of two", lambda at: FusedRetriever([at.bm25] * 2, [1.0]), UserError, "one weight per retriever"),
    ("weights of 0", lambda at: FusedRetriever([at.bm25] * 2, [0.0, 0.0]), UserError, "a weight above 0"),
    *((f"{n} scalings of two", lambda at, n=n: FusedRetriever([at.bm25] * 2, scaling=["raw"] * n), UserError, "scaling")
        for n in (1, 3)),
    ("a lost estimator", lambda at: RerankedRetriever(at.bm25, at.folder / "none").load(), MissingInputError, "none"),
    ("no estimator", lambda at: RerankedRetriever(at.bm25, at.reader, device="cpu").load(),
        ArtifactError, r"no estimator, only \['generator'\]"),
    ("a torn estimator", lambda at: RerankedRetriever(at.bm25, at.folder / "torn", device="cpu").load(),
        ArtifactError, "corrupt"),
    ("a prior of another estimator", lambda at: RerankedRetriever(at.bm25, at.serving, prior=at.folder / "prior.json"),
        ArtifactError, "another estimator"),
    ("an edited prior", lambda at: PRIOR.read(at.folder / "edited.json"), ArtifactError, "corrupt"),
    ("a lost prior", lambda at: PRIOR.read(at.folder / "none"), MissingInputError, "none"),
    ("a fifth value", lambda at: MultiQueryRetriever(at.bm25, None, (), 5, 3), UserError, "fusion is 3; .* rrf"),  # type: ignore[arg-type]
    ("two scorers", lambda at: at.queries(serving=at.serving, scorer=object()), UserError, "needs one scorer"),
    ("a prior for rrf", lambda at: Dmqr(at.bm25, fusion="rrf", prior=at.folder / "prior.json"), UserError, "and prior"),
    ("an unknown judge", lambda at: at.queries(scorer=object(), rewriter=NONE, judged_by="hyde"),
        UserError, "judged_by is 'hyde'; .*: question, gqr, kwr, par, cce[.]"),
    ("feedback that nobody reads", lambda at: at.queries(fusion="rrf", rewriter=NONE, feedback_retriever=at.bm25),
        UserError, "feedback_retriever"),
    ("k1 above k", lambda at: SelectionOptions(k=2, k1=3), UserError, "k1 is 3"),
    ("more kept than k", lambda at: SelectionOptions(keep_first=5), UserError, "keep_first is 5"),
    ("a budget that was not tuned", lambda at: completed(SelectionOptions("cfs", 5), CHOSEN, Path("x")),
        UserError, r"k = 3, 4, none for k = 5.*ks '\[5\]'"),
    ("options of another classifier", lambda at: read_selection(at.folder / "selection.json", "xyz"),
        ArtifactError, r"classifier abc, not for this one \(xyz\)"),
    ("options of no classifier", lambda at: read_selection(at.folder / "selection.json", None),
        ArtifactError, "no serving"),
    ("no file of options", lambda at: read_selection(at.folder / "none", "abc"), MissingInputError, r"infer\.py tune"),
    *((f"a file of options that is {what}", lambda at, change=change: at.cut(change), ArtifactError, r"infer\.py tune")
        for what, change in {"cut off": lambda text: text[:-9], "edited": lambda text: text.replace("0.4", "0.5"),
            "a list": lambda text: "[]", "empty": lambda text: ""}.items()),
    *((f"options {chosen}", lambda at, chosen=chosen: at.chosen(chosen), ArtifactError, "file of selection options")
        for chosen in ({"x": {}}, {"3": []}, {"3": {"k1": 2}}, [], {"3": asdict(CHOSEN[3]) | {"deep": 4}},
            {"3": asdict(CHOSEN[3]) | {"k1": 4}})),
]  # fmt: skip
if not torch.cuda.is_available():
    CASES += [
        (f"{options} without a GPU", lambda at, options=options: DenseRetriever(at.folder / "dense", **options).load(),
            UserError, "cuda|GPU")
        for options in ({"device": "cuda"}, {"index_device": "cuda"}, {"index_device": "all"})
    ]  # fmt: skip


def overflowing(encoder: SentenceEncoder) -> SentenceEncoder:
    """An encoder that returns no numbers."""
    made = copy(encoder)
    made.encode_passages = lambda texts: np.full((len(texts), encoder.dimensions), np.nan, np.float32)  # type: ignore
    return made


@pytest.mark.parametrize(("call", "error", "word"), [each[1:] for each in CASES], ids=[each[0] for each in CASES])
def test_it_is_refused(at: At, call: Callable[[At], object], error: type[Exception], word: str) -> None:
    kept, before = (at.folder / "selection.json").read_bytes(), sorted(at.folder.iterdir())
    with pytest.raises(error, match=word):
        call(at)
    (at.folder / "selection.json").write_bytes(kept)
    assert sorted(at.folder.iterdir()) == before
