"""Generative rewriters: their data, parts of a step, validation, and real (tiny) runs of the command line."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM, T5Config, T5ForConditionalGeneration

import train
from common.errors import ArtifactError, DataError, UserError
from common.records import Passage, Question, passage_text
from common.retrieval import Retriever
from datamodules.dmqr import RewriteBatch, RewriteDataFile
from datamodules.dmqr_recall import Recall, asked, check_corpus, read_gold, recalls
from datamodules.examples.data_files import QuestionDataFile
from datamodules.formats.reading import read_questions
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.multi_query import MultiQueryRetriever
from harness.rewriters.trained import TrainedRewriter
from models.dmqr.rewriter import RewriterModel, read_rewriter_manifest
from models.dmqr.strategies import POOL
from models.length_batching import IGNORE
from models.lora import Lora, adapter_names, adapter_parameters
from tests.conftest import save_t5_tokenizer
from tests.helpers.rewrite_runs import data_of, rows, write_gold, write_rewrites
from tests.helpers.runs import ROOT
from tests.helpers.table_rewriter import TableRetriever
from tests.helpers.tiny_runs import best_of, checkpoint_of, divided_steps, fit, metrics, run_card, use
from tests.helpers.tolerances import model_close
from trainers.dmqr import RewriterTrainer
from trainers.dmqr_validation import RewriteValidation, is_question, summary

TRAINER = "rewriter"
STRATEGIES = ("gqr", "decomposition")


@pytest.fixture
def module(checkpoints) -> RewriterTrainer:
    return RewriterTrainer(str(checkpoints["t5"]), 40, 8, lora=Lora(4)).load().eval()


def weights_of(module: RewriterTrainer, strategy: str) -> torch.Tensor:
    """Of a strategy's adapter."""
    return torch.cat([p.detach().flatten() for p in adapter_parameters(module.rewriter.network, strategy)])


@pytest.mark.numeric
@pytest.mark.parametrize(("ranks", "accumulate"), [(1, 4), (2, 1), (4, 4)])  # 16 parts exceed the 12 rewrites of a step
def test_the_parts_make_up_the_mean_over_the_tokens_of_the_step(module, workplace, ranks, accumulate) -> None:
    def share(batch: Any) -> float:
        return float((module(batch).sum(dim=1) * batch.weights_P).sum() / batch.step_tokens)

    path = workplace / "rewrites.jsonl"
    with torch.inference_mode():
        for batch, mine in divided_steps(lambda *place: data_of(module, path, *place), ranks, accumulate):
            nll_PA = module(batch)
            mean = float(nll_PA[batch.labels_PA != IGNORE].mean())
            assert share(batch) == model_close(mean)
            assert sum(map(share, mine)) == model_close(mean)
            seen = [row for b in mine for row, w in zip(b.rows_P.tolist(), b.weights_P.tolist(), strict=True) if w]
            assert sorted(seen) == sorted(batch.rows_P.tolist())


@pytest.mark.parametrize(("adapters", "epochs", "rate"), [("shared", 10, "1.0e-2"), ("per_strategy", 6, "3.0e-2")])
def test_a_run_learns_and_exports_a_rewriter_that_rewrites_alike(
    adapters, epochs, rate, workplace, monkeypatch
) -> None:
    folder = fit("tiny", "--model.adapters", adapters, "--model.optimizer.learning_rate", rate, "--trainer.max_epochs",
                 str(epochs), "--trainer.check_val_every_n_epoch", str(epochs // 2))  # fmt: skip
    losses = [row["val/loss_nats"] for row in metrics(folder) if "val/loss_nats" in row]
    assert losses[-1] < losses[0]
    assert losses[-1] < 0.85 * math.log(104)  # of the start, the logarithm of its vocabulary
    best = checkpoint_of(folder)["state_dict"]
    assert all("lora_" in name for name in best)
    module = best_of(folder, RewriterTrainer)
    assert not any(each.training for each in module.modules())  # the added layers as well
    own = adapters == "per_strategy"
    if own:
        assert adapter_names(best) == list(STRATEGIES)
        one, other = (weights_of(module, name) for name in STRATEGIES)
        assert (one - other).abs().max() > 0.01
    rewriter = TrainedRewriter(folder / "serving", "cpu", "fp32")
    assert rewriter.strategies == STRATEGIES
    questions = [Question("1", "who is of name5", history=("is name7 born", "name7")), Question("2", "who is name9")]
    asked = [(question.text, question.history) for question in questions]
    texts = module.rewriter.rewrite(asked, STRATEGIES)
    assert rewriter.model.rewrite(asked, STRATEGIES) == texts
    for question, rewrites, written in zip(questions, rewriter.rewrite(questions, STRATEGIES), texts, strict=True):
        for name in STRATEGIES:
            queries = module.rewriter.queries(written[name] or "", name)
            assert rewrites.queries[name] == (queries or (question.text,))
    card, found = run_card(folder / "serving", monkeypatch)
    assert card.data.to_dict()["pipeline_tag"] == "text2text-generation"
    assert ("for each strategy a LoRA adapter of rank 4" in card.text) == own
    (alone,) = rewriter.model.encode([rewriter.model.task(found["question"], "gqr")])
    assert rewriter.model.encode.decoded(found["ids"][0]) == rewriter.model.write([alone], ["gqr"])[0]


@pytest.mark.parametrize("ranks", [1, 2])  # DDP gives every weight a gradient
def test_a_step_of_one_strategy_leaves_the_other_s_adapter_as_it_is(checkpoints, workplace, ranks) -> None:
    """Also when the other one has momentum and weights decay."""
    torch.manual_seed(0)
    module = RewriterTrainer(str(checkpoints["t5"]), 40, 8, lora=Lora(4, dropout=0.05), adapters="per_strategy").load()
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

    step({"gqr"})
    step({"decomposition"})
    before = {name: weights_of(module, name) for name in STRATEGIES}
    step({"gqr"})
    assert torch.equal(weights_of(module, "decomposition"), before["decomposition"])
    assert (weights_of(module, "gqr") - before["gqr"]).abs().max() > 0.01


def test_an_adapter_is_not_resumed_on_another_model(module) -> None:
    saved: dict[str, Any] = {}
    module.on_save_checkpoint(saved)
    module.on_load_checkpoint(saved)
    saved["frozen_bases"]["rewriter"] = {"name": "t5-other", "sha256": {"model.safetensors": "0" * 64}}
    with pytest.raises(ArtifactError, match="rewriter belongs to t5-other with other weights than those of"):
        module.on_load_checkpoint(saved)


def test_the_scores_of_a_validation_by_hand() -> None:
    judged = [
        RewriteValidation(6.0, 2, "gqr", (1.0, 1.0), False, Recall(0.5, 0.0)),
        RewriteValidation(3.0, 1, "gqr", (0.0, 0.5), False),
        RewriteValidation(9.0, 3, "cce", (0.0, 0.0), True, Recall(1.0, 0.5), True),
        RewriteValidation(2.0, 4, "cce"),
    ]
    expected = {"loss_nats": 2.0, "rewrite_tokens": 10, "em": 1 / 3, "f1": 0.5, "empty": 1 / 3, "unchanged": 1 / 3}
    expected |= {"f1_gqr": 0.75, "f1_cce": 0.0, "recall_at_7": 0.75, "recall_at_7_question": 0.25}
    assert summary(judged, "recall_at_7") == pytest.approx(expected)
    for queries in (["Who made Jaws"], ["who made “JAWS”?"]):  # whatever its case and punctuation
        assert is_question(queries, "Who made Jaws?")
    for queries in ([], ["Jaws"], ["Who made Jaws?", "Jaws"]):
        assert not is_question(queries, "Who made Jaws?")


def test_recall_on_validation_chooses_the_checkpoint(workplace) -> None:
    """The logged figures are those that the harness measures with the exported rewriter.

    Here the lowest recall chooses: it shows that the rewrites count, and so small a model does not learn to raise it.
    """
    lowest = ("--checkpoint.mode", "min", "--early_stopping.mode", "min")
    folder = fit("recall", *write_gold(workplace), *lowest, "--trainer.max_epochs", "8",
                 "--model.optimizer.learning_rate", "3.0e-2", "--trainer.check_val_every_n_epoch", "2")  # fmt: skip
    measured = [row for row in metrics(folder) if "val/recall_at_3" in row]
    assert len(measured) == 4
    assert len({row["val/recall_at_3"] for row in measured}) > 1
    (alone,) = {row["val/recall_at_3_question"] for row in measured}
    assert 0 < alone < 100
    rewriter = TrainedRewriter(folder / "serving", "cpu", "fp32")
    module = RewriterTrainer(str(checkpoint_of(folder)["hyper_parameters"]["pretrained"]), 40, 8).load()
    held = {e.example for e in data_of(module, workplace / "rewrites.jsonl").held_out if not e.example.history}
    asked = list(read_questions("hotpotqa", "gold.json"))
    asked = [each for each in asked if each.text in {e.question for e in held}]
    assert len(asked) > 5
    searched = Bm25Retriever(Path("index"))
    system = MultiQueryRetriever(searched, rewriter, rewriter.strategies, per_query=3, fusion="rrf")
    best = checkpoint_of(folder)["validation_facts"]
    for name, retriever in (("recall_at_3", system), ("recall_at_3_question", searched)):
        hits = retriever.search([each.text for each in asked], 3)
        assert retrieval_scores(asked, hits, [3])["recall@3"].mean() == pytest.approx(best[name])
    assert best["recall_at_3"] == min(row["val/recall_at_3"] for row in measured) != alone


@pytest.mark.parametrize("bits", [4, 8])
def test_only_the_base_s_linear_layers_are_quantized_and_only_adapters_trained(
    checkpoints, chat_lm, workplace, bits
) -> None:
    pytest.importorskip("bitsandbytes")
    for folder, most in ((checkpoints["t5"], 40), (chat_lm, 100)):
        torch.manual_seed(0)
        module = RewriterTrainer(str(folder), most, 8, lora=Lora(4, dropout=0.05), base_bits=bits).load()
        kinds: dict[torch.dtype, set[str]] = {}
        for name, parameter in module.rewriter.network.named_parameters():
            kinds.setdefault(parameter.dtype, set()).add(name)
            assert parameter.requires_grad == (".lora_" in name)
        packed = kinds.pop(torch.uint8 if bits == 4 else torch.int8)
        assert len(packed) > 5
        assert all("base_layer" in name for name in packed)
        assert list(kinds) == [torch.float32]
        batch: RewriteBatch = next(iter(data_of(module, workplace / "rewrites.jsonl").train_dataloader()))
        module(batch).sum().backward()
        assert all((p.grad is not None) == p.requires_grad for p in module.parameters())
        assert any(float(p.grad.abs().max()) > 0 for p in module.parameters() if p.grad is not None)

        exact = RewriterModel.build(str(folder), most, 8, POOL)
        module.eval()
        with torch.inference_mode():
            difference = (module(batch) + exact(batch.ids_PT, batch.attention_PT, batch.labels_PA)).abs().max()
        assert 0 < difference < (2.0 if bits == 4 else 0.5)  # nats; the adapter adds nothing yet


@pytest.mark.parametrize(("bits", "adapters"), [(4, "shared"), (8, "per_strategy")])
def test_it_trains_and_exports_the_adapter_on_fp32_weights(workplace, checkpoints, bits, adapters, capsys) -> None:
    pytest.importorskip("bitsandbytes")
    folder = fit("small", "--model.base_bits", str(bits), "--model.adapters", adapters, "--trainer.max_epochs", "2")
    losses = [row["val/loss_nats"] for row in metrics(folder) if "val/loss_nats" in row]
    assert losses[-1] < losses[0]
    said = capsys.readouterr().out
    assert re.search(rf"differs from that on the {bits}-bit base by \d\.\d+ nats on average", said)
    assert json.loads((folder / "serving/serving.json").read_text())["base_bits"] == bits
    rewriter = TrainedRewriter(folder / "serving", "cpu", "fp32").model
    best = checkpoint_of(folder)
    assert all(".lora_" in name for name in best["state_dict"])
    exact = best_of(folder, RewriterTrainer, base_bits=None)
    batch = next(iter(data_of(exact, workplace / "rewrites.jsonl").val_dataloader()))
    with torch.inference_mode():
        served = rewriter(batch.ids_PT, batch.attention_PT, batch.labels_PA, batch.strategies)
        torch.testing.assert_close(served, -exact(batch), rtol=0, atol=1e-3)
    again = best_of(folder, RewriterTrainer)  # as a resumed run
    state = again.state_dict()
    assert state.keys() == best["state_dict"].keys()
    assert all(torch.equal(state[name], best["state_dict"][name]) for name in state)
    written = load_file(folder / "serving/rewriter/model.safetensors")
    assert written.keys() == load_file(checkpoints["t5"] / "model.safetensors").keys()
    assert {value.dtype for value in written.values()} == {torch.float32}


DEPTH = 2  # layers; all widths are the published ones
BASE = ROOT / "configs/train/dmqr_rrr_hotpot.yaml"
SMALL = (
    *("--data.validation_fraction", "0.2", "--data.generated_rewrites", "4", "--data.rewrites_per_step", "8"),
    *("--trainer.accelerator", "cpu", "--trainer.precision", "32-true", "--trainer.max_epochs", "1"),
    *("--model.optimizer.warmup_steps", "1", "--trainer.logger", "false", "--trainer.enable_progress_bar", "false"),
)


def save_flan_t5(folder: Path) -> None:
    """Two layers of Flan-T5-base, whose output layer is not its embedding."""
    folder.mkdir()
    config = T5Config(
        vocab_size=save_t5_tokenizer(folder), d_model=768, d_kv=64, d_ff=2048, num_layers=DEPTH,
        num_decoder_layers=DEPTH, num_heads=12, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
        decoder_start_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    network = T5ForConditionalGeneration(config)
    network.lm_head.weight = torch.nn.Parameter(torch.randn_like(network.lm_head.weight) * 0.05)
    network.save_pretrained(folder)
    assert "lm_head.weight" in load_file(folder / "model.safetensors")


def save_qwen(folder: Path, chat_lm: Path) -> None:
    """Two layers of Qwen2.5-0.5B, with the tokenizer and the template of the tests' chat model."""
    tokenizer = AutoTokenizer.from_pretrained(chat_lm)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=896, intermediate_size=4864, num_hidden_layers=DEPTH,
        num_attention_heads=14, num_key_value_heads=2, max_position_embeddings=32768, tie_word_embeddings=True,
        rope_theta=1_000_000.0, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.mark.numeric
@pytest.mark.whole_run
@pytest.mark.parametrize("overlay", ["dmqr_flan_t5_base", "dmqr_qwen_0_5b"])
def test_it_trains_with_lora_merges_exports_and_reloads(overlay, tmp_path, chat_lm, monkeypatch) -> None:
    model = tmp_path / "model"
    save_flan_t5(model) if "t5" in overlay else save_qwen(model, chat_lm)
    use(tmp_path, monkeypatch)
    Path("train.source").write_text("".join(f"who is name{n} of the film\n" for n in range(30)))
    Path("train.target").write_text("".join(f"name{n} ; film\n" for n in range(30)))
    configs = ["--config", str(BASE), "--config", str(ROOT / f"configs/train/overlays/{overlay}.yaml")]
    data = json.dumps([{"layout": "rrr", "path": "train.source"}])
    typed = ["fit", *configs, "--name", "run", "--model.pretrained", str(model), "--data.train", data, *SMALL]
    train.main(typed)

    serving = Path("checkpoints/run/serving")
    manifest = read_rewriter_manifest(serving)
    assert manifest["adapter"]["rank"] == 16
    assert manifest["base"]["name"] == Path(model).name
    assert list(manifest["strategies"]) == ["decomposition"]
    written, base = load_file(serving / "rewriter/model.safetensors"), load_file(model / "model.safetensors")
    assert written.keys() == base.keys()
    dtype = torch.float32 if "t5" in overlay else torch.bfloat16
    assert {value.dtype for value in written.values()} == {dtype}
    changed = {name for name in base if not torch.equal(written[name], base[name].to(dtype))}
    assert len(changed) > 10
    assert not any("lm_head" in name or "embed" in name or "shared" in name or "norm" in name for name in changed)

    rewriter = TrainedRewriter(serving, "cpu", "fp32")  # of which `fit` has compared adapter and merged weights
    (made,) = rewriter.rewrite([Question("1", "who is name3 of the film")], ["decomposition"])
    assert made.queries["decomposition"]
    Path("train.target").write_text("".join(f"film {n}\n" for n in range(30)))  # which no option names
    with pytest.raises(UserError, match=r"train\.target has changed since the run began"):
        train.main([*typed, "--resume", "auto"])


def test_a_dialogue_is_on_one_side_of_the_split_and_every_example_is_used_once(module, workplace) -> None:
    first = {"question": "who is name1", "strategy": "gqr", "rewrite": "name1"}
    later = [first | {"question": f"is name{n}", "history": ["who is name1", "yes"]} for n in range(2, 12)]
    made = [*rows(60), first, first, *later, first | {"strategy": "decomposition", "rewrite": "name1 ; name1"}]
    data = data_of(module, write_rewrites(workplace, made))
    sides = [[each.example for each in side] for side in (data.training, data.held_out)]
    assert len(sides[0]) + len(sides[1]) == 60 + 1 + 10 + 1  # the repeated one once
    assert len({e for side in sides for e in side}) == 72
    here = [sum("who is name1" in (*e.history, e.question) for e in side) for side in sides]
    assert sorted(here) == [0, 12]
    (repeated,) = [t for t in (*data.training, *data.held_out) if t.example.rewrite == "name1 ; name1"]
    assert module.rewriter.encode.decoded(repeated.target) == "name1"  # the same sub-question counts once
    assert data.strategies == ["gqr", "decomposition"]  # in the order of the pool
    assert data.audit["questions_with_history"] == sum(bool(e.history) for e in sides[0])


def test_what_does_not_fit_is_cut_or_skipped_and_counted(module, workplace) -> None:
    odd = [
        {"question": "name1 " * 50, "strategy": "gqr", "rewrite": "name1"},
        {"question": "who is name1 a", "strategy": "gqr", "rewrite": "name1 " * 9},
        {"question": "who is name1 b", "strategy": "decomposition", "rewrite": " ; "},
    ]
    file = write_rewrites(workplace, [*rows(60), *odd])
    data = data_of(module, file)
    assert sorted(data.audit["unusual_rows"]) == [
        f"a rewrite longer than model.max_rewrite_tokens: 1, left out; the first: {file}, line 62",
        f"a rewrite without a query: 1, left out; the first: {file}, line 63",
    ]
    with pytest.raises(DataError, match=r"line 6[23]: a rewrite .* Correct it, or omit strict"):
        data_of(module, file, strict=True)
    assert data.audit["questions_cut"] == 1
    assert len(data.training) + len(data.held_out) == 61
    assert max(len(each.input) for each in data.training + data.held_out) == module.rewriter.encode.max_tokens


def test_validation_files_are_never_trained_on(module, workplace) -> None:
    held = write_rewrites(workplace, [row | {"rewrite": "name1"} for row in rows(60)[:10]]).rename("held.jsonl")
    file = write_rewrites(workplace, rows(60))
    data = data_of(module, file, validation=[RewriteDataFile(str(held), "rewrites")])
    assert len(data.held_out) == 10
    assert len(data.training) <= 50
    sides = ([(*e.example.history, e.example.question)[0] for e in side] for side in (data.held_out, data.training))
    assert not set.intersection(*map(set, sides))


A, B, C, D, E = (Passage.of(name, f"text of {name}") for name in "ABCDE")


def row(question: str, gold: Sequence[str] = ("A",), shipped: Sequence[str] = ("A", "B")) -> dict[str, object]:
    facts, context = [[title, 0] for title in gold], [[title, [f"text of {title}"]] for title in shipped]
    return {"_id": question, "question": question, "answer": "x", "supporting_facts": facts, "context": context}


def source(folder: Path, *rows: dict[str, object], name: str = "gold.json") -> QuestionDataFile:
    (folder / name).write_text(json.dumps(rows))
    return QuestionDataFile(str(folder / name), "hotpotqa")


def test_recall_of_the_same_number_of_passages_by_hand() -> None:
    """k = 2, gold B and D.  q finds A B: 1 of 2.  Fused, with 1/61 and 1/62 for ranks 1 and 2:

    A = 1/61 (q), B = 1/62 + 1/61 (q, r1), D = 1/62 + 1/62 (r1, r2), E = 1/61 (r2); so B, D: 2 of 2.
    """
    retriever = TableRetriever({"q": (A, B, D), "r1": (B, D), "r2": (E, D), "p": (C, A)})
    assert isinstance(retriever, Retriever)
    gold = [[{B.id}, {D.id}], [{C.id, E.id}], [{D.id}, {E.id}]]  # of the two with one id in the corpus, one is enough
    found = recalls(retriever, 2, [("q", "r1", "r2"), ("p",), ("none", "r1")], gold)
    assert found == [Recall(1.0, 0.5), Recall(1.0, 1.0), Recall(0.5, 0.0)]
    assert len(retriever.asked) == 1


def test_gold_passages_are_matched_by_the_text_of_the_question(tmp_path) -> None:
    files = [
        source(tmp_path, row("who  is A"), row("other"), row("who is A", ["B"]), name="one.json"),
        source(tmp_path, row("of both", ["A", "B"]), row("gone", ["A", "Z"]), row("none", []), name="two.json"),
    ]
    (tmp_path / "corpus.csv").write_text(f"id,title,text\nx,{A.title},{A.text}\ny,{B.title},{B.text}\n")
    (tmp_path / "own.csv").write_text("question,gold\nwho is A,x\nof both,x|y\n")
    by_ids = [QuestionDataFile(str(tmp_path / "own.csv"), corpus=str(tmp_path / "corpus.csv"))]
    wanted = {asked(text) for text in ("who is A", "of both", "gone", "none", "not there")}
    wanted.add(asked("other", ["in a dialogue"]))
    for given in (files, by_ids):
        found = {key: question.gold_passages for key, question in read_gold(given, wanted).items()}
        assert found == {asked("who is A "): (A,), asked("of both"): (A, B)}


def test_an_index_of_another_corpus_is_refused() -> None:
    own = TableRetriever({passage_text(A): (E, A)})
    check_corpus(own, [(B,), (A,)], 2)
    with pytest.raises(DataError, match=r"data.retriever finds none of 2 gold passages by its own text, such as 'B'"):
        check_corpus(own, [(B,), (A,)], 1)  # E alone
