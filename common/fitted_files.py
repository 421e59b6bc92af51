"""Files that `infer.py tune` fits, such as weights or thresholds: sealed JSON, each read by the part that uses it.

Standard library and filelock only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from common.errors import ArtifactError, MissingInputError, UserError
from common.files import read_json
from common.outputs import OutputFile
from common.sealed_json import check_fields, unsealed, write_sealed

CURE = "Fit it again: infer.py tune on validation questions."
_DAMAGED = "Remove it, and fit it again: infer.py tune on validation questions."  # it replaces what it can read alone
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FittedFile(Generic[T]):
    """One kind of fitted file.

    Args:
        what: What it is, such as "a file of weights"; for error lines.
        parse: What the content says; a ValueError or a UserError says why it cannot be used.
        fields: Those that it must have: see `common.sealed_json.check_fields`.
    """

    what: str
    parse: Callable[[dict[str, Any]], T]
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def output(self) -> OutputFile:
        """What `infer.py tune` may replace."""
        return OutputFile("`infer.py tune`", self.what, self.is_one)

    def write(self, path: Path, content: Mapping[str, Any]) -> None:
        """Write a file; one that exists is replaced.

        Args:
            path: The file.
            content: JSON types.

        Raises:
            ArtifactError: If writing fails.
        """
        write_sealed(path, content)

    def read(self, path: Path) -> T:
        """What a file says.

        Raises:
            MissingInputError: If there is no such file.
            ArtifactError: If it is corrupt, was edited, or is another file.
        """
        if not path.is_file():
            raise MissingInputError(f"{path} does not exist, where {self.what} is needed. {CURE}")
        content = unsealed(path, read_json(path, _DAMAGED), _DAMAGED)
        check_fields(str(path), content, self.fields, _DAMAGED)
        try:
            return self.parse(content)
        except (AttributeError, LookupError, TypeError, ValueError, UserError) as error:
            raise ArtifactError(f"{path} is not {self.what} of this release: {error}. {_DAMAGED}") from error

    def is_one(self, path: Path) -> bool:
        """Whether a file is one that can be read."""
        try:
            self.read(path)
        except UserError:
            return False
        return True
