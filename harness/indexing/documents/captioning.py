"""Descriptions of images by a captioning model (HiQA, A.5).

Any image-to-text model of transformers with its processor, such as BLIP.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForImageTextToText, AutoProcessor

from common.errors import ArtifactError
from common.files import digests
from common.packages import require
from common.progress import track
from common.records import clean
from common.sealed_json import fingerprint
from documents.folder.options import DocumentPass, code_version
from documents.records import Document, Image
from models.devices import resolve_device
from models.loading import load_network
from models.pretrained import resolve

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


class ImageCaptioner:
    """Describes the images of documents that were read, so that they are found by what they show.

    Args:
        model: Folder or hub id of an image-to-text model, e.g. Salesforce/blip-image-captioning-base.
        device: auto, cpu, cuda or cuda:N.
        max_new_tokens: Length of a description.
        batch: Images described together.

    Raises:
        UserError: If pillow is missing, or the device is not possible here.
        MissingInputError: If the model is not found.
        ArtifactError: If it is no image-to-text model.
    """

    def __init__(self, model: str, device: str = "auto", max_new_tokens: int = 40, batch: int = 8) -> None:
        require("documents", "reading.captioner", modules=["PIL"])
        folder = resolve(model)
        self.device, self.max_new_tokens, self.batch = resolve_device(device), max_new_tokens, batch
        try:
            self._processor = AutoProcessor.from_pretrained(folder, trust_remote_code=False)
            self._network: Any = load_network(AutoModelForImageTextToText, folder).to(self.device).eval()
        except (OSError, ValueError, KeyError) as error:
            raise ArtifactError(
                f"{model} is no image-to-text model with a processor ({error}). Name one such as BLIP."
            ) from error
        recipe = {"model": fingerprint(digests(folder))[:16], "max_new_tokens": max_new_tokens}
        version = code_version(Path(__file__).parent.glob("*.py"))
        self.document_pass = DocumentPass("captioner", recipe, version, self.convert)  # for `read_folder`

    def describe(self, images: Sequence[Image]) -> list[str]:
        """A description of each image; empty for a file that is no bitmap, such as SVG, or cannot be decoded."""
        pictures = [_picture(image) for image in images]
        known = [place for place, picture in enumerate(pictures) if picture is not None]
        found = [""] * len(images)
        for start in range(0, len(known), self.batch):
            places = known[start : start + self.batch]
            inputs = self._processor(images=[pictures[place] for place in places], return_tensors="pt")
            with torch.inference_mode():
                ids_BT = self._network.generate(
                    **inputs.to(self.device), max_new_tokens=self.max_new_tokens, do_sample=False
                )
            for place, text in zip(places, self._processor.batch_decode(ids_BT, skip_special_tokens=True), strict=True):
                found[place] = clean(text)
        return found

    def convert(self, documents: Iterator[Document]) -> Iterator[Document]:
        """The documents, in order; the description of every image follows the text that is written in it."""
        for document in track(documents, None, "describing images"):
            texts = iter(self.describe([block for block in document.blocks if isinstance(block, Image)]))
            blocks = (
                replace(block, text=f"{block.text} {next(texts)}".strip()) if isinstance(block, Image) else block
                for block in document.blocks
            )
            yield replace(document, blocks=tuple(blocks))


def _picture(image: Image) -> "Picture | None":
    from PIL import Image as Pictures
    from PIL import UnidentifiedImageError

    try:
        with Pictures.open(io.BytesIO(image.data)) as picture:
            return picture.convert("RGB")
    except (UnidentifiedImageError, OSError, ValueError, Pictures.DecompressionBombError):
        return None
