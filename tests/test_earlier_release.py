"""Files that release 0.1 wrote (before modules moved).

Serving folders load, a checkpoint resumes, its config says what moved.
"""

import json
import shutil
from pathlib import Path

import pytest

from datamodules.formats.reading import read_questions
from models.drrag.triple_classifier import TripleClassifier
from models.rerag.model import ReRagModel
from tests.helpers.runs import done, fit, metrics

RELEASE = Path(__file__).parent / "fixtures" / "release_0_1"
EXPECTED = json.loads((RELEASE / "expected.json").read_text())  # computed by that release
TOLERANCE = {"rel": 1e-4, "abs": 1e-5}  # fp32 on another processor; the scores differ by some 1e-3


def test_a_classifier_gives_the_same_probabilities() -> None:
    questions = list(read_questions("hotpotqa", str(RELEASE / "hotpotqa.json")))[:3]
    triples = [(q.text, q.passages[i], q.passages[i + 1]) for q in questions for i in range(3)]
    classifier = TripleClassifier.load(RELEASE / "checkpoints/drrag/serving", "cpu")
    assert classifier.probabilities(triples) == pytest.approx(EXPECTED["triple_probabilities"], **TOLERANCE)


def test_an_estimator_and_a_generator_say_the_same() -> None:
    model = ReRagModel.load(RELEASE / "checkpoints/rerag/serving", "cpu")
    assert model.estimator is not None
    assert model.generator is not None
    questions = list(read_questions("fid", str(RELEASE / "fid.json")))[:3]
    pairs = [(q.text, passage) for q in questions for passage in q.passages[:3]]
    assert model.estimator.scores(pairs) == pytest.approx(EXPECTED["relevance_nats"], **TOLERANCE)
    answers = model.generator.answers([(text, [passage]) for text, passage in pairs], 4)
    assert [text for text, _ in answers] == [text for text, _ in EXPECTED["answers"]]
    assert [logp for _, logp in answers] == pytest.approx([logp for _, logp in EXPECTED["answers"]], **TOLERANCE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(RELEASE, tmp_path / "release")


@pytest.mark.whole_run
def test_the_saved_config_is_told_what_moved(folder: Path) -> None:
    shutil.copy(folder / "checkpoints/drrag/config.yaml", folder / "config.yaml")
    run = fit(folder, "--name", "again")
    assert run.returncode == 2
    line, _ = run.stderr.strip().splitlines()
    assert line == (
        "train.py: the configuration was written for an earlier release: "
        "datamodules.triple_data.TripleData is now datamodules.drrag.DrRagData."
    )


@pytest.mark.whole_run
def test_a_checkpoint_resumes(folder: Path) -> None:
    config = (folder / "checkpoints/drrag/config.yaml").read_text()
    (folder / "config.yaml").write_text(
        config.replace("datamodules.triple_data.TripleData", "datamodules.drrag.DrRagData")
    )
    done(fit(folder, "--ckpt_path", "checkpoints/drrag/last.ckpt", "--trainer.max_epochs", "6"))
    losses = [(row["step"], row["train/loss_nats"]) for row in metrics(folder, "drrag") if "train/loss_nats" in row]
    expected = EXPECTED["losses"][-len(losses) :]
    assert [step for step, _ in losses] == [step for step, _ in expected] == list(range(9, 18))
    assert [loss for _, loss in losses] == pytest.approx(
        [loss for _, loss in expected], abs=1e-2
    )  # they vary by some 0.1
