"""`infer.py verify`: every byte of an index is as it was built."""

from pathlib import Path

from common.progress import say
from harness.indexing.index_folder import open_index


def verify(index: Path) -> None:
    """Verify every byte of an index. Do it once after a copy: opening an index reads only parts of large files.

    Args:
        index: The folder of the index.

    Raises:
        MissingInputError: If there is no such folder.
        ArtifactError: If a file is missing or differs from what was built; says what to type.
    """
    say(f"{index}: every byte is as it was built, {open_index(index, verify_files='full').passages:,} passages.")
