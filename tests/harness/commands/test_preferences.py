"""`infer.py preferences` on a small BM25 index: files, rounds, resuming after kill -9, rewards by models."""

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from common.files import digests, sha256
from common.records import Passage, Question
from common.validation_split import validation_share
from datamodules.formats.preferences import read_manifest, read_rewrite_preferences
from harness.evaluation.serialization import digest
from harness.preferences.rewards import GoldRecall
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.dmqr.word_selector import KIND, WordSelector
from models.dmqr.word_tokenizer import TEXT_FORMAT
from models.serving_manifest import write_manifest
from tests.helpers.commands import Ended, apart, command
from tests.helpers.killing_retriever import KILLED_AT, KillingRetriever
from tests.helpers.rerag_world import write_serving

BM25 = "harness.retrievers.bm25.Bm25Retriever"
WRITER = "harness.rewriters.trained.TrainedRewriter"
WORDS = {
    "rewriter": "harness.rewriters.extractive.ExtractiveRewriter", "rewriter__serving": "words",
    "strategies": "[par, hop]", "samples": "0",
}  # fmt: skip
REWARDS = "harness.preferences.rewards."
PASSAGES = [
    Passage.of("south", "kiln kiln"), Passage.of("north", "kiln amber"), Passage.of("east", "amber jetty"),
    Passage.of("far", "delta glade"),
]  # fmt: skip
ASKED = ["The kiln?", "Which amber kiln", "the delta kiln", "Where is the jetty"]
SEARCHED = {"--retriever": BM25, "--retriever.index": "index"}


def row(id_: str, question: str, gold: int = 1) -> dict[str, Any]:
    """A question with one gold passage."""
    title, text = PASSAGES[gold].title, PASSAGES[gold].text
    return {
        "_id": id_, "question": question, "answer": "amber", "type": "bridge", "level": "hard",
        "supporting_facts": [[title, 0]], "context": [[title, [text]], ["elsewhere", ["orchard"]]],
    }  # fmt: skip


@pytest.fixture(scope="module")
def models(checkpoints: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index and untrained models: `words`, `writer`."""
    folder = tmp_path_factory.mktemp("models")
    build_bm25(PASSAGES, folder / "index")
    torch.manual_seed(1)
    WordSelector.build(str(checkpoints["bert"]), 64).save(folder / "words")
    write_manifest(folder / "words", KIND, TEXT_FORMAT, 64)
    (folder / "writer").mkdir()
    RewriterModel.build(str(checkpoints["t5"]), 40, 6, POOL).save(folder / "writer", ["gqr", "kwr"], {})
    return folder


@pytest.fixture
def place(models: Path, tmp_path: Path) -> Path:
    """The same, with `train.json` of four questions."""
    for each in models.iterdir():
        shutil.copytree(each, tmp_path / each.name)
    (tmp_path / "train.json").write_text(json.dumps([row(f"q{n}", text) for n, text in enumerate(ASKED)]))
    return tmp_path


def arguments(**more: str) -> list[str]:
    given = {
        "--rewriter": WRITER, "--rewriter.serving": "writer", "--strategies": "[gqr, kwr]",
        "--reward": f"{REWARDS}GoldRecall", **SEARCHED, "--questions": "train.json", "--out": "data/preferences",
        "--samples": "6",
    }  # fmt: skip
    given |= {f"--{name.replace('__', '.')}": value for name, value in more.items()}
    return ["preferences", *(each for pair in given.items() if pair[1] for each in pair)]


def preferences(place: Path, **more: str) -> Ended:
    ended = command(place, "infer.py", *arguments(**more))
    assert ended.code == 0, ended.err
    return ended


def lines(place: Path, out: str = "data/preferences") -> bytes:
    return (place / out / "preferences.jsonl").read_bytes()


def test_samples_by_strategy_and_what_they_came_from(place: Path) -> None:
    ended = preferences(place)
    folder = str(place / "data/preferences")
    rows, manifest = read_rewrite_preferences(folder), read_manifest(folder)
    assert [(each.question_id, each.strategy) for each in rows] == [
        (f"q{n}", strategy) for n in range(4) for strategy in ("gqr", "kwr")
    ]
    candidates = [each for one in rows for each in one.candidates]
    assert all(0 < sum(each.times for each in one.candidates) <= 6 for one in rows)
    assert all(each.log_probability is not None and each.log_probability < 0 for each in candidates)
    assert (manifest["layout"], manifest["round"], manifest["samples"], manifest["temperature"]) == (
        "rewrite_preferences", 1, 6, 1,
    )  # fmt: skip
    assert manifest["sampler"]["serving"] == "writer"
    assert manifest["sampler"]["sha256"] == sha256(place / "writer/serving.json")
    assert manifest["reward"] == GoldRecall().facts
    assert manifest["retriever"]["index"] == {"index.json": sha256(place / "index/index.json")}
    assert (manifest["fused"], manifest["depth"], manifest["seed"], manifest["strategies"]) == (
        True,
        100,
        0,
        ["gqr", "kwr"],
    )
    known = [Question(f"q{n}", t, ("amber",), (PASSAGES[1], Passage.of("elsewhere", "orchard")), (PASSAGES[1].id,),
        kind="bridge")
             for n, t in enumerate(ASKED)]  # fmt: skip
    assert manifest["questions"] == digest(known)
    assert manifest["sha256"] == {"preferences.jsonl": digests(Path(folder))["preferences.jsonl"]}
    counts = manifest["counts"]
    assert counts["reward"]["question"] == pytest.approx(sum(each.question_reward for each in rows) / 8, abs=1e-6)
    assert set(manifest["seconds"]) == {"searching", "rewriting", "rewarding", "in_all"}
    assert ended.err.splitlines()[-1].startswith(
        f"data/preferences: 4 questions, {counts['candidates']} candidates; mean reward: question "
        f"{counts['reward']['question']:.4f}, greedy"
    )
    assert [path.name for path in (place / "data").iterdir()] == ["preferences"]
    (first,) = Bm25Retriever(place / "index").search([ASKED[0]], 100)
    assert rows[0].question_reward == pytest.approx(GoldRecall()(known[:1], [[]], [first])[0], abs=1e-6)


def test_samples_depend_on_the_seed_and_not_on_the_other_questions(place: Path) -> None:
    preferences(place)
    whole = lines(place)
    preferences(place, out="data/again")
    assert lines(place, "data/again") == whole
    preferences(place, out="data/first", limit="2")
    for one, other in zip(
        read_rewrite_preferences(str(place / "data/first")),
        read_rewrite_preferences(str(place / "data/preferences")),
        strict=False,
    ):
        assert [(c.rewrite, c.times, c.reward) for c in one.candidates] == [
            (c.rewrite, c.times, c.reward) for c in other.candidates
        ]
    preferences(place, seed="1")
    assert lines(place) != whole


def test_a_second_round_counts_on_from_the_model_s(place: Path, checkpoints: dict[str, Path]) -> None:
    shutil.rmtree(place / "writer")
    (place / "writer").mkdir()
    RewriterModel.build(str(checkpoints["t5"]), 40, 6, POOL).save(place / "writer", ["gqr", "kwr"], {}, round=2)
    preferences(place)
    assert read_manifest(str(place / "data/preferences"))["round"] == 3


def test_a_rewrite_s_own_list_can_be_rewarded_by_another_reward(place: Path) -> None:
    preferences(place, reward=f"{REWARDS}GoldRank", fused="false", depth="3")
    manifest = read_manifest(str(place / "data/preferences"))
    assert (manifest["fused"], manifest["depth"], manifest["reward"]["depth"]) == (False, 3, 100)


@pytest.mark.parametrize(("rewriter", "serving", "strategies"), [
    (WORDS["rewriter"], "words", "[par, hop]"), (WRITER, "writer", "[gqr]"),
])  # fmt: skip
def test_without_samples_any_rewriter_has_its_one_rewrite(
    place: Path, rewriter: str, serving: str, strategies: str
) -> None:
    preferences(place, rewriter=rewriter, rewriter__serving=serving, strategies=strategies, samples="0")
    rows = read_rewrite_preferences(str(place / "data/preferences"))
    assert len(rows) == 4 * len(strategies.split(","))
    assert all(len(each.candidates) == 1 and each.candidates[0].greedy for each in rows)


def test_a_reward_without_search_needs_no_retriever(place: Path, encoder_folder: str) -> None:
    cosine = {"reward": "harness.preferences.model_rewards.CosineGain", "reward__encoder": encoder_folder}
    preferences(place, **cosine, retriever="", retriever__index="")
    rows = read_rewrite_preferences(str(place / "data/preferences"))
    assert {each.question_reward for each in rows} == {0.0}
    assert any(c.reward for each in rows for c in each.candidates)


def test_the_answer_s_probability_by_a_trained_reader(place: Path, checkpoints: dict[str, Path]) -> None:
    write_serving(checkpoints["t5"], place / "rerag")
    probability = {"reward": "harness.preferences.model_rewards.AnswerProbability", "reward__serving": "rerag"}
    preferences(place, **probability, reward__k="2")
    assert all(0 < each.question_reward < 1 for each in read_rewrite_preferences(str(place / "data/preferences")))
    assert read_manifest(str(place / "data/preferences"))["depth"] == 2


def test_questions_without_a_reward_are_skipped_and_counted(place: Path) -> None:
    unknown = {**row("q7", "glade"), "supporting_facts": [["elsewhere", 0]]}  # not in the index
    bare = {**row("q8", "delta"), "supporting_facts": []}
    rows = [
        row("q0", "The kiln?"),
        row("q5", "the kiln?  "),
        row("q6", "The  kiln?"),
        unknown,
        bare,
    ]
    (place / "train.json").write_text(json.dumps(rows))
    ended = preferences(place)
    assert read_manifest(str(place / "data/preferences"))["counts"]["skipped"] == {
        "repeated": 1, "no gold passage": 1, "no gold passage in the index": 1,
    }  # fmt: skip
    assert "1 skipped (repeated)" in ended.err
    asked = [each.question_id for each in read_rewrite_preferences(str(place / "data/preferences"))]
    assert asked == ["q0", "q0", "q5", "q5"]


@pytest.mark.whole_run
def test_a_killed_run_goes_on_and_ends_in_the_same_bytes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{text} {n}" for n in range(40) for text in ASKED]  # three batches, one search each
    (place / "train.json").write_text(json.dumps([row(f"q{n}", text) for n, text in enumerate(texts)]))
    killing = "tests.helpers.killing_retriever.KillingRetriever"
    run = apart(place, *arguments(retriever=killing), **{KILLED_AT: "2"})
    assert run.returncode == -signal.SIGKILL, run.stderr[-3000:]
    assert [path.name for path in (place / "data").iterdir() if path.suffix != ".lock"] == ["preferences.partial"]

    before = KillingRetriever.searches
    ended = preferences(place, retriever=killing)
    assert "reusing 2 of 3 batches" in ended.err
    assert KillingRetriever.searches == before + 1
    assert not (place / "data/preferences.partial").exists()
    resumed = lines(place)
    preferences(place, retriever=killing)
    assert lines(place) == resumed
    assert len(resumed.splitlines()) == 320


def test_questions_that_a_training_holds_out_and_passages_of_another_retriever(place: Path) -> None:
    shares = {text: validation_share(Question("", text)) for text in ASKED}
    share = sorted(shares.values())[2]  # two of four are below it
    preferences(
        place, **WORDS, validation_split=repr(share), feedback_retriever=BM25, feedback_retriever__index="index"
    )
    kept = [each.question for each in read_rewrite_preferences(str(place / "data/preferences"))]
    assert kept == [text for text in ASKED if shares[text] < share for _ in ("par", "hop")]
    assert len(kept) == 4
    assert read_manifest(str(place / "data/preferences"))["feedback_retriever"]["index"]
    nothing = command(place, "infer.py", *arguments(validation_split=repr(min(shares.values())), out="other"))
    assert nothing.code != 0
    assert "holds out none of ['train.json']: raise validation_split" in nothing.err
    refused = command(
        place, "infer.py", *arguments(feedback_retriever=BM25, feedback_retriever__index="index", out="other")
    )
    assert refused.code != 0
    assert "reads none: omit feedback_retriever" in refused.err
    assert not (place / "other").exists()
