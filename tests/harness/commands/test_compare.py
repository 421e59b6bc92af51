"""`infer.py evaluate` with several --config: one comparison of systems that are each evaluated as alone."""

import json
import weakref
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from common.errors import INTERRUPTED, UserError
from common.records import Passage
from harness.commands.compare import systems_of
from harness.retrievers.bm25 import build_bm25
from harness.systems.retrieve_read import RetrieveRead
from models.drrag.triple_classifier import TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT
from models.rerag.marginal_reader import MarginalReader
from models.serving_manifest import write_manifest
from tests.conftest import hotpot_rows
from tests.helpers.commands import Ended, command
from tests.helpers.reports import cells, measured_cells, questions, report, timeless
from tests.helpers.rerag_world import write_serving
from tests.helpers.tolerances import decide

RETRIEVER = {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": "index"}}
Config = dict[str, Any]


def system(class_path: str, **options: Any) -> Config:
    return {"class_path": f"harness.systems.{class_path}", "init_args": {"retriever": RETRIEVER, **options}}


SYSTEMS: dict[str, Config] = {
    "bm25": {"system": system("retrieve_read.RetrieveRead", k=3, reader="tests.helpers.echo_reader.FirstPassage")},
    "drrag": {
        "system": system("drrag.DrRag", serving="classifier", device="cpu", selection={"method": "cfs", "k": 3}),
        "study": {"rows": ["QDC"], "ks": [3]},
    },
    "rerag": {"system": system("rerag.ReRag", serving="both", candidates=6, contexts=3, device="cpu")},
}


def write_configs(folder: Path, configs: dict[str, Config]) -> None:
    folder.mkdir(exist_ok=True)
    for name, config in configs.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(config))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """Ten questions, some of which the reader answers right; an index, served models, and a config per system."""
    root = tmp_path_factory.mktemp("compare")
    rows = [row | {"answer": ("film", "director", "name1")[place % 3]} for place, row in enumerate(hotpot_rows(10))]
    (root / "questions.json").write_text(json.dumps(rows))
    build_bm25([Passage.of(title, "".join(text)) for row in rows for title, text in row["context"]], root / "index")
    torch.manual_seed(0)
    classifier = TripleClassifier.build(str(checkpoints["bert"]), 96)
    decide(classifier.network)
    classifier.save(root / "classifier")
    write_manifest(root / "classifier", "triple_classifier", TEXT_FORMAT, 96, attention="auto", threshold=0.5)
    write_serving(checkpoints["t5"], root / "both", max_tokens=96)
    write_configs(root, SYSTEMS)
    return root


def evaluate(place: Path, out: str, *configs: str, more: tuple[str, ...] = ()) -> Ended:
    named = [word for config in configs for word in ("--config", f"{config}.yaml")]
    typed = ("--questions", "questions.json", "--out", out, "--resamples", "100", *more)
    return command(place, "infer.py", "evaluate", *named, *typed)


@pytest.fixture(scope="module")
def compared(place: Path) -> Path:
    ended = evaluate(place, "compared", *SYSTEMS)
    assert ended.code == 0, ended.err
    assert ended.out == (place / "compared" / "report.md").read_text() + "\n"
    return place / "compared"


def test_every_system_has_its_report_with_the_figures_of_an_evaluation_alone(place: Path, compared: Path) -> None:
    files = {"report.csv", "report.html", "report.json", "report.md"}
    assert {path.name for path in compared.iterdir()} == files | {"quality_and_cost.png", *SYSTEMS}
    assert (compared / "quality_and_cost.png").read_bytes().startswith(b"\x89PNG")
    assert list(report(compared)["systems"]) == list(SYSTEMS)
    assert not (place / "compared.partial").exists()
    html = (compared / "report.html").read_text()
    assert all(f'"{name}"' in html for name in (*SYSTEMS, "drrag: QDC", "rerag: Baseline"))
    for name in ("drrag", "rerag"):  # after another one
        ended = evaluate(place, f"alone-{name}", name)
        assert ended.code == 0, ended.err
        assert ended.out.count("not measured: no judge is configured") == 1
        alone = place / f"alone-{name}"
        assert measured_cells(compared / name) == measured_cells(alone)
        assert [*map(timeless, questions(compared / name))] == [*map(timeless, questions(alone))]
        assert report(compared / name)["means"] == report(alone)["means"]


def per_question(out: Path, column: str) -> np.ndarray:
    field = column.replace("recall of gold", "recall_of_gold").replace("has-answer ", "has-answer_")
    return np.array([np.nan if (value := record[field]) is None else value for record in questions(out)])


def test_quality_paired_differences_and_costs_equal_a_plain_loop(compared: Path) -> None:
    found = cells(compared)
    different = 0
    for column in ("EM", "F1", "Acc", "recall of gold", "MRR", "has-answer recall"):
        first_N = per_question(compared / "bm25", column)
        for name in SYSTEMS:
            values_N = per_question(compared / name, column)
            key = ("differences", name, f"{column}, points")
            undefined = np.isnan(values_N).all()
            assert undefined == (name == "drrag" and column in ("EM", "F1", "Acc"))  # without a reader
            if undefined or name == "bm25":
                assert key not in found
            else:
                differences = [100 * (a - b) for a, b in zip(values_N, first_N, strict=True) if not np.isnan(a - b)]
                assert found[key] == pytest.approx(np.mean(differences), abs=1e-3)
                different += found[key] != 0
            quality = None if undefined else pytest.approx(100 * np.nanmean(values_N), abs=1e-3)
            assert found.get(("quality", name, f"{column} %")) == quality
    assert different > 2
    assert 0 < found["quality", "bm25", "EM %"] < 100
    assert found["quality", "bm25", "passages"] == 3
    for name in SYSTEMS:
        of_each = [record["costs"] for record in questions(compared / name)]
        for column, cost in {"retriever calls": "retriever_calls", "model calls": "model_calls"}.items():
            mean = np.mean([costs[cost] for costs in of_each])
            assert found["costs", name, column] == pytest.approx(mean, rel=1e-5)
        seconds = np.mean([sum(v for k, v in costs.items() if "seconds/" in k) for costs in of_each])
        assert found["costs", name, "seconds"] == pytest.approx(seconds, rel=1e-4)
    assert found["costs", "rerag", "model calls"] == 6 + 3
    assert found["costs", "rerag", "s, scoring"] > 0
    assert ("costs", "bm25", "s, scoring") not in found
    of_kind = [record["recall_of_gold"] for record in questions(compared / "rerag") if record["kind"] == "bridge"]
    assert found["recall of gold by kind", "rerag", "bridge"] == pytest.approx(100 * np.mean(of_kind), abs=1e-3)
    assert ("EM by kind", "drrag", "bridge") not in found


def test_variants_of_a_study_are_rows_of_their_system(compared: Path) -> None:
    found = cells(compared)
    rows = [row for table, row, column in found if table == "quality" and column == "recall of gold %"]
    assert rows == [
        "bm25", "drrag", "drrag: SM", "drrag: QDC", "rerag", "rerag: Baseline", "rerag: RE score", "rerag: RE context",
    ]  # fmt: skip
    # similarity alone is BM25's first three passages
    assert found["differences", "drrag: SM", "recall of gold, points"] == 0


def test_two_configs_of_one_name_and_options_typed_for_all(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is typed overrides every config; a system is freed before the next one loads; studies can be left out."""
    write_configs(place / "other", {"bm25": {"system": system("retrieve_read.RetrieveRead", k=1)}})
    load, alive = RetrieveRead.load, list[weakref.ref[RetrieveRead]]()

    def watched(self: RetrieveRead) -> None:
        assert not [each for each in alive if each()]
        alive.append(weakref.ref(self))
        load(self)

    monkeypatch.setattr(RetrieveRead, "load", watched)
    more = ("--limit", "3", "--system.init_args.reader", "null", "--studies", "false")
    ended = evaluate(place, "two", "bm25", "other/bm25", "drrag", more=more)
    assert ended.code == 0, ended.err
    assert len(alive) == 2
    found = cells(place / "two")
    names = ["bm25-1", "bm25-2", "drrag"]
    assert [row for table, row, column in found if table == "quality" and column == "passages"] == names
    assert [found["quality", name, "passages"] for name in names] == [3, 1, 3]
    assert not [*(place / "two/drrag").glob("*.png")]  # the study's
    assert ("quality", "bm25-1", "EM %") not in found
    assert report(place / "two")["questions"]["measured"] == 3


def test_systems_are_named_after_their_configs() -> None:
    for one in ([], ["ask", "--config", "a.yaml", "--config", "b.yaml"], ["evaluate", "--config", "a.yaml"]):
        assert systems_of(one) == {}
    assert systems_of(["evaluate", "--out", "x", "--config=a.yaml", "--config", "c/b.yaml", "--limit=3"]) == {
        "a": ["evaluate", "--config", "a.yaml", "--out", "x", "--limit=3"],
        "b": ["evaluate", "--config", "c/b.yaml", "--out", "x", "--limit=3"],
    }
    named = systems_of(["evaluate", *(f"--config={name}.yaml" for name in ("a", "a-2", "x/a", "y/a"))])
    assert [*named] == ["a-1", "a-2", "a-3", "a-4"]
    with pytest.raises(UserError, match="would be named a-1, a-2, a-2"):
        systems_of(["evaluate", *(f"--config={name}.yaml" for name in ("a", "x/a", "a-2"))])


def test_a_config_may_list_systems_with_their_options(tmp_path: Path) -> None:
    listed = tmp_path / "listed.yaml"
    listed.write_text("systems:\n  one: --config a.yaml --k 4\n  two:\n    --config a.yaml\n    --name 'with blanks'\n")
    one, two = ["--config", "a.yaml", "--k", "4"], ["--config", "a.yaml", "--name", "with blanks"]
    assert systems_of(["evaluate", f"--config={listed}", "--config", "x/one.yaml", "--k", "5"]) == {
        "one-1": ["evaluate", *one, "--k", "5"], "two": ["evaluate", *two, "--k", "5"],
        "one-3": ["evaluate", "--config", "x/one.yaml", "--k", "5"],
    }  # fmt: skip
    for wrong in ("systems: [a.yaml]", "systems: {one: {k: 4}}", "systems: {one: --k 4, two: --k 5}\nlimit: 3"):
        listed.write_text(wrong)
        with pytest.raises(UserError, match="a list of systems is"):
            systems_of(["evaluate", "--config", str(listed)])


def test_after_an_interruption_in_the_second_system_the_first_is_not_run_again(
    place: Path, compared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    answer = RetrieveRead.answer

    @wraps(answer)
    def counted(self: RetrieveRead, questions: Any) -> Any:
        calls.append(len(questions))
        return answer(self, questions)

    monkeypatch.setattr(RetrieveRead, "answer", counted)
    with pytest.MonkeyPatch.context() as stopping:
        stopping.setattr(MarginalReader, "matrices", interrupt)
        assert evaluate(place, "cut", "bm25", "rerag").code == INTERRUPTED
    assert calls == [10]
    assert not (place / "cut").exists()
    assert len([*(place / "cut.partial" / "bm25.partial").glob("answers-*.jsonl")]) == 1
    assert evaluate(place, "cut", "bm25", "rerag").code == 0
    assert calls == [10, 10]  # the control of the second system
    assert not list(place.glob("cut.*"))
    found, of_all = measured_cells(place / "cut"), measured_cells(compared)
    assert found == {key: value for key, value in of_all.items() if not key[1].startswith("drrag")}
    for name in ("bm25", "rerag"):
        assert [*map(timeless, questions(place / "cut" / name))] == [*map(timeless, questions(compared / name))]


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt
