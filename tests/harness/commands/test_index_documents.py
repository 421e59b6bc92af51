"""`infer.py index --documents`: a folder of documents becomes an index that is kept up to date, and answers cite it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common.files import digests
from harness.indexing.index_folder import open_index
from harness.retrievers.dense import DenseRetriever
from tests.helpers.commands import command, refused
from tests.helpers.document_folders import ASK, index, manual, passages, report, write_files

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with three documents below `manuals`."""
    write_files(
        tmp_path / "manuals",
        {"alba.md": manual("Alba"), "brune.md": manual("Brune"), "old/corda.md": manual("Corda", chapters=1)},
    )
    return tmp_path


def test_answers_cite_document_and_headings_and_print_the_table(folder: Path) -> None:
    ended = index(folder)
    assert "manuals: 3 documents (3 read), 14 segments (11 text, 3 table)." in ended.err
    asked = command(folder, "infer.py", *ASK, "indexes/lexical", "--system.k", "2", "--question", "ratings Corda")
    assert "Manual of the Corda [old/corda.md: Ratings of the Corda]" in asked.out
    assert "   | Corda 1 | 24 V |\n   | Corda 2 | 48 V |\n" in asked.out
    asked = command(folder, "infer.py", *ASK, "indexes/lexical", "--question", "ratings Corda", "--json")
    found = [hit["passage"] for hit in json.loads(asked.out)["evidence"]]
    table = next(each for each in found if each["metadata"]["kind"] == "table")
    assert table["text"] == "| model | supply voltage |\n| --- | --- |\n| Corda 1 | 24 V |\n| Corda 2 | 48 V |"
    assert table["metadata"].items() >= {"document": "old/corda.md", "document_title": "Manual of the Corda"}.items()
    assert table["metadata"]["headings"] == ["Ratings of the Corda"]


def test_equal_texts_and_equal_documents_are_shown_once_with_all_their_names(folder: Path) -> None:
    warning = "# {0}\n\n{0} pumps water.\n\n## Warning\n\nDisconnect the mains before cleaning.\n"
    copies = {f"{name}.md": warning.format(name) for name in ("xeno", "yari", "zeta")}
    write_files(folder / "manuals", {**copies, "copy of alba.md": manual("Alba")})
    ended = index(folder)
    assert "6 documents (6 read), 20 segments" in ended.err
    assert "left out: 1 the same content as another" in ended.err
    assert report(folder)["copy of alba.md"]["copy_of"] == "alba.md"
    asked = command(folder, "infer.py", *ASK, "indexes/lexical", "--system.k", "1", "--question", "Alba pump")
    assert "1. Manual of the Alba [alba.md (also copy of alba.md)]" in asked.out
    asked = command(folder, "infer.py", *ASK, "indexes/lexical", "--question", "disconnect mains cleaning", "--json")
    evidence = [hit["passage"] for hit in json.loads(asked.out)["evidence"]]
    (shown,) = [passage for passage in evidence if passage["text"].startswith("Disconnect")]
    found = [shown["metadata"]["document"], *shown["metadata"]["copies"]]
    assert sorted(found) == ["xeno.md", "yari.md", "zeta.md"]


def test_only_what_has_changed_is_read_again(folder: Path) -> None:
    write_files(folder / "manuals", {"notes.md": "No heading and no title.\n"})
    index(folder)
    (folder / "manuals/alba.md").touch()
    ended = index(folder)
    assert "4 documents (0 read, 4 unchanged)" in ended.err
    assert "the index is up to date" in ended.err

    stored = folder / "indexes/manuals.documents/read"
    read_at = {path: path.stat().st_mtime_ns for path in stored.glob("*/*/document.jsonl")}
    (folder / "manuals/alba.md").rename(folder / "manuals/alba-2.md")
    (folder / "manuals/notes.md").rename(folder / "manuals/remarks.md")
    index(folder)
    assert {path: path.stat().st_mtime_ns for path in stored.glob("*/*/document.jsonl")} == read_at
    titles = {row["metadata"]["document"]: row["title"].split(" > ")[0] for row in passages(folder)}
    of_names = {name: f"Manual of the {name}" for name in ("Alba", "Brune", "Corda")}
    assert titles == {  # a document without a title has its file's name
        "alba-2.md": of_names["Alba"], "brune.md": of_names["Brune"], "old/corda.md": of_names["Corda"],
        "remarks.md": "remarks",
    }  # fmt: skip

    (folder / "manuals/alba-2.md").write_text(manual("Alba deluxe"))
    (folder / "manuals/brune.md").unlink()
    assert "3 documents (1 read, 2 unchanged)" in index(folder).err
    rows = passages(folder)
    texts = {row["text"] for row in rows}
    assert ("The Alba deluxe is a pump." in texts, "The Alba is a pump." in texts) == (True, False)
    assert {row["metadata"]["document"] for row in rows} == {"alba-2.md", "old/corda.md", "remarks.md"}
    kept = sorted(path.name for path in stored.iterdir())
    assert kept == sorted(row["sha256"][:32] for row in report(folder).values())


def test_workers_change_nothing_and_all_kinds_of_index_share_what_was_read(folder: Path, encoder_folder: str) -> None:
    write_files(folder / "manuals", {f"more/{name}.md": manual(name) for name in "abcdefghij"})
    write_files(folder / "manuals", {"more/copy.md": manual("d"), "more/broken.md": b"\xff\xfe\xfd", "z.md": ""})
    found = []
    for workers in ("1", "3"):
        kept = ("--reading.document_cache", f"kept-{workers}")
        index(folder, "--workers", workers, *kept, out=f"indexes/{workers}")
        rows = report(folder, f"kept-{workers}")
        for row in rows.values():
            row.pop("seconds", None)
        found.append((digests(folder / "indexes" / workers), rows))
    assert found[0] == found[1]
    ended = index(
        folder, "--dense.encoder", encoder_folder, "--device", "cpu", *kept, out="indexes/dense", kind="dense"
    )
    assert "(0 read, 14 unchanged)" in ended.err
    assert open_index(folder / "indexes/dense").corpus == open_index(folder / "indexes/3").corpus
    (hits,) = DenseRetriever(folder / "indexes/dense", "cpu").search(["Alba"], 90)
    assert {"alba.md", "brune.md", "old/corda.md"} <= {(hit.passage.metadata or {})["document"] for hit in hits}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_killed_command_goes_on_where_it_was(folder: Path) -> None:
    many = {f"{number:03}.md": manual(f"model {number}", chapters=30) for number in range(150)}
    write_files(folder / "manuals", many)
    typed = [sys.executable, str(ROOT / "infer.py"), "index", "--documents", "manuals", "--kind", "bm25",
             "--out", "indexes/lexical", "--workers", "1"]  # fmt: skip
    stored = folder / "indexes/manuals.documents/read"
    process = subprocess.Popen(typed, cwd=folder, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(stored.glob("*/*/segments-*.jsonl"))) < 20 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    writers = {int(path.name.split("-")[1]) for path in stored.rglob(".tmp-*")}
    while any(map(is_alive, writers)) and time.monotonic() < deadline:  # the reading process ends with its command
        time.sleep(0.05)
    done = len(list(stored.glob("*/*/segments-*.jsonl")))
    assert 20 <= done < 153
    ended = index(folder)
    read, unchanged = (int(ended.err.partition(before)[2].split()[0]) for before in ("153 documents (", "read, "))
    assert read + unchanged == 153
    assert unchanged >= done  # the process that was reading may have finished one more
    index(folder, "--reading.document_cache", "fresh", out="indexes/fresh")
    assert digests(folder / "indexes/lexical") == digests(folder / "indexes/fresh")
    assert not [path for path in stored.rglob(".tmp-*")]


def test_options_that_change_the_segments_need_leave_to_overwrite(folder: Path) -> None:
    index(folder)
    ended = index(folder, "--cutting.cascade", "none", fails=True)
    refused(ended, 2, "indexes/lexical holds another index (differs in: corpus, documents)", "--overwrite true")
    index(folder, "--cutting.cascade", "none", "--overwrite", "true")
    assert {row["title"] for row in passages(folder)} == {""}
    index(folder, "--cutting.chunk_words", "12", "--cutting.chunk_overlap", "2", out="indexes/chunks")
    assert all(len(row["text"].split()) <= 12 for row in passages(folder, "indexes/chunks"))
    titles = {row["title"] for row in passages(folder, "indexes/chunks")}
    assert titles == {f"Manual of the {name}" for name in ("Alba", "Brune", "Corda")}
    index(folder, "--cutting.max_words", "5", out="indexes/short")
    assert max(row["metadata"].get("parts", 1) for row in passages(folder, "indexes/short")) > 1


def test_an_index_of_other_documents_is_not_replaced(folder: Path) -> None:
    index(folder)
    write_files(folder / "others/manuals", {"x.md": manual("X")})
    typed = ("index", "--documents", "others/manuals", "--kind", "bm25", "--out", "indexes/lexical")
    refused(command(folder, "infer.py", *typed), 2, "another --reading.document_cache")
    ended = command(folder, "infer.py", *typed, "--reading.document_cache", "indexes/others")
    refused(ended, 2, "indexes/lexical holds another index (differs in: corpus, labels)")
