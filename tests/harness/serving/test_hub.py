"""Pushes to the hub, to a server of this process that answers as the hub does: one part's files, its card, refusals."""

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
import torch
from huggingface_hub import ModelCard
from sentence_transformers import CrossEncoder

from common.errors import ArtifactError, RefusedError, UnavailableError, UserError
from common.records import Passage
from common.sealed_json import SEAL, write_sealed
from datamodules.rerag import ReRagData
from harness.commands.export import export
from models.causal_lm import CausalLanguageModel
from models.cross_encoder import load_scorer
from models.rerag.causal_generator import CausalGenerator
from models.rerag.model import ReRagModel
from tests.helpers.causal_parts import pair
from tests.helpers.fake_server import WebServer, answer, web_server
from tests.trainers.test_model_card import SOURCE, exported
from trainers.rerag import ReRagTrainer
from trainers.rerag_options import Loss

NAME, TOKEN = "owner/reranker-nq", "hf_secret0secret0"
REPOSITORY = f"/api/models/{NAME}"


@pytest.fixture(scope="module")
def serving(checkpoints: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A serving folder with an encoder-only estimator, which was validated."""
    torch.manual_seed(0)
    module = ReRagTrainer(str(checkpoints["bert"]), None, max_tokens=64, loss=Loss(label_weight=1.0)).load()
    module.validation_metrics = {"mrr": 0.75, "recall_1": 0.5, "other_recall_1": 0.1, "context_auroc": float("nan")}
    folder = tmp_path_factory.mktemp("reranker-run") / "serving"
    exported(module, ReRagData([SOURCE]), folder)
    return folder


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    """A hub on which the repository does not exist yet; the environment has a token."""
    names = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "README.md")
    modes = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
    url = {"url": f"https://huggingface.co/{NAME}"}
    made: dict[str, Any] = {
        "/api/repos/create": url,
        "/api/validate-yaml": {"errors": [], "warnings": []},
        f"{REPOSITORY}/preupload/main": {"files": modes},
        f"{REPOSITORY}/commit/main": {
            "commitUrl": f"https://huggingface.co/{NAME}/commit/0",
            "commitOid": "0",
            "success": True,
        },
    }
    with web_server(
        {path: answer(json.dumps(body).encode(), kind="application/json") for path, body in made.items()}
    ) as server:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


def committed(server: WebServer) -> dict[str, bytes]:
    """The files of the one commit."""
    (commit,) = (asked for asked in server.asked if asked.path.endswith("/commit/main"))
    rows = [json.loads(line) for line in commit.body.splitlines()]
    return {row["value"]["path"]: base64.b64decode(row["value"]["content"]) for row in rows if row["key"] == "file"}


def test_a_push_sends_one_part_in_one_commit_which_loads_as_a_cross_encoder(
    serving: Path, hub: WebServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(serving, push=NAME)
    (created,) = (json.loads(asked.body) for asked in hub.asked if asked.path == "/api/repos/create")
    assert (created["name"], created["organization"], created["visibility"]) == ("reranker-nq", "owner", "private")
    (commit,) = (asked for asked in hub.asked if asked.path.endswith("/commit/main"))
    assert commit.headers["authorization"] == f"Bearer {TOKEN}"
    files = committed(hub)
    assert set(files) == {path.name for path in (serving / "estimator").iterdir()} | {"README.md"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    pairs = [("who is name3", "name3 was born in the city ."), ("where was name4 born", "the film .")]
    ours = load_scorer(serving, "cpu").scores([(question, Passage.of("", text)) for question, text in pairs])
    assert CrossEncoder(str(tmp_path)).predict(pairs).tolist() == pytest.approx(ours, abs=1e-5)

    card = ModelCard.load(tmp_path / "README.md")
    data = card.data.to_dict()
    assert (data["library_name"], data["pipeline_tag"]) == ("sentence-transformers", "text-ranking")
    assert data["tags"] == ["retrieval-augmented-generation", "re-rag", "cross-encoder", "reranker"]
    (index,) = data["model-index"]
    assert index["name"] == "reranker-nq"
    (result,) = index["results"]  # of what can choose a checkpoint, and is a number
    assert {each["type"]: each["value"] for each in result["metrics"]} == {"mrr": 0.75, "recall_1": 0.5}
    assert result["dataset"] == {"name": "train.json", "type": "hotpotqa/hotpot_qa", "split": "validation"}
    assert f'CrossEncoder("{NAME}")' in card.text
    assert '"estimator"' not in card.text
    assert "ReRagModel" not in card.text  # which reads a whole serving folder
    assert TOKEN not in "".join(capsys.readouterr())


def test_a_dry_run_sends_nothing_and_prints_files_sizes_and_card(
    serving: Path, hub: WebServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    export(serving, push=NAME, dry_run=True)
    out = capsys.readouterr().out
    assert hub.asked == []
    size = (serving / "estimator/model.safetensors").stat().st_size
    assert f"{size:,} model.safetensors\n" in out
    assert f'CrossEncoder("{NAME}")' in out
    assert str(serving.parent) not in out


def test_a_name_that_is_taken_is_refused_and_a_push_that_fails_says_what_is_left(serving: Path, hub: WebServer) -> None:
    made = hub.routes["/api/repos/create"]
    hub.routes["/api/repos/create"] = answer(b'{"error": "exists"}', 409, "application/json")
    with pytest.raises(UserError, match=f"--push {NAME} is taken"):
        export(serving, push=NAME)
    hub.routes |= {"/api/repos/create": made, f"{REPOSITORY}/commit/main": answer(b"{}", 400, "application/json")}
    with pytest.raises(UnavailableError, match="The new repository is empty: delete it"):
        export(serving, push=NAME)


def test_what_cannot_be_pushed(
    serving: Path, hub: WebServer, plain_lm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("reranker", "a/b/c", "owner/-x-", "owner/a..b"):
        with pytest.raises(UserError, match="--push takes OWNER/NAME"):
            export(serving, push=name)
    with pytest.raises(UserError, match="give --out FOLDER"):
        export(serving, dry_run=True)
    edited = Path(shutil.copytree(serving, tmp_path / "edited"))
    (edited / "estimator/config.json").write_text("{}")
    with pytest.raises(ArtifactError, match=r"config.json"):
        export(edited, push=NAME)

    estimator, generator = pair(plain_lm)
    ReRagModel.of(estimator, generator, {}, 8).save(tmp_path / "adapters")
    with pytest.raises(UserError, match="holds adapters: merge them first"):
        export(tmp_path / "adapters", push=NAME)
    whole = CausalGenerator(CausalLanguageModel.build(str(plain_lm)), 64)
    ReRagModel.of(load_scorer(serving, "cpu"), whole, {}, 8).save(tmp_path / "both")
    with pytest.raises(UserError, match="holds estimator, generator: name the one to push, --part estimator"):
        export(tmp_path / "both", push=NAME)
    assert hub.asked == []

    hub.routes["/api/repos/create"] = answer(f"denied {TOKEN}".encode(), 403, X_Error_Message=f"denied {TOKEN}")
    with pytest.raises(RefusedError) as refused:
        export(serving, push=NAME)
    assert TOKEN not in str(refused.value)
    assert "\n" not in str(refused.value)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UnavailableError, match=f"--push {NAME}: .*offline"):
        export(serving, push=NAME)
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UserError, match="needs a token of the hub"):
        export(serving, push=NAME)


def test_an_export_of_an_older_folder_names_files_without_their_folders(
    serving: Path, hub: WebServer, tmp_path: Path
) -> None:
    older, out = Path(shutil.copytree(serving, tmp_path / "older")), tmp_path / "out"
    manifest = json.loads((older / "serving.json").read_text())
    paths = ("/home/me/a/train.json", "/home/me/b/train.json", "/home/me/dev.json", "hf:google/nq:main:train")
    manifest["data"] = dict.fromkeys(paths, "0" * 64)
    write_sealed(older / "serving.json", {key: value for key, value in manifest.items() if key != SEAL})
    export(older, out)
    mended = json.loads((out / "serving.json").read_text())["data"]
    assert [*mended] == ["a/train.json", "b/train.json", "dev.json", "hf:google/nq:main:train"]
    export(out, push=NAME, dry_run=True)
