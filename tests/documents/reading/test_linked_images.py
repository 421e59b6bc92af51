"""Images that documents link to: nothing outside the folder of documents is read, and a change is noticed."""

from pathlib import Path

import pytest

from documents.reading.linked_images import LinkedImages


@pytest.fixture
def images(tmp_path: Path) -> LinkedImages:
    (tmp_path / "root/sub").mkdir(parents=True)
    (tmp_path / "root/a b.png").write_bytes(b"first")
    (tmp_path / "root/sub/c.png").write_bytes(b"second")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "root/link.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "root/loop.png").symlink_to("loop.png")
    return LinkedImages(tmp_path / "root/sub/page.html", tmp_path / "root")


def test_images_in_the_folder_are_read(images: LinkedImages) -> None:
    assert images("c.png") == b"second"
    assert images("../a%20b.png") == images("../a b.png") == b"first"
    assert images("./c.png?version=2#top") == b"second"


@pytest.mark.parametrize(
    "link",
    ["../../secret.png", "../link.png", "../loop.png", "/etc/passwd", "file:///etc/passwd", "http://192.0.2.1/x.png",
        "//192.0.2.1/x.png", "..", "", "missing.png", "\0", "http://[broken", "c.png/" + "x" * 5000,
        "%2e%2e/%2e%2e/secret.png"],
)  # fmt: skip
def test_nothing_else_is_read(images: LinkedImages, link: str) -> None:
    assert images(link) is None
    assert images.digests == {link: ""}


def test_a_change_is_noticed(images: LinkedImages, tmp_path: Path) -> None:
    images("c.png")
    images("missing.png")
    digests = dict(images.digests)

    def later() -> LinkedImages:
        return LinkedImages(tmp_path / "root/sub/page.html", tmp_path / "root")

    assert later().unchanged(digests)
    (tmp_path / "root/sub/missing.png").write_bytes(b"now it is there")
    assert not later().unchanged(digests)
    (tmp_path / "root/sub/missing.png").unlink()
    (tmp_path / "root/sub/c.png").write_bytes(b"changed")
    assert not later().unchanged(digests)
    moved = LinkedImages(tmp_path / "root/page.html", tmp_path / "root")
    assert not moved.unchanged(digests)
