"""Training of generative rewriters: data, the step's loss, and real (tiny) runs of the command line."""

import json
import math
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import ModelCard

import train
from common.errors import ArtifactError, DataError, UserError
from common.records import Passage, Question
from datamodules.dmqr import RewriteData, RewriteSource
from datamodules.dmqr_recall import Recall
from datamodules.examples.splits import Source
from datamodules.formats.reading import read_questions
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.multi_query import MultiQueryRetriever
from harness.rewriters.trained import TrainedRewriter
from models.length_batching import IGNORE
from models.lora import adapter_names, adapter_parameters
from tests.conftest import NAMES
from tests.helpers.recorder import HARDLY, RECORDED, assert_same_steps
from tests.helpers.runs import assert_repeated, assert_same_logs, fit_in_turn, largest_difference
from tests.helpers.table_rewriter import CountingRetriever
from tests.helpers.tolerances import model_close
from trainers.dmqr import RewriterTrainer
from trainers.dmqr_validation import Validated, summary


def rows(count: int) -> list[dict[str, Any]]:
    """Learnable rewrites: by gqr the names of the question, by decomposition one query each."""
    rng, made = random.Random(3), []
    for number in range(count):
        one, two = rng.sample(NAMES, 2)
        question = f"who is {one} of the film {two} in the city"
        if number % 3 == 0:
            made.append({"question": question, "strategy": "decomposition", "rewrite": f"{one} ; {two}"})
        elif number % 3 == 1:
            made.append({"question": question, "strategy": "gqr", "rewrite": f"{one} film {two}"})
        else:
            made.append(
                {"question": f"who is of {two}", "strategy": "gqr", "rewrite": two, "history": [f"is {one} born", one]}
            )
    return made


CONFIG = """
name: tiny
seed_everything: 0
model:
  class_path: trainers.dmqr.RewriterTrainer
  init_args:
    {{pretrained: {model}, max_tokens: 40, max_rewrite_tokens: 8, lora_rank: 4, lora_dropout: {dropout}, learning_rate: 1.0e-2,
     warmup_steps: 2, dropout: 0.0}}
data:
  class_path: datamodules.dmqr.RewriteData
  init_args:
    train: [{{layout: rewrites, path: {data}}}]
    validation_fraction: 0.2
    rewrites_per_step: 12
    rewrites_per_validation_batch: 5
    generated_rewrites: 7
trainer:
  accelerator: cpu
  max_epochs: 2
  enable_progress_bar: false
  log_every_n_steps: 1
  num_sanity_val_steps: 1
checkpoint: {{monitor: val/loss_nats, mode: min}}
early_stopping: {{mode: min, patience: 100}}
"""


@pytest.fixture
def workplace(tmp_path: Path, checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with data and a config for a tiny run."""
    data = tmp_path / "rewrites.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows(60)))
    write_config(tmp_path, checkpoints["t5"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["train.py"])  # Lightning warns of others
    return tmp_path


def write_config(folder: Path, model: Path, dropout: float = 0.1) -> None:
    (folder / "config.yaml").write_text(
        CONFIG.format(model=model, data=folder / "rewrites.jsonl", dropout=dropout)
    )  # fmt: skip


def gold_of(row: dict[str, Any]) -> dict[str, Any]:
    """HotpotQA's row of a question: a gold passage for each of its names, in other words than the question's."""
    names = [word for word in row["question"].split() if word.startswith("name")]
    return {
        "_id": row["question"], "question": row["question"], "answer": "x", "supporting_facts": [[n, 0] for n in names],
        "context": [[n, [f"{n} was born"]] for n in names],
    }  # fmt: skip


def write_gold(folder: Path) -> tuple[str, ...]:
    """Gold passages, an index with passages that the questions are likelier to find, and the options that search it."""
    (folder / "gold.json").write_text(json.dumps([gold_of(row) for row in rows(60) if not row.get("history")]))
    noise = [Passage.of(f"{n} film", f"who is {n} in the city of the film {i}") for n in NAMES[::3] for i in range(2)]
    build_bm25([*noise, *(Passage.of(n, f"{n} was born") for n in NAMES)], folder / "index")
    return (
        "--data.retriever", "harness.retrievers.bm25.Bm25Retriever", "--data.retriever.index", str(folder / "index"),
        "--data.gold_questions", f"[{{layout: hotpotqa, path: {folder / 'gold.json'}}}]", "--data.recall_k", "3",
        "--checkpoint.monitor", "val/recall_at_3", "--checkpoint.mode", "max", "--early_stopping.mode", "max",
    )  # fmt: skip


def fit(name: str, *extra: str) -> Path:
    """Run the command line in this process; the run's folder."""
    train.main(["fit", "--config", "config.yaml", "--name", name, *extra])
    return Path("checkpoints") / name


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def checkpoint_of(folder: Path, file: str = "best.ckpt") -> dict[str, Any]:
    return torch.load(folder / file, weights_only=True)


def weights(folder: Path, file: str = "last.ckpt") -> dict[str, torch.Tensor]:
    return checkpoint_of(folder, file)["state_dict"]


class _Bench:
    """What RewriteData needs of Lightning's trainer, for any rank."""

    def __init__(self, module: RewriterTrainer, rank: int = 0, ranks: int = 1, accumulate: int = 1) -> None:
        self.lightning_module, self.global_rank, self.world_size = module, rank, ranks
        self.accumulate_grad_batches, self.is_global_zero = accumulate, False


def data_of(module: RewriterTrainer, path: Path, *bench: int, **options: Any) -> RewriteData:
    data = RewriteData(
        [RewriteSource("rewrites", str(path))], rewrites_per_step=12, validation_fraction=0.2, generated_rewrites=3, **options
    )  # fmt: skip
    data.trainer = _Bench(module, *bench)
    data.setup("fit")
    return data


@pytest.fixture
def module(checkpoints: dict[str, Path]) -> RewriterTrainer:
    torch.manual_seed(0)
    return RewriterTrainer(str(checkpoints["t5"]), 40, 8, lora_rank=4, lora_dropout=0.0).eval()


def test_a_dialogue_is_on_one_side_of_the_split_and_every_example_is_used_once(
    module: RewriterTrainer, workplace: Path
) -> None:
    first = {"question": "who is name1", "strategy": "gqr", "rewrite": "name1"}
    later = [first | {"question": f"is name{n}", "history": ["who is name1", "yes"]} for n in range(2, 12)]
    made = [*rows(60), first, first, *later, first | {"strategy": "decomposition", "rewrite": "name1 ; name1"}]
    (workplace / "rewrites.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    data = data_of(module, workplace / "rewrites.jsonl")
    sides = [[each.example for each in side] for side in (data.training, data.held_out)]
    assert len(sides[0]) + len(sides[1]) == 60 + 1 + 10 + 1  # the repeated one once
    assert len({e for side in sides for e in side}) == 72
    here = [sum("who is name1" in (*e.history, e.question) for e in side) for side in sides]
    assert sorted(here) == [0, 12]
    (repeated,) = [t for t in (*data.training, *data.held_out) if t.example.rewrite == "name1 ; name1"]
    assert module.rewriter.encode.decoded(repeated.target) == "name1"  # the same sub-question counts once
    assert data.strategies == ["gqr", "decomposition"]  # in the order of the pool
    assert data.audit["questions_with_history"] == sum(bool(e.history) for e in sides[0])


def test_what_does_not_fit_is_skipped_and_counted(module: RewriterTrainer, workplace: Path) -> None:
    odd = [
        {"question": "name1 " * 50, "strategy": "gqr", "rewrite": "name1"},
        {"question": "who is name1 a", "strategy": "gqr", "rewrite": "name1 " * 9},
        {"question": "who is name1 b", "strategy": "decomposition", "rewrite": " ; "},
    ]
    (workplace / "rewrites.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows(60), *odd]))
    data = data_of(module, workplace / "rewrites.jsonl")
    assert data.audit["skipped"] == {"long_questions": 1, "long_rewrites": 1, "empty_rewrites": 1}
    assert len(data.training) + len(data.held_out) == 60


def test_validation_files_are_never_trained_on(module: RewriterTrainer, workplace: Path) -> None:
    held = workplace / "held.jsonl"
    held.write_text("".join(json.dumps(row | {"rewrite": "name1"}) + "\n" for row in rows(60)[:10]))
    data = data_of(module, workplace / "rewrites.jsonl", validation=[RewriteSource("rewrites", str(held))])
    assert len(data.held_out) == 10
    assert len(data.training) <= 50
    sides = [
        {(*each.example.history, each.example.question)[0] for each in side} for side in (data.held_out, data.training)
    ]
    assert not sides[0] & sides[1]


@pytest.mark.numeric
@pytest.mark.parametrize(("ranks", "accumulate"), [(1, 4), (2, 1), (4, 4)])  # 16 parts exceed the 12 rewrites of a step
def test_the_parts_make_up_the_mean_over_the_tokens_of_the_step(
    module: RewriterTrainer, workplace: Path, ranks: int, accumulate: int
) -> None:
    def share(batch: Any) -> float:
        return float((module(batch).sum(dim=1) * batch.weights_P).sum() / batch.step_tokens)

    path = workplace / "rewrites.jsonl"
    whole = list(data_of(module, path).train_dataloader())
    parts = [list(data_of(module, path, rank, ranks, accumulate).train_dataloader()) for rank in range(ranks)]
    with torch.inference_mode():
        for number, batch in enumerate(whole):
            nll_PA = module(batch)
            mean = float(nll_PA[batch.labels_PA != IGNORE].mean())
            assert share(batch) == model_close(mean)
            mine = [each[number * accumulate + n] for each in parts for n in range(accumulate)]
            assert sum(map(share, mine)) == model_close(mean)
            seen = [row for b in mine for row, w in zip(b.rows_P.tolist(), b.weights_P.tolist(), strict=True) if w]
            assert sorted(seen) == sorted(batch.rows_P.tolist())


def test_the_scores_of_a_validation_by_hand() -> None:
    found = summary(
        [
            Validated(6.0, 2, "gqr", (1.0, 1.0), False, Recall(0.5, 0.0)),
            Validated(3.0, 1, "gqr", (0.0, 0.5), False),
            Validated(9.0, 3, "cce", (0.0, 0.0), True, Recall(1.0, 0.5)),
            Validated(2.0, 4, "cce"),
        ],
        "recall_at_7",
    )
    assert found == pytest.approx(
        {
            "loss_nats": 2.0,
            "rewrite_tokens": 10,
            "em": 100 / 3,
            "f1": 50.0,
            "empty": 100 / 3,
            "f1_gqr": 75.0,
            "f1_cce": 0.0,
            "recall_at_7": 75.0,
            "recall_at_7_question": 25.0,
        }
    )


def test_a_run_learns_and_exports_a_rewriter_that_rewrites_alike(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fit("tiny", "--trainer.max_epochs", "10", "--trainer.check_val_every_n_epoch", "5")
    losses = [row["val/loss_nats"] for row in metrics(folder) if "val/loss_nats" in row]
    start = math.log(104)  # of its vocabulary
    assert losses[-1] < 0.85 * start
    assert all("lora_" in name for name in weights(folder))
    rewriter = TrainedRewriter(folder / "serving", "cpu", "fp32")
    assert rewriter.strategies == ("gqr", "decomposition")
    best = checkpoint_of(folder)
    module = RewriterTrainer(**{k: v for k, v in best["hyper_parameters"].items() if not k.startswith("_")}).eval()
    module.load_state_dict(best["state_dict"])
    questions = [Question("1", "who is of name5", history=("is name7 born", "name7")), Question("2", "who is name9")]
    made = rewriter.rewrite(questions, ["gqr", "decomposition"])
    tasks = [module.rewriter.task(q.text, s, q.history) for q in questions for s in ("gqr", "decomposition")]
    texts = module.rewriter.write([ids for ids in module.rewriter.encode(tasks) if ids])
    for number, rewrites in enumerate(made):
        for place, name in enumerate(("gqr", "decomposition")):
            queries = module.rewriter.queries(texts[2 * number + place], name)
            assert rewrites.queries[name] == (queries or (questions[number].text,))
    card = ModelCard.load(folder / "serving/README.md")
    assert card.data.to_dict()["pipeline_tag"] == "text2text-generation"
    (code,) = re.findall(r"```python\n(.*?)```", card.text, flags=re.DOTALL)
    monkeypatch.chdir(folder / "serving")
    exec(compile(code, "README.md", "exec"), found := {"__name__": "card"})
    (alone,) = rewriter.model.encode([rewriter.model.task(found["question"], "gqr")])
    assert rewriter.model.encode.decoded(found["ids"][0]) == rewriter.model.write([alone])[0]


def test_recall_on_validation_chooses_the_checkpoint(workplace: Path) -> None:
    """The logged figures are those that the harness measures with the exported rewriter.

    Here the lowest recall chooses: it shows that the rewrites count, and so small a model does not learn to raise it.
    """
    lowest = ("--checkpoint.mode", "min", "--early_stopping.mode", "min")
    folder = fit("recall", *write_gold(workplace), *lowest, "--trainer.max_epochs", "8", "--model.learning_rate",
                 "3.0e-2", "--trainer.check_val_every_n_epoch", "2")  # fmt: skip
    measured = [row for row in metrics(folder) if "val/recall_at_3" in row]
    assert len(measured) == 4
    assert len({row["val/recall_at_3"] for row in measured}) > 1
    (alone,) = {row["val/recall_at_3_question"] for row in measured}
    assert 0 < alone < 100
    rewriter = TrainedRewriter(folder / "serving", "cpu", "fp32")
    module = RewriterTrainer(str(checkpoint_of(folder)["hyper_parameters"]["pretrained"]), 40, 8)
    held = {e.example for e in data_of(module, workplace / "rewrites.jsonl").held_out if not e.example.history}
    asked = list(read_questions("hotpotqa", "gold.json"))
    asked = [each for each in asked if each.text in {e.question for e in held}]
    assert len(asked) > 5
    searched = Bm25Retriever(Path("index"))
    system = MultiQueryRetriever(searched, rewriter, rewriter.strategies, per_query=3, fusion="rrf")
    best = checkpoint_of(folder)["validation_facts"]
    for name, retriever in (("recall_at_3", system), ("recall_at_3_question", searched)):
        hits = retriever.search([each.text for each in asked], 3)
        assert 100 * retrieval_scores(asked, hits, [3])["recall@3"].mean() == pytest.approx(best[name])
    assert best["recall_at_3"] == min(row["val/recall_at_3"] for row in measured) != alone


def test_validation_searches_with_the_question_and_its_rewrites_by_all_strategies(
    module: RewriterTrainer, workplace: Path
) -> None:
    write_gold(workplace)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.5)  # its rewrites depend on the strategy
    retriever = CountingRetriever(Bm25Retriever(Path("index")))
    gold = [Source("hotpotqa", "gold.json")]
    data = data_of(module, workplace / "rewrites.jsonl", retriever=retriever, gold_questions=gold, recall_questions=5)
    retriever.asked.clear()
    module.trainer = data.trainer
    data.trainer.datamodule = data
    with torch.inference_mode():
        for number, batch in enumerate(data.val_dataloader()):
            module.validation_step(batch, number)
    assert [row for row, each in module.validated.items() if each.recall] == sorted(data.gold)
    assert len(data.gold) == 5
    expected: dict[str, set[str]] = {"question": set(), "gqr": set(), "decomposition": set()}
    for row in data.gold:
        question = data.held_out[row].example.question
        expected["question"].add(question)
        (texts,) = module.rewriter.rewrite([(question, ())], ["gqr", "decomposition"])
        for name, text in texts.items():
            expected[name] |= {*module.rewriter.queries(text or "", name)}
    assert {query for queries, _ in retriever.asked for query in queries} == set.union(*expected.values())
    assert all(expected[name] - expected[other] for name in expected for other in expected if name != other)
    assert {k for _, k in retriever.asked} == {10}


def test_a_stop_without_better_recall(workplace: Path) -> None:
    """Weights that do not move have the same recall at every validation."""
    options = ("--model.learning_rate", HARDLY, "--early_stopping.patience", "1", "--trainer.max_epochs", "5")
    folder = fit("stopped", *write_gold(workplace), *options)
    assert len([row for row in metrics(folder) if "val/recall_at_3" in row]) == 2


def test_an_adapter_for_each_strategy_is_trained_exported_and_used(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fit("own", "--model.adapters", "per_strategy", "--trainer.max_epochs", "6", "--model.learning_rate", "3.0e-2",
                 "--trainer.check_val_every_n_epoch", "3")  # fmt: skip
    losses = [row["val/loss_nats"] for row in metrics(folder) if "val/loss_nats" in row]
    assert losses[-1] < losses[0] < 0.95 * math.log(104)
    best = checkpoint_of(folder)
    module = RewriterTrainer(**{k: v for k, v in best["hyper_parameters"].items() if not k.startswith("_")}).eval()
    module.load_state_dict(best["state_dict"])
    assert adapter_names(best["state_dict"]) == ["gqr", "decomposition"]
    assert not any(each.training for each in module.modules())  # the added layers as well
    own = [
        torch.cat([p.flatten() for p in adapter_parameters(module.rewriter.network, n)])
        for n in ("gqr", "decomposition")
    ]
    assert (own[0] - own[1]).abs().max() > 0.01
    rewriter = TrainedRewriter(folder / "serving", "cpu", "fp32")
    questions = [Question("1", "who is of name5", history=("is name7 born", "name7")), Question("2", "who is name9")]
    asked = [(question.text, question.history) for question in questions]
    texts = module.rewriter.rewrite(asked, ["gqr", "decomposition"])
    assert rewriter.model.rewrite(asked, ["gqr", "decomposition"]) == texts
    assert rewriter.rewrite(questions, ["decomposition"])[1].queries["decomposition"]
    card = ModelCard.load(folder / "serving/README.md")
    assert "for each strategy a LoRA adapter of rank 4" in card.text
    (code,) = re.findall(r"```python\n(.*?)```", card.text, flags=re.DOTALL)
    monkeypatch.chdir(folder / "serving")
    exec(compile(code, "README.md", "exec"), found := {"__name__": "card"})
    (alone,) = rewriter.model.encode([rewriter.model.task(found["question"], "gqr")])
    assert rewriter.model.encode.decoded(found["ids"][0]) == rewriter.model.write([alone], ["gqr"])[0]


@pytest.mark.parametrize("ranks", [1, 2])  # DDP gives every weight a gradient
def test_a_step_of_one_strategy_leaves_the_other_s_adapter_as_it_is(
    checkpoints: dict[str, Path], workplace: Path, ranks: int
) -> None:
    """Also when the other one has momentum and weights decay."""
    torch.manual_seed(0)
    module = RewriterTrainer(str(checkpoints["t5"]), 40, 8, lora_rank=4, adapters="per_strategy")
    data = data_of(module, workplace / "rewrites.jsonl")
    module.trainer = data.trainer
    data.trainer.datamodule, data.trainer.world_size, data.trainer.precision = data, ranks, "32-true"
    data.trainer.strategy = "ddp"
    module.setup("validate")
    optimizer = torch.optim.AdamW([p for p in module.parameters() if p.requires_grad], lr=0.1, weight_decay=0.1)

    def step(strategies: set[str]) -> None:
        chosen = [row for row, each in enumerate(data.training) if each.example.strategy in strategies][:4]
        optimizer.zero_grad()
        module.training_step(data._collate(0, chosen[:2], chosen), 0).backward()
        if ranks == 2:
            assert all(p.grad is not None for p in module.parameters() if p.requires_grad)
        module.on_after_backward()
        optimizer.step()

    def weights_of(name: str) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in adapter_parameters(module.rewriter.network, name)])

    step({"gqr"})
    step({"decomposition"})
    before = {name: weights_of(name) for name in ("gqr", "decomposition")}
    step({"gqr"})
    assert torch.equal(weights_of("decomposition"), before["decomposition"])
    assert (weights_of("gqr") - before["gqr"]).abs().max() > 0.01


@pytest.mark.numeric
@pytest.mark.whole_run
def test_accumulation_trains_as_one_batch(workplace: Path, checkpoints: dict[str, Path]) -> None:
    write_config(workplace, checkpoints["t5"], dropout=0.0)
    options = (
        *RECORDED,
        "--model.learning_rate",
        HARDLY,
        "--trainer.max_steps",
        "3",
        "--trainer.limit_val_batches",
        "0",
    )
    one, four = fit("one", *options), fit("four", *options, "--trainer.accumulate_grad_batches", "4")
    assert_same_steps(four, one, rows=12)
    assert_same_logs(metrics(four), metrics(one))


@pytest.mark.numeric
@pytest.mark.whole_run
def test_two_processes_train_as_one(workplace: Path, checkpoints: dict[str, Path]) -> None:
    write_config(workplace, checkpoints["t5"], dropout=0.0)
    options = (*RECORDED, "--model.learning_rate", HARDLY, *write_gold(workplace))
    variants = {
        "two": (), "full": ("--model.lora_rank", "null"),
        "own": ("--model.adapters", "per_strategy", "--data.rewrites_per_step", "3"),  # steps without a strategy
    }  # fmt: skip
    fit_in_turn(workplace, [["--name", name, *extra, *options] for name, extra in variants.items()])
    for name, extra in variants.items():
        two, alone = Path("checkpoints") / name, fit(f"{name}-alone", *options, *extra)
        assert_same_steps(two, alone, rows=12)
        assert_same_logs(metrics(two), metrics(alone))
        ours, theirs = ([r for r in metrics(folder) if "val/f1" in r] for folder in (two, alone))
        for mine, other in zip(ours, theirs, strict=True):
            assert mine == model_close(other)
            assert mine["val/recall_at_3"] == other["val/recall_at_3"] > 0


@pytest.mark.numeric
@pytest.mark.whole_run
@pytest.mark.parametrize(("adapters", "steps"), [("shared", (2, 5)), ("per_strategy", (5,))])
def test_resume_in_the_middle_of_an_epoch_is_exact(workplace: Path, adapters: str, steps: tuple[int, ...]) -> None:
    option = f"--model.adapters={adapters}"
    whole = fit("whole", option)
    cut = fit("cut", option, "--checkpoint.every_n_train_steps", "1", "--checkpoint.save_top_k=-1",
              "--checkpoint.filename", "{step}", "--checkpoint.monitor", "train/loss_nats")  # fmt: skip
    for step in steps:
        kept = workplace / f"kept-{step}.ckpt"
        shutil.copy(cut / f"step={step}.ckpt", kept)
        assert largest_difference(weights(workplace, kept.name), weights(whole)) > 0
        assert_repeated(weights(fit(f"from-{step}", option, "--ckpt_path", str(kept))), weights(whole))


def test_an_adapter_is_not_resumed_on_another_model(module: RewriterTrainer) -> None:
    saved: dict[str, Any] = {}
    module.on_save_checkpoint(saved)
    module.on_load_checkpoint(saved)
    saved["adapter_base"] = {"name": "t5-other", "sha256": {"model.safetensors": "0" * 64}}
    with pytest.raises(ArtifactError, match="adapter belongs to t5-other with other weights than those of"):
        module.on_load_checkpoint(saved)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model.lora_rank", "0"), "lora_rank must be at least 1, or null to train all weights"),
        (
            ("--model.adapters", "per_strategy", "--model.lora_rank", "null"),
            "per_strategy needs LoRA: give model.lora_rank",
        ),
        (("--model.lora_targets", "[none_such]"), r"lora_targets \['none_such'\] are no layers of"),
        (("--model.max_tokens", "8"), "max_tokens must be at least 16"),
        (("--data.generated_rewrites", "0"), "generated_rewrites must be at least 1"),
        (("--data.train", "[]"), "data.train names no file"),
        (("--checkpoint.monitor", "val/bleu"), "type --checkpoint.monitor val/f1"),
        (("--trainer.strategy", "fsdp2"), "RewriterTrainer run different numbers of forward"),
    ],
)
def test_mistakes_are_refused(options: tuple[str, ...], message: str, workplace: Path) -> None:
    with pytest.raises(Exception, match=message) as caught:
        fit("refused", *options)
    chain: BaseException | None = caught.value
    while chain is not None and not isinstance(chain, UserError):
        chain = chain.__cause__ or chain.__context__
    assert chain is not None
    assert "\n" not in str(chain)


def test_strategies_outside_the_pool_and_empty_sides_are_refused(module: RewriterTrainer, workplace: Path) -> None:
    file = workplace / "own.jsonl"
    file.write_text(json.dumps({"question": "who", "strategy": "mine", "rewrite": "name1"}))
    with pytest.raises(UserError, match=r"rewrites by 'mine', which is not in the pool \(gqr, kwr, .* model.pool"):
        data_of(module, file)
    file.write_text(json.dumps({"question": "who", "strategy": "gqr", "rewrite": "name1"}))
    with pytest.raises(DataError, match=r"training and . validation examples"):
        data_of(module, file)
