"""ONNX export answers as the serving folder does, at other batch sizes and lengths than those traced."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, RobertaConfig, RobertaModel

from common.backends import chosen
from common.errors import ArtifactError, UserError
from common.records import Passage
from common.sealed_json import unsealed, write_sealed
from harness.runtime.provenance import computed_in
from harness.serving.onnx_export import export_onnx
from models.cross_encoder import RelevanceEstimator, load_scorer
from models.dmqr import word_selector, word_tokenizer
from models.drrag import triple_tokenizer
from models.drrag.triple_classifier import TripleClassifier
from models.onnx_network import INT8
from models.rerag.model import ReRagModel
from models.serving_manifest import write_manifest
from tests.helpers.tiny_runs import run_card
from tests.helpers.tolerances import decide, model_tolerance

pytestmark = pytest.mark.numeric

PAIRS = [(f"where is name{i}", Passage.of("", "name1 " * i + "in the film")) for i in range(1, 9)]


def of_triples(model: Path, serving: Path) -> Callable[[], tuple[Any, ...]]:
    """A classifier; what answers for it, as for all that follow: its inputs, by the names of ONNX, and its scores."""
    classifier = TripleClassifier.build(str(model), 96)
    decide(classifier.network)
    classifier.save(serving)
    write_manifest(serving, "triple_classifier", triple_tokenizer.TEXT_FORMAT, 96, attention="auto", threshold=0.5)

    def expected() -> tuple[Any, ...]:
        served = TripleClassifier.load(serving, "cpu")
        given = served.encode.pad([served.encode(question, one, Passage.of("x", "name2")) for question, one in PAIRS])
        return dict(zip(("input_ids", "attention_mask"), given, strict=True)), served(*given)

    return expected


def of_pairs(model: Path, serving: Path) -> Callable[[], tuple[Any, ...]]:
    """An estimator."""
    estimator = RelevanceEstimator.build(str(model), 64)
    decide(estimator.network)
    ReRagModel.of(estimator, None, {"calibration": {"scale": 0.5, "offset": 1.0}}, 8).save(serving)

    def expected() -> tuple[Any, ...]:
        served = load_scorer(serving, "cpu")
        given = served.encode.pad(served.encode([(question, [passage]) for question, passage in PAIRS]))
        return dict(zip(("input_ids", "attention_mask"), given, strict=True)), served(*given).score_P

    return expected


def of_words(model: Path, serving: Path) -> Callable[[], tuple[Any, ...]]:
    """An extractive rewriter."""
    selector = word_selector.WordSelector.build(str(model), 64)
    decide(selector.network)
    selector.save(serving)
    write_manifest(serving, word_selector.KIND, word_tokenizer.TEXT_FORMAT, 64)

    def expected() -> tuple[Any, ...]:
        served = word_selector.WordSelector.load(serving, "cpu")
        ids_PT, types_PT, attention_PT = served.encode.pad(served.encode(PAIRS))
        given = {"input_ids": ids_PT, "attention_mask": attention_PT}
        given |= {"token_type_ids": types_PT} if served.segments else {}
        return given, served(ids_PT, types_PT, attention_PT)

    return expected


def of_words_in_one_segment(model: Path, serving: Path) -> Callable[[], tuple[Any, ...]]:
    """An extractive rewriter whose encoder knows one segment, as RoBERTa does."""
    folder = serving.with_name("start")
    shutil.copytree(model, folder)
    RobertaModel(RobertaConfig.from_pretrained(model, type_vocab_size=1)).save_pretrained(folder)
    return of_words(folder, serving)


@pytest.fixture(autouse=True)
def _torch_computes() -> Iterator[None]:
    yield
    with chosen("torch"):
        pass


@pytest.mark.whole_run
@pytest.mark.parametrize(
    ("save", "model", "shape"),
    [
        (of_triples, "bert", ["P"]),
        (of_triples, "mpnet", ["P"]),
        (of_pairs, "modernbert", ["P"]),
        (of_words, "deberta-v2", ["P", "T", 2]),
        (of_pairs, "bert", ["P"]),
        (of_pairs, "big_bird", ["P"]),
        (of_words, "bert", ["P", "T", 2]),
        (of_words_in_one_segment, "roberta", ["P", "T", 2]),
    ],
)
def test_onnx_answers_as_the_folder_it_comes_from(
    save: Callable, model: str, shape: list, checkpoints: dict[str, Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    for package in ("onnx", "onnxscript"):
        pytest.importorskip(package)
    onnxruntime = pytest.importorskip("onnxruntime")
    serving, out = tmp_path / "serving", tmp_path / "onnx"
    serving.mkdir()
    expected = save(checkpoints[model], serving)
    if save is of_words_in_one_segment:
        with pytest.raises(ArtifactError, match=r"differs by .* nats, allowed 0\.0e\+00: not written"):
            export_onnx(serving, out, 0.0)
        assert not out.exists()
    assert export_onnx(serving, out) < model_tolerance(100)
    given, scores = expected()
    session = onnxruntime.InferenceSession(out / "model.onnx", providers=["CPUExecutionProvider"])
    manifest = json.loads((out / "serving.json").read_text())
    assert [each.name for each in session.get_inputs()] == list(manifest["inputs"]) == list(given)
    assert [each.name for each in session.get_outputs()] == list(manifest["outputs"]) == ["log_odds"]
    assert manifest["outputs"]["log_odds"] == shape
    (log_odds,) = session.run(None, {name: each.numpy() for name, each in given.items()})
    largest = float(scores.detach().abs().max())
    assert float(scores.detach().std()) > 10 * model_tolerance(largest)  # it tells texts apart
    torch.testing.assert_close(torch.from_numpy(log_odds), scores.detach(), rtol=0, atol=model_tolerance(largest))
    with chosen("onnx"):
        _, again = expected()
    torch.testing.assert_close(again, torch.from_numpy(log_odds), rtol=0, atol=model_tolerance(largest))
    _, found = run_card(out, monkeypatch)  # its snippet
    sizes = {"P": 1, "T": found["batch"]["input_ids"].shape[1]}
    assert found["log_odds"].shape == tuple(sizes.get(each, each) for each in shape)
    assert sorted(found["batch"]) == sorted(given)


@pytest.mark.whole_run
def test_int8_scores_nearly_as_fp32_in_two_files_of_which_one_is_for_this_processor(
    checkpoints: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    serving, out = tmp_path / "serving", tmp_path / "onnx"
    expected = of_pairs(checkpoints["bert"], serving)
    _, scores = expected()
    with (
        pytest.raises(ArtifactError, match=r"holds no export. Type python infer.py export .*--out .*/onnx"),
        chosen("onnx"),
    ):
        expected()
    export_onnx(serving, out, int8=True)
    files = [each.relative_to(out).as_posix() for each in sorted(out.rglob("*.onnx"))]
    assert files == [*INT8.values()]
    assert AutoConfig.from_pretrained(out).num_labels == 1
    assert json.loads((out / "serving.json").read_text())["outputs"] == {"logits": ["P", 1]}
    _, found = run_card(out, monkeypatch)
    assert found["logits"].shape == (1, 1)
    for flags, file in (({"avx512_vnni": True}, files[0]), ({"avx2": True}, files[1]), ({}, files[1])):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda flags=flags: flags)
        with chosen("onnx"):
            _, quantized = expected()
            served = load_scorer(serving, "cpu")
        told = capsys.readouterr().err
        assert told.count(f"{out / file}: computed by ONNX Runtime, for ") == 1
        assert computed_in(served) == f"{Path(file).name} by ONNX Runtime"
        apart = (quantized - scores).abs().max()
        assert 0 < apart < scores.detach().std()
    manifest = serving / "serving.json"  # as another training writes another one
    write_sealed(manifest, {**unsealed(manifest, json.loads(manifest.read_text()), ""), "commit": "another"})
    with pytest.raises(ArtifactError, match="was not exported from"), chosen("onnx"):
        expected()
    with chosen("onnx"):
        pass
    assert "warning: --backend onnx computes nothing" in capsys.readouterr().err


@pytest.mark.whole_run
def test_a_network_that_torch_cannot_trace_is_refused(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    of_triples(checkpoints["longformer"], tmp_path / "serving")
    with pytest.raises(UserError, match="holds a longformer, which torch cannot trace"):
        export_onnx(tmp_path / "serving", tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()
