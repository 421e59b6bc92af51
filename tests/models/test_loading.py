"""Loading networks: lacking weights are refused, a new head is told in one line, nothing of transformers is printed."""

import logging
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from common.errors import ArtifactError
from models.cross_encoder import RelevanceEstimator
from models.drrag.triple_classifier import TripleClassifier
from models.loading import load_network, quiet


def without(source: Path, folder: Path, part: str) -> Path:
    """A copy of a checkpoint without the weights whose names hold `part`."""
    folder.mkdir()
    for file in source.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    weights = load_file(source / "model.safetensors")
    kept = {name: value for name, value in weights.items() if part not in name}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", {"format": "pt"})
    return folder


def test_a_new_head_is_told_in_one_line(checkpoints, capfd) -> None:
    RelevanceEstimator.build(str(checkpoints["bert"]), 64)
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err == f"{checkpoints['bert']}: new head, from random weights: classifier.bias, classifier.weight.\n"


@pytest.mark.parametrize("build", [TripleClassifier.build, RelevanceEstimator.build])
@pytest.mark.parametrize("family", ["bert", "big_bird"])
def test_a_checkpoint_that_lacks_encoder_weights_is_refused(build, family, checkpoints, tmp_path) -> None:
    folder = without(checkpoints[family], tmp_path / "torn", "layer.1.attention")
    with pytest.raises(ArtifactError, match=r"lacks \d+ weights of a \w+, such as .*layer\.1\.attention"):
        build(str(folder), 64)


def test_an_encoder_without_its_unused_pooler_is_loaded_in_silence(checkpoints, tmp_path, capfd) -> None:
    load_network(AutoModel, without(checkpoints["bert"], tmp_path / "bert", "pooler"))
    assert capfd.readouterr() == ("", "")


def test_other_warnings_of_transformers_are_shown() -> None:
    seen: list[str] = []
    loader = logging.getLogger("transformers.modeling_utils")
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())  # type: ignore[method-assign]
    loader.addHandler(handler)
    try:
        with quiet():
            loader.warning("this checkpoint is of another kind")
            loader.warning("BertModel LOAD REPORT from: x")
    finally:
        loader.removeHandler(handler)
    assert seen == ["this checkpoint is of another kind"]
