"""Retriever scores: what `score`, a strategy and training refuse about them, each in one line."""

import json
from pathlib import Path

import pytest

from tests.conftest import hotpot_rows
from tests.helpers.commands import command, refused
from tests.helpers.rerag_data import fid_rows


@pytest.mark.parametrize(
    ("mistake", "code", "part"),
    [
        (("--questions", "nowhere.json"), 66, "nowhere.json does not exist"),
        (("--questions", "hotpot.json"), 65, "hotpot.json looks like hotpotqa"),
        (("--out", "fid.json"), 2, "fid.json exists and is not a question file with scores of `infer.py score`"),
        (("--out", "."), 2, "--out . does not name"),
        (("--questions", "bare.json"), 65, "bare.json: no question has passages to score"),
        (("--questions", "torn.json"), 65, "torn.json is truncated: 1 rows read"),
    ],
)
def test_score_refuses_and_writes_nothing(
    mistake: tuple[str, ...], code: int, part: str, tmp_path: Path, checkpoints: dict[str, Path]
) -> None:
    (tmp_path / "fid.json").write_text(json.dumps(fid_rows(2)))
    (tmp_path / "torn.json").write_text(json.dumps(fid_rows(2))[:-40])
    (tmp_path / "bare.json").write_text(json.dumps([fid_rows(1)[0] | {"ctxs": []}]))
    (tmp_path / "hotpot.json").write_text(json.dumps(hotpot_rows(1)))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    encoder = str(checkpoints["bert"]) if code == 65 else "no/encoder"
    typed = ("--questions", "fid.json", "--out", "out.jsonl", "--encoder", encoder, "--device", "cpu", *mistake)
    refused(command(tmp_path, "infer.py", "score", *typed), code, part)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


CONFIG = """
name: baseline
model:
  class_path: trainers.rerag.ReRagTrainer
  init_args: {{estimator: null, generator: {model}, relevance: retriever, max_tokens: 48, max_answer_tokens: 4}}
data:
  class_path: datamodules.rerag.ReRagData
  init_args:
    train: [{{layout: fid, path: {train}}}]
    validation_fraction: 0.3
trainer: {{accelerator: cpu, max_steps: 1, enable_progress_bar: false, enable_model_summary: false}}
checkpoint: {{monitor: val/em}}
"""


def scored(rows: list[dict]) -> list[dict]:
    for row in rows:
        for place, item in enumerate(row["ctxs"]):
            item["score"] = place
    return rows


@pytest.mark.parametrize(
    ("extra", "part"),
    [
        (("--model.estimator", "{t5}"), "relevance retriever leaves an estimator without a use: set estimator null"),
        (("--model.relevance", "uniform", "--model.estimator", "{t5}"), "relevance uniform leaves an estimator"),
        (("--model.relevance", "estimator"), "relevance is estimator, but there is none"),
        (("--model.relevance", "uniform", "--model.retriever_temperature", "1"),
            "retriever_temperature is for relevance retriever"),
        (("--model.refusal_cost", "1"), "refusal_cost is for the threshold of an estimator, but there is none"),
        (("--model.retriever_temperature", "0"), "retriever_temperature must be above 0, got 0.0"),
        (("--model.text_format", "packed"), "nothing to weight: set relevance uniform"),
        (("--model.relevance", "cosine"), "relevance"),
        (("--data.train", "[{{layout: fid, path: bare.json}}]"),
            "the first is '0-0'). Type `python infer.py score --questions"),
        (("--data.train", "[{{layout: fid, path: partly.json}}]"), "1 of "),
        (("--data.validation", "[{{layout: fid, path: bare.json}}]"), "11 of 11 questions of ['bare.json'] lack some"),
        (("--data.more", "[more.jsonl]"), "omit data.more, or set model.relevance to estimator or uniform"),
        (("--data.pick", "gold"), "give a temperature as model.retriever_temperature, or other training files"),
    ],
)  # fmt: skip
def test_training_with_the_retrievers_weights_refuses(
    extra: tuple[str, ...], part: str, tmp_path: Path, checkpoints: dict[str, Path]
) -> None:
    rows = scored(fid_rows(20, seed=1))
    (tmp_path / "fid.json").write_text(json.dumps(rows))
    (tmp_path / "bare.json").write_text(json.dumps(fid_rows(12)))
    more = {"question_id": rows[0]["id"], "passages": [{"title": "name0", "text": "an unscored passage"}]}
    more_too = {**more, "question_id": rows[1]["id"]}
    (tmp_path / "more.jsonl").write_text(json.dumps(more) + "\n" + json.dumps(more_too) + "\n")
    del rows[0]["ctxs"][0]["score"]
    (tmp_path / "partly.json").write_text(json.dumps(rows))
    (tmp_path / "config.yaml").write_text(CONFIG.format(model=checkpoints["t5"], train="fid.json"))
    typed = [each.format(t5=checkpoints["t5"]) for each in extra]
    refused(command(tmp_path, "train.py", "fit", "--config", "config.yaml", *typed), 2, part)
    assert not (tmp_path / "checkpoints/baseline").exists()
