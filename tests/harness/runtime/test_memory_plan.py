"""The memory plan against indexes and models that are loaded and used, and its sums, verdicts and changes."""

import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from common.command_line import StandIn
from common.errors import UserError
from common.records import Question
from harness.evaluation.engine import QUESTIONS_AT_ONCE
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.dense import DenseRetriever, build_dense
from harness.runtime.memory_needs import GIB, RAM, Load, Machine, Memory, Need
from harness.runtime.memory_plan import Plan, plan_memory
from harness.selection.options import SelectionOptions
from harness.strategies.drrag import DrRag
from harness.strategies.retrieve_read import RetrieveRead
from tests.helpers.planned_world import write_world
from tests.helpers.retrieval_world import WORDS, corpus

ROOT = Path(__file__).parents[3]
HERE = Machine({RAM: 64 * GIB}, threads=2)
WITH_GPU = Machine({RAM: 64 * GIB, "GPU 0": GIB}, threads=2, named=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    return write_world(tmp_path_factory.mktemp("planned"), checkpoints)


def need(memory: Memory, words: str) -> Need:
    (found,) = [each for each in memory.needs if words in each.what]
    return found


def dense(world: Path, machine: Machine = HERE, **options: object) -> Memory:
    arguments = {"device": "auto", "encoder": None, "index_device": "auto", "precision": "fp32", "batch_tokens": None}
    return DenseRetriever.memory(machine, Load(1, 1), world / "dense", **{**arguments, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["flat", "ivf", "hnsw"])
def test_a_dense_index_takes_what_it_is_planned_to_take(world: Path, tmp_path: Path, kind: str) -> None:
    loaded = DenseRetriever(world / "dense", "cpu")
    if kind != "flat":
        build_dense(corpus(300, longest=12), tmp_path / "dense", loaded.encoder, faiss_index=kind, nlist=4)  # type: ignore[arg-type]
        (world / kind).symlink_to(tmp_path / "dense")
        loaded = DenseRetriever(tmp_path / "dense", "cpu")
    vectors, store = loaded._vectors, loaded._passages
    planned = need(DenseRetriever.memory(
        HERE, Load(1, 1), tmp_path / "dense" if kind != "flat" else world / "dense", "cpu", None, "cpu", "fp32", None
    ), "vectors")  # fmt: skip
    table, mapped = len(store._offsets) * 8, len(store._bytes)
    if kind == "flat":  # mapped, and all of it is read by each search
        assert (planned.index, planned.mapped) == (vectors.vectors_ND.nbytes + table, mapped)
    else:  # FAISS writes what it holds
        assert planned.index == (tmp_path / "dense" / "vectors.faiss").stat().st_size + table
        assert planned.mapped == vectors.vectors_ND.nbytes + mapped
    encoder = need(dense(world), "encoder")
    assert encoder.weights == loaded.encoder.size_bytes + sum(b.nbytes for b in loaded.encoder.model.buffers())
    assert encoder.place == RAM


def traced(run: Callable[[], object]) -> tuple[object, int]:
    """What `run` returns, and the largest sum of Python's and numpy's allocations during it."""
    tracemalloc.start()
    try:
        return run(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("words", [2_000, 30_000])  # a dictionary grows in steps
def test_bm25_takes_less_than_planned_and_most_of_it(tmp_path: Path, words: int) -> None:
    passages = corpus(3000)
    rare = [type(passages[0]).of(f"word{n}", "amber basin") for n in range(words)]
    build_bm25([*passages, *rare], tmp_path / "bm25")
    Bm25Retriever(tmp_path / "bm25", verify="size").search(["amber"], 10)  # what is made once
    (planned,) = Bm25Retriever.memory(HERE, tmp_path / "bm25").needs
    loaded, held = traced(lambda: Bm25Retriever(tmp_path / "bm25", verify="size"))
    assert isinstance(loaded, Bm25Retriever)
    assert 0.5 * planned.index < held < planned.index + 20_000
    _, used = traced(lambda: loaded.search(["amber basin", " ".join(WORDS)], 10))  # every passage is found
    assert 0.5 * planned.activations < used < planned.activations + 20_000


@pytest.mark.parametrize("selection", [
    SelectionOptions(), SelectionOptions("cis"), SelectionOptions("cfs", depth=3, take="all"), SelectionOptions("sm"),
    SelectionOptions("ranked"), SelectionOptions("ranked", pool="both", symmetric=True, anchor_depth=20),
])  # fmt: skip
def test_no_selection_scores_more_pairs_than_planned(world: Path, selection: SelectionOptions) -> None:
    system = DrRag(Bm25Retriever(world / "bm25"), world / "drrag", selection, lookahead=100, device="cpu")
    scored = [int(answer.costs["model_calls"]) for answer in system.answer(WORDS)]
    assert max(scored) <= selection.most_pairs
    if selection.method != "cis":  # which scores the documents that survive, once each
        assert max(scored) >= 0.3 * selection.most_pairs


def stand_in(world: Path, **more: object) -> StandIn:
    """The config of dense retrieval with a reader-less DR-RAG, as the command line passes it."""
    retriever = StandIn(
        DenseRetriever,
        {
            "index": world / "dense", "device": "auto", "encoder": None, "index_device": "auto", "precision": "auto",
            "batch_tokens": None,
        },
    )  # fmt: skip
    arguments = {"retriever": retriever, "serving": world / "drrag", "selection": SelectionOptions("ranked")}
    return StandIn(DrRag, {**arguments, "device": "auto", "precision": "auto", "selection_file": None, **more})


def test_all_that_is_held_counts_and_the_largest_activations(world: Path) -> None:
    plan = plan_memory(HERE, "strategy", stand_in(world), 8)
    classifier, encoder, vectors = (
        need(Memory(tuple(plan.needs)), word) for word in ("classifier", "encoder", "vectors")
    )
    libraries = need(Memory(tuple(plan.needs)), "libraries")
    assert libraries.libraries > 100 * 2**20
    held = classifier.weights + encoder.weights + vectors.index + libraries.libraries
    assert plan.needed(RAM) == held + max(classifier.activations, encoder.activations)
    assert plan_memory(HERE, "strategy", stand_in(world), 1).needed(RAM) <= plan.needed(RAM)
    assert [entry.key for entry in plan.entries] == ["strategy", "strategy.init_args.retriever"]


def test_parts_are_where_their_options_say(world: Path) -> None:
    places = {n.what.split()[0]: n.place for n in plan_memory(WITH_GPU, "strategy", stand_in(world), 8).needs}
    assert places == {"Python": RAM, "CUDA": "GPU 0", "classifier": "GPU 0", "encoder": "GPU 0", "vectors": RAM}
    on_cpu = plan_memory(WITH_GPU, "strategy", stand_in(world, device="cpu"), 8)
    assert need(Memory(tuple(on_cpu.needs)), "classifier").place == RAM
    assert WITH_GPU.place("cuda") == WITH_GPU.place("cuda:0") == "GPU 0"
    with pytest.raises(UserError, match="device is 'cuda', but the plan is for 0 GPUs"):
        HERE.place("cuda")
    with pytest.raises(UserError, match="device is 'cuda:1', but the plan is for 1 GPUs"):
        WITH_GPU.place("cuda:1")
    with pytest.raises(UserError, match="device 'gpu' is unknown"):
        WITH_GPU.place("gpu")
    with pytest.raises(UserError, match="device 'cuda:x' is unknown"):
        WITH_GPU.place("cuda:x")


def test_changes_are_planned_again_and_move_no_part_to_where_it_does_not_fit(world: Path) -> None:
    small = Machine({RAM: 64 * GIB, "GPU 0": 1000}, threads=1, named=True)
    plan = plan_memory(small, "strategy", stand_in(world), 8)
    assert plan.short == ["GPU 0"]
    after, made = plan.remedy()
    typed = [change.typed(plan.entries[change.entry].key) for change in made]
    assert set(typed) == {"--strategy.init_args.device cpu", "--strategy.init_args.retriever.init_args.device cpu"}
    assert (after.needed("GPU 0"), after.short) == (0, [])
    assert sum(change.saves["GPU 0"] for change in made) == plan.needed("GPU 0")
    no_ram = Plan(Machine({RAM: plan.needed(RAM), "GPU 0": 1000}, 1, True), plan.entries, plan.process)
    assert not [change for change in no_ram.remedy()[1] if change.value == "cpu"]
    assert Plan(Machine({RAM: None}, 1), plan.entries, plan.process).short == []


class Toy:
    """A system of somebody else, which says nothing of its memory."""

    def __init__(self, retriever: object, folders: list[Path], model: Path, index: Path, mode: str) -> None:
        raise AssertionError("a plan builds nothing")


def test_of_an_unknown_class_files_are_counted_and_its_parts_are_planned(world: Path) -> None:
    toy = StandIn(
        Toy,
        {
            "retriever": StandIn(Bm25Retriever, {"index": world / "bm25"}), "mode": "min/max",
            "model": world / "rerag", "index": str(world / "dense"), "tokens": 3, "none": None,
        },
    )  # fmt: skip
    plan = plan_memory(HERE, "strategy", toy, 1)
    assert plan.entries[0].memory.unknown == f"{__name__}.Toy does not say what memory it takes"
    weights = sum(path.stat().st_size for path in (world / "rerag").rglob("*.safetensors"))
    assert [(n.weights, bool(n.index)) for n in plan.entries[0].memory.needs] == [(weights, False), (0, True)]
    assert plan.entries[1].memory.needs[0].what.startswith("words and passages of")


def test_a_system_without_networks_is_planned_without_torch(world: Path) -> None:
    part = StandIn(
        RetrieveRead, {"retriever": StandIn(Bm25Retriever, {"index": world / "bm25"}), "k": 2, "reader": None}
    )
    torch_bytes = 2**20
    with_torch, without = (
        plan_memory(Machine({RAM: GIB}, 1, torch_bytes=size), "strategy", part, 1).needed(RAM)
        for size in (0, torch_bytes)
    )
    assert with_torch - without == pytest.approx(torch_bytes, abs=2**19)


def test_ask_and_evaluate_answer_as_many_questions_at_once_as_the_plan_says() -> None:
    import inspect

    from harness.commands.plan import plan

    assert inspect.signature(plan).parameters["questions_at_once"].default == QUESTIONS_AT_ONCE


def test_answers_of_a_planned_system_are_those_of_the_loaded_one(world: Path) -> None:
    """The configs that the plan's tests use are real ones."""
    system = DrRag(DenseRetriever(world / "dense", "cpu"), world / "drrag", SelectionOptions("ranked"), device="cpu")
    assert system.answer([Question("1", "amber basin")])[0].evidence


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say how much memory is used")
@pytest.mark.parametrize("config", ["dense", "rerag", "bm25"])
def test_ask_takes_as_much_as_planned(world: Path, config: str) -> None:
    """In processes of their own: most of it are the libraries."""

    def run(*typed: str) -> str:
        code = "import infer; infer.main(); print(*[line for line in open('/proc/self/status') if line[:5] == 'VmHWM'])"
        ended = subprocess.run(
            [sys.executable, "-c", code, *typed], cwd=world, env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return ended.stdout

    printed = run("plan", "--config", f"{config}.yaml", "--questions_at_once", "1", "--json", "true")
    planned = json.loads(printed[: printed.rindex("}") + 1])
    mapped = sum(part["mapped"] for part in planned["parts"])
    peak = int(run("ask", "--config", f"{config}.yaml", "--question", "amber basin").split()[-2]) * 1024
    assert peak == pytest.approx(planned["places"][RAM]["needed"] + mapped, rel=0.2)
