"""The recorded commit is that of this project, or unknown; the recorded digests are those of the data files."""

import subprocess
from pathlib import Path

from common.files import sha256
from trainers.run.environment import commit, data_digests


def git(folder: Path, *arguments: str) -> str:
    name = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    return subprocess.run(
        ["git", *name, *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_commit_is_that_of_the_checkout_itself(tmp_path) -> None:
    inside = tmp_path / "env/site-packages/lightning_rag/source"
    inside.mkdir(parents=True)
    assert commit(inside) == "unknown"
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("a")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "another project")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit(inside) == "unknown"
    assert commit(tmp_path) == head
    (tmp_path / "file").write_text("b")
    assert commit(tmp_path) == f"{head}+changes"


def test_the_digest_of_a_split_is_that_of_its_file(tmp_path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("x")
    sources = [str(file), f"{file}:TEST", "hf:squad:train"]
    assert [*data_digests(sources).values()] == [sha256(file), sha256(file), "hub"]
