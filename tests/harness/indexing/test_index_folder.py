"""Index folders: what is refused, with which cure, and what survives."""

import hashlib
import json
from pathlib import Path

import pytest

from common import files
from common.errors import ArtifactError, UserError
from common.files import digests
from common.records import Passage
from harness.commands.verify import verify
from harness.indexing import analyser, index_folder
from harness.indexing.index_folder import Build, open_index
from harness.indexing.passage_store import PassageStore
from harness.retrievers import keywords, links
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from tests.helpers.small_world import corpus

CORPUS = corpus(30)


@pytest.fixture
def folder(tmp_path) -> Path:
    build_bm25(CORPUS, tmp_path / "index")
    return tmp_path / "index"


def test_the_manifest_says_what_is_inside_and_passages_come_back_unchanged_and_once(tmp_path) -> None:
    odd = [Passage("1", 'a "quoted"\ntext', "é漢", "web"), Passage("2", "\u2028 separator"), *CORPUS]
    build_bm25([*odd, *reversed(odd)], tmp_path)
    manifest, opened = json.loads((tmp_path / "index.json").read_text()), open_index(tmp_path)
    store = PassageStore(tmp_path)
    assert (opened.passages, list(store), store[len(odd) - 1]) == (len(odd), odd, odd[-1])
    assert opened.corpus == hashlib.sha256("".join(f"{p.id}\n" for p in odd).encode()).hexdigest()
    assert opened.recipe["kind"] == "bm25"
    assert manifest["files"].keys() == digests(tmp_path).keys() - {"index.json"}
    assert manifest["versions"].keys() == {"bm25s", "numpy"}
    for position in (-1, len(odd)):
        with pytest.raises(IndexError):
            store[position]


@pytest.mark.parametrize("verify", ["full", "sampled"])
def test_every_damage_is_found(folder, verify) -> None:
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        whole = file.read_bytes()
        flips = [(place, 4) for place in (0, len(whole) // 3, len(whole) // 2, len(whole) - 2)]
        if file.name == "index.json":  # the manifest is sealed whole
            flips = [(place, 1) for place in range(len(whole) - 1)]
        damaged = [whole[:-3], *(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :] for at, bit in flips)]
        how = "off" if file.name == "index.json" else verify
        for each in damaged:
            file.write_bytes(each)
            with pytest.raises(ArtifactError, match="overwrite true"):
                open_index(folder, verify_files=how)
        file.unlink()
        with pytest.raises(ArtifactError, match="missing"):
            open_index(folder, verify_files=verify)
        file.write_bytes(whole)
    Bm25Retriever(folder, verify=verify).load()


def test_off_does_not_look_but_at_the_offsets(folder) -> None:
    text = folder / "passages.jsonl"
    text.write_bytes(text.read_bytes().replace(b"amber", b"AMBER"))
    (folder / "stray.txt").write_text("")  # an unlisted file is ignored
    Bm25Retriever(folder, verify="off").load()
    with pytest.raises(ArtifactError, match=r"passages\.jsonl is corrupt"):
        Bm25Retriever(folder).load()
    text.write_bytes(text.read_bytes()[:-5])
    with pytest.raises(ArtifactError, match="does not match its table"):
        Bm25Retriever(folder, verify="off").load()


def flipped(text: bytes, place: int) -> bytes:
    return text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :]


def test_of_a_large_file_parts_are_verified_and_all_of_it_when_told(folder, monkeypatch, capsys) -> None:
    out, text = folder, folder / "passages.jsonl"
    monkeypatch.setattr(files, "_SAMPLE_BLOCKS", 4)
    monkeypatch.setattr(files, "_SAMPLE_BYTES", 8)
    whole = text.read_bytes()
    text.write_bytes(flipped(whole, 20))  # in no block; an index from before there were samples is verified in full
    with pytest.raises(ArtifactError, match="its sha256"):
        open_index(out)
    build_bm25(CORPUS, out, build=Build(overwrite=True))
    begins = [(len(whole) - 8) * block // 3 for block in range(4)]
    for position in range(0, len(whole), 29):
        text.write_bytes(flipped(whole, position))
        if any(begin <= position < begin + 8 for begin in begins):
            with pytest.raises(ArtifactError, match=r"passages\.jsonl is corrupt: its sampled"):
                open_index(out)
        else:
            assert open_index(out).passages == len(CORPUS)
            assert f"{32 / len(whole):.1%} of passages.jsonl" in capsys.readouterr().err
        for verified in (lambda: open_index(out, verify_files="full"), lambda: verify(out)):
            with pytest.raises(ArtifactError, match=r"passages\.jsonl is corrupt: its sha256"):
                verified()
    with pytest.raises(ArtifactError, match="corrupt"):  # to build it again verifies all of it
        build_bm25(CORPUS, out)
    build_bm25(CORPUS, out, build=Build(overwrite=True))
    assert text.read_bytes() == whole
    text.write_bytes(whole[:-9] + whole[-8:])
    with pytest.raises(ArtifactError, match="bytes instead of"):
        open_index(out)
    text.write_bytes(whole)
    verify(out)
    assert f"every byte is as it was built, {len(CORPUS)} passages" in capsys.readouterr().err


def test_the_samples_of_a_file_are_spread_over_all_of_it(tmp_path) -> None:
    size, file = 2**24 + 12345, tmp_path / "large"
    file.write_bytes(b"\0" * size)
    digest = files.sampled_sha256(file)
    for begin in (0, size // 3, size - 2**17):  # a lost part of more than a 256th is found wherever it is
        for byte in (b"\1", b"\0"):
            with file.open("r+b") as handle:
                handle.seek(begin)
                handle.write(byte * 2**17)
            assert (files.sampled_sha256(file) == digest) is (byte == b"\0")
    file.write_bytes(b"\0" * 2**24)
    assert files.sampled_sha256(file) is None


BM25, LINKS = (build_bm25, Bm25Retriever), (links.build_links, links.LinkRetriever)
KEYWORDS = (keywords.build_keywords, keywords.KeywordRetriever)


OLDER = [
    (BM25, analyser, "WORDS", 1),
    (KEYWORDS, keywords, "RECIPE", {"recognizer": "patterns", "version": 2}),
    (LINKS, links, "MATCHING", 1),
    (BM25, index_folder, "TEXT_FORMAT", "text alone"),
    (BM25, index_folder, "FORMAT", 2),
]


@pytest.mark.parametrize(("kind", "module", "version", "older"), OLDER)
def test_an_index_of_other_words_is_refused(tmp_path, monkeypatch, kind, module, version, older) -> None:
    (build, retriever), out, corpus = kind, tmp_path / "index", [Passage.of("Alto A100", "the Alto A100 pump")]
    with monkeypatch.context() as then:
        then.setattr(module, version, older)
        build(corpus, out)
    with pytest.raises(ArtifactError, match=r"infer.py index .*--out .*index --overwrite true"):
        retriever(out).load()
    with pytest.raises(UserError, match="--overwrite true"):
        build(corpus, out)
    build(corpus, out, build=Build(overwrite=True))
    assert len(retriever(out).search(["A100"], 1)[0]) == (kind != LINKS)


def test_another_index_is_built_only_when_told_and_a_failed_build_leaves_the_old(folder, capsys, monkeypatch) -> None:
    def fails(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    build_bm25(CORPUS, folder)
    assert "is up to date" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"differs in: corpus.*--overwrite true"):
        build_bm25(CORPUS[1:], folder)
    with monkeypatch.context() as then:
        then.setattr("bm25s.BM25.save", fails)
        with pytest.raises(ArtifactError, match="No space left"):
            build_bm25(CORPUS[1:], folder, build=Build(overwrite=True))
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before
    build_bm25(CORPUS[1:], folder, build=Build(overwrite=True))
    assert open_index(folder).passages == len(CORPUS) - 1
    assert [p.name for p in folder.parent.iterdir()] == ["index"]  # no temporary left


def test_what_is_no_index_is_never_replaced(tmp_path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("the only copy")
    with pytest.raises(UserError, match="is not an index"):
        build_bm25(CORPUS, tmp_path / "thesis", build=Build(overwrite=True))
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "the only copy"
    (tmp_path / "empty").mkdir()
    build_bm25(CORPUS, tmp_path / "empty")
    Bm25Retriever(tmp_path / "empty").load()
