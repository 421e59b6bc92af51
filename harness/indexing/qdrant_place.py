"""Where a collection of the Qdrant vector database is."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import UserError
from common.packages import require
from harness.runtime.services import check_url, key_in_environment

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

_SECONDS = 60  # that a request may take


@dataclass(frozen=True)  # no slots: jsonargparse reads the default value by its attributes
class CollectionPlace:
    """A collection of the Qdrant vector database; no url and no path: none.

    Args:
        url: Address of the server, such as http://localhost:6333.
        path: In the place of url, a folder of the client's local mode, for tests and small corpora.
        collection: Name of the collection; null: that of `out`.
        key_variable: Environment variable that holds the server's API key, if it needs one.
    """

    url: str | None = None
    path: Path | None = None
    collection: str | None = None
    key_variable: str | None = None

    @property
    def name(self) -> str:
        """Of the collection."""
        assert self.collection is not None
        return self.collection

    def check(self) -> None:
        """Raise UserError unless there is one place, with a valid address, and qdrant-client is installed."""
        if (self.url is None) == (self.path is None):
            raise UserError(
                "A Qdrant collection is on a server or in a folder: give url, such as http://localhost:6333, or path, "
                "and not both."
            )
        if self.url is not None:
            check_url("url", self.url, "http://localhost:6333")
        require("qdrant", "a Qdrant collection")

    def __str__(self) -> str:
        return f"{self.url or self.path} collection {self.collection}"

    def connect(self) -> "QdrantClient":
        """A client; whether a server answers is seen at the first request.

        Raises:
            UserError: As `check`, or if another process has opened the folder.
        """
        self.check()
        from qdrant_client import QdrantClient

        if self.url is not None:
            key = key_in_environment(self.key_variable) or None
            return QdrantClient(url=self.url, api_key=key, timeout=_SECONDS, check_compatibility=False)
        try:
            return QdrantClient(path=str(self.path))
        except RuntimeError as error:  # its lock
            raise UserError(f"{self.path} is open in another process: end it, or use a Qdrant server (url).") from error
