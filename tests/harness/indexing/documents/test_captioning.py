"""Images described by a captioning model.

A tiny BLIP with random weights, through the folder of documents to the index.
"""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image as Pictures
from transformers import BertTokenizerFast, BlipConfig, BlipForConditionalGeneration, BlipProcessor
from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

from common.errors import ArtifactError, MissingInputError
from common.records import Passage
from documents.folder.corpus import read_folder
from documents.records import Document, Image, Paragraph
from harness.indexing.documents.captioning import ImageCaptioner

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] [DEC] [ENC] a pump valve with of red small"
SIZES = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
SMALL = SIZES | {"hidden_size": 16, "projection_dim": 16}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blip")
    (folder / "vocab.txt").write_text(WORDS.replace(" ", "\n"))
    ids = {"bos_token_id": 5, "sep_token_id": 3, "eos_token_id": 3, "pad_token_id": 0}
    config = BlipConfig(
        text_config={"vocab_size": len(WORDS.split()), "encoder_hidden_size": 16, **SMALL, **ids},
        vision_config={"image_size": 32, "patch_size": 16, **SMALL},
        projection_dim=16,
    )
    BlipForConditionalGeneration(config).save_pretrained(folder)
    processor = BlipImageProcessorPil(size={"height": 32, "width": 32})
    BlipProcessor(processor, BertTokenizerFast(str(folder / "vocab.txt"))).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def captioner(model: Path) -> ImageCaptioner:
    return ImageCaptioner(str(model), "cpu", max_new_tokens=5, batch=2)


def png(color: str) -> bytes:
    data, noise = io.BytesIO(), Pictures.effect_noise((64, 48), 80).convert("RGB")
    (noise if color == "noise" else Pictures.new("RGB", (64, 48), color)).save(data, "PNG")
    return data.getvalue()


def test_batches_and_what_is_no_bitmap_do_not_change_descriptions(captioner: ImageCaptioner) -> None:
    images = [Image(png(color), ".png") for color in ("red", "noise", "blue")]
    together = captioner.describe([Image(b"<svg/>", ".svg"), Image(b"\x89PNG cut short", ".png"), *images])
    assert together == ["", "", *(captioner.describe([image])[0] for image in images)]
    assert all(word in WORDS.split() for text in together for word in text.split())
    assert all(len(text.split()) <= 6 for text in together)
    assert any(together)
    assert captioner.describe([]) == []


def test_the_description_follows_the_text_in_the_image(captioner: ImageCaptioner) -> None:
    image = Image(png("red"), ".png", "Figure 1", "X1 X2")
    document = Document("a.pdf", "A", (Paragraph("text"), image, replace(image, text="")))
    (description,) = captioner.describe([image])
    expected = (replace(image, text=f"X1 X2 {description}"), replace(image, text=description))
    assert next(captioner.convert(iter([document]))).blocks == (document.blocks[0], *expected)


def test_images_are_found_by_their_descriptions(tmp_path: Path, captioner: ImageCaptioner) -> None:
    (tmp_path / "manuals").mkdir()
    (tmp_path / "manuals/red.png").write_bytes(png("red"))
    (tmp_path / "manuals/a.md").write_text("# Alto\n\n## Parts\n\n![The housing](red.png)\n")

    def image_of(*passes: ImageCaptioner) -> Passage:
        source = read_folder(tmp_path / "manuals", tmp_path / "kept", passes=[each.document_pass for each in passes])
        with source.locked():
            return next(p for p in source.passages() if (p.metadata or {})["kind"] == "image")

    (description,) = captioner.describe([Image(png("red"), ".png")])
    plain, described = image_of(), image_of(captioner)
    assert description
    assert description in described.indexed or description in described.text
    assert description not in f"{plain.indexed} {plain.text}"


def test_models_that_describe_no_images_are_refused(tmp_path: Path, checkpoints: dict[str, Path]) -> None:
    with pytest.raises(ArtifactError, match="no image-to-text model"):
        ImageCaptioner(str(checkpoints["bert"]), "cpu")
    with pytest.raises(MissingInputError):
        ImageCaptioner(str(tmp_path / "lost"), "cpu")
