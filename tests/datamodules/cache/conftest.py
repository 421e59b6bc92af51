"""Where questions are stored: by the size of their files, or always on disk."""

import pytest

from datamodules.cache import content_digests


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file counts as large."""
    monkeypatch.setattr(content_digests, "SMALL_BYTES", 0)


@pytest.fixture(params=["memory", "disk"])
def large(request: pytest.FixtureRequest) -> bool:
    """Whether files count as large."""
    if request.param == "disk":
        request.getfixturevalue("on_disk")
    return request.param == "disk"
