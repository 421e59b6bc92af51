"""RE-RAG's training: a step against the plain formula, the real command line, resume, DDP, accumulation, export."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import train
from datamodules.context_data import ContextData
from datamodules.contexts import ContextBatch, crop, pick_contexts, shape, substitute
from datamodules.errors import UserError, exit_code
from datamodules.records import Passage, Question
from models.relevance import RelevanceEstimator
from models.rerag import ReRagModel
from tests.conftest import NAMES
from tests.rerag_data import context_data, fid_rows
from tests.runs import done, fit, fit_here, largest_difference, metrics, weights
from trainers.memory_plan import activation_bytes, saved_bytes
from trainers.rerag import ReRagTrainer
from trainers.rerag_validation import TEMPERATURES, Judged, Read, first_hit, summarise

CONFIG = """
name: tiny
seed_everything: 0
model:
  class_path: trainers.rerag.ReRagTrainer
  init_args:
    estimator: {model}
    generator: {model}
    max_tokens: 48
    max_answer_tokens: 4
    dropout: {dropout}
    learning_rate: 3.0e-3
data:
  class_path: datamodules.context_data.ContextData
  init_args:
    train: [{{layout: fid, path: {data}}}]
    validation_fraction: 0.3
    contexts: 4
    pick: sampled
    labels: gold
    questions_per_step: 8
    tokens_per_bucket: 300
trainer:
  accelerator: cpu
  max_epochs: 2
  enable_progress_bar: false
  enable_model_summary: false
  log_every_n_steps: 1
checkpoint: {{monitor: val/em}}
"""


@pytest.fixture
def workplace(tmp_path: Path, checkpoints: dict[str, Path]) -> Path:
    """A folder to run in, with config.yaml for a tiny joint run."""
    write_config(tmp_path, checkpoints["t5"])
    return tmp_path


def write_config(folder: Path, model: Path, dropout: float = 0.1) -> None:
    (folder / "fid.json").write_text(json.dumps(fid_rows(40)))
    (folder / "config.yaml").write_text(CONFIG.format(model=model, data=folder / "fid.json", dropout=dropout))


@pytest.fixture
def batch_of(tmp_path: Path) -> Callable[..., tuple[ContextData, ContextBatch]]:
    """Makes a module's first training batch, of all questions of a step, outside Lightning's trainer."""
    (tmp_path / "fid.json").write_text(json.dumps(fid_rows(12)))

    def make(module: ReRagTrainer, **options: object) -> tuple[ContextData, ContextBatch]:
        data = context_data(tmp_path / "fid.json", module, **options)
        return data, next(iter(data.train_dataloader()))

    return make


def plain_loss(module: ReRagTrainer, data: ContextData, batch: ContextBatch, models: dict, tokenizer) -> torch.Tensor:
    """Eq. 3-12 written out: every context alone through plain transformers, no buckets, no padding, float64 sums."""
    total = torch.zeros((), dtype=torch.float64)
    true_id, false_id = (tokenizer.convert_tokens_to_ids(word) for word in ("true", "false"))
    pairs = sum(len(data._set(data.questions[row], 5, "sampled", 0).passages) for row in batch.rows_B.tolist())
    for row in batch.rows_B.tolist():
        one = data._set(data.questions[row], 5, "sampled", 0)
        scores, logps, others = [], [], []
        for passage in one.passages:
            text = f"question: {one.question.text} title: {passage.title} context: {passage.text}"
            inputs = tokenizer(text, return_tensors="pt")
            logits = models["estimator"](**inputs, decoder_input_ids=torch.tensor([[0]])).logits[0, 0].double()
            p = logits.softmax(0)
            relevance = p[true_id] / (p[true_id] + p[false_id])
            scores.append(torch.log(relevance / (1 - relevance)))
            others.append(1 - p[true_id] - p[false_id])
            labels = tokenizer(one.answer, return_tensors="pt")["input_ids"]
            out = models["generator"](**inputs, labels=labels).logits[0].double().log_softmax(-1)
            logps.append(out.gather(1, labels[0][:, None]).sum())
        score, logp = torch.stack(scores), torch.stack(logps)
        p_re, q_g = score.softmax(0), logp.detach().softmax(0)
        gen = (
            -torch.log((p_re * logp.exp()).sum())
            if module.choices.gen_form == "marginal"
            else -(p_re.log() + logp).sum()
        )
        if module.choices.kl_direction == "generator_to_estimator":
            kl = (q_g * (q_g.log() - p_re.log())).sum()
        else:
            kl = (p_re * (p_re.log() - q_g.log())).sum()
        total = total + (gen + 0.7 * kl) / len(batch.rows_B) + 0.3 * torch.stack(others).sum() / pairs
    return total


@pytest.mark.parametrize(
    ("protocol", "options"), [("released", {}), ("paper", {}), ("ours", {"bucket_checkpointing": True})]
)
def test_a_step_equals_the_plain_formula(checkpoints, batch_of, protocol: str, options: dict) -> None:
    folder = str(checkpoints["t5"])
    module = ReRagTrainer(
        folder,
        folder,
        max_tokens=96,
        protocol=protocol,
        text_format="fid",
        answer_prefix="",
        kl_weight=0.7,
        token_weight=0.3,
        **options,
    )
    module.eval()
    data, batch = batch_of(module)
    assert len(batch.buckets) > 1
    assert not batch.real_BN.all()  # ragged
    terms = module.losses(batch)
    loss = terms["gen"] + 0.7 * terms["re"] + 0.3 * terms["tok"]
    loss.backward()
    models = {name: AutoModelForSeq2SeqLM.from_pretrained(folder).eval() for name in ("estimator", "generator")}
    reference = plain_loss(module, data, batch, models, AutoTokenizer.from_pretrained(folder))
    reference.backward()
    assert loss.item() == pytest.approx(reference.item(), abs=1e-5)
    for name, model in models.items():
        ours = dict(getattr(module, name).network.named_parameters())
        for key, parameter in model.named_parameters():
            torch.testing.assert_close(ours[key].grad, parameter.grad, rtol=1e-4, atol=1e-5, msg=f"{name}.{key}")


def test_a_protocol_sets_every_option_and_each_can_be_set_alone(checkpoints) -> None:
    folder = str(checkpoints["t5"])
    released = ReRagTrainer(folder, folder, protocol="released", max_tokens=96)
    assert released.choices.kl_direction == "generator_to_estimator"
    assert released.generator.encode.format == released.estimator.encode.format == "re_rag_train"
    assert released.generator.answer_prefix == "Answer: "
    assert released.generator.network.generation_config.repetition_penalty == 2.5
    mixed = ReRagTrainer(folder, folder, protocol="released", gen_form="per_context", answer_prefix="", max_tokens=96)
    assert mixed.choices.gen_form == "per_context"
    assert mixed.generator.answer_prefix == ""
    assert mixed.choices.kl_direction == "generator_to_estimator"


def test_encoder_only_estimator_reads_its_own_tokens(checkpoints, batch_of) -> None:
    module = ReRagTrainer(str(checkpoints["bert"]), str(checkpoints["t5"]), max_tokens=96, label_weight=1.0).eval()
    assert len(module.encoders) == 2
    assert module.token_weight == 0
    _, batch = batch_of(module)
    terms = module.losses(batch)
    assert set(terms) == {"gen", "re", "label"}
    scores = module(batch)
    assert (scores.relevance_BN[~batch.real_BN] == 0).all()
    assert (scores.answer_logp_BN[batch.real_BN] < 0).all()
    sum(terms.values()).backward()
    assert module.estimator.network.classifier.weight.grad.abs().sum() > 0


def test_a_run_learns_to_read_to_rank_and_exports(workplace: Path) -> None:
    out = done(fit(workplace, "--trainer.max_epochs", "40", "--model.dropout", "0", "--model.label_weight", "1",
                   "--early_stopping.patience", "40", "--trainer.check_val_every_n_epoch", "5"))  # fmt: skip
    assert "memory  parameters: estimator" in out
    assert "audit  relevant contexts:" in out
    best = {key: max(row[key] for row in metrics(workplace) if key in row) for key in ("val/em", "val/recall_1")}
    assert best["val/recall_1"] > 60  # chance is below 30
    folder = workplace / "checkpoints/tiny/serving"
    manifest = json.loads((folder / "serving.json").read_text())
    assert manifest["calibration"]["scale"] > 0
    assert manifest["refusal_threshold"] in (0.5, 0.6, 0.7, 0.8, 0.9)
    served = ReRagModel.load(folder, "cpu")
    state = weights(workplace, "tiny", "best.ckpt")
    for name, value in served.estimator.state_dict().items():
        torch.testing.assert_close(value, state[f"estimator.{name}"], rtol=0, atol=0)
    gold = Passage.of("name1", "the director of name1 is name2 .")
    noise = Passage.of("name3", "name3 was born in the city of name4 .")
    question = "who is the director of name1"
    assert served.estimator.scores([(question, gold)]) > served.estimator.scores([(question, noise)])


def test_resume_in_the_middle_of_an_epoch_is_exact(workplace: Path) -> None:
    fit_here(workplace, "--name", "whole")
    fit_here(workplace, "--name", "cut", "--checkpoint.every_n_train_steps", "1", "--checkpoint.save_top_k=-1",
             "--checkpoint.filename", "{step}", "--checkpoint.monitor", "train/loss")  # fmt: skip
    kept = workplace / "kept.ckpt"
    shutil.copy(workplace / "checkpoints/cut/step=2.ckpt", kept)
    done(fit(workplace, "--name", "resumed", "--ckpt_path", str(kept)))
    assert largest_difference(weights(workplace, "resumed"), weights(workplace, "whole")) == 0.0


def test_two_processes_and_accumulation_train_as_one(tmp_path: Path, checkpoints: dict[str, Path]) -> None:
    write_config(tmp_path, checkpoints["t5"], dropout=0.0)
    fit_here(tmp_path, "--name", "one")
    done(fit(tmp_path, "--name", "two", torchrun=2))
    fit_here(tmp_path, "--name", "accumulated", "--trainer.accumulate_grad_batches", "3")
    one = weights(tmp_path, "one")
    for name in ("two", "accumulated"):
        assert largest_difference(weights(tmp_path, name), one) < 5e-5, name
        for key in ("val/em", "val/gen_nats", "val/recall_1"):
            ours, theirs = ([row[key] for row in metrics(tmp_path, run) if key in row] for run in (name, "one"))
            assert ours == pytest.approx(theirs, abs=1e-3), (name, key)


def test_frozen_embeddings_stay_and_all_else_learns(workplace: Path, checkpoints: dict[str, Path]) -> None:
    fit_here(workplace, "--model.freeze_embeddings", "true", "--trainer.max_epochs", "1")
    start, after = AutoModelForSeq2SeqLM.from_pretrained(checkpoints["t5"]).state_dict(), weights(workplace, "tiny")
    embeddings = {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}
    for part in ("estimator", "generator"):
        same = {name for name, value in start.items() if torch.equal(after[f"{part}.network.{name}"], value)}
        assert same == embeddings, part  # T5's output layer is its embedding


def test_an_encoder_only_estimators_word_embeddings_alone_are_frozen(checkpoints: dict[str, Path]) -> None:
    module = ReRagTrainer(str(checkpoints["bert"]), None, label_weight=1.0, max_tokens=96, freeze_embeddings=True)
    frozen = [name for name, parameter in module.named_parameters() if not parameter.requires_grad]
    assert [name.rpartition(".embeddings.")[2] for name in frozen] == ["word_embeddings.weight"]


def test_an_encoder_only_estimator_is_cut_to_its_first_layers(checkpoints: dict[str, Path]) -> None:
    whole = RelevanceEstimator.build(str(checkpoints["bert"]), 96).network.state_dict()
    cut = RelevanceEstimator.build(str(checkpoints["bert"]), 96, layers=1).network
    assert len(cut.bert.encoder.layer) == cut.config.num_hidden_layers == 1
    body = {name: value for name, value in cut.state_dict().items() if name.startswith("bert.")}
    assert all(torch.equal(value, whole[name]) for name, value in body.items())
    assert len(body) < len([name for name in whole if name.startswith("bert.")])


@pytest.mark.parametrize(("start", "layers"), [("bert", 0), ("bert", 99), ("t5", 1)])
def test_layers_that_are_not_there_are_refused(checkpoints: dict[str, Path], start: str, layers: int) -> None:
    with pytest.raises(UserError, match=rf"layers {layers} does not fit"):
        RelevanceEstimator.build(str(checkpoints[start]), 96, layers=layers)


def test_word_swaps_without_words_to_swap_are_refused(workplace: Path, checkpoints: dict[str, Path]) -> None:
    with pytest.raises(UserError, match=r"set data\.word_swaps to 0"):
        fit_here(workplace, "--model.generator", "null", "--model.label_weight", "1", "--data.word_swaps", "0.5",
                 "--model.estimator", str(checkpoints["bert"]))  # fmt: skip


def test_the_estimator_learns_at_its_own_rate(workplace: Path, checkpoints: dict[str, Path]) -> None:
    fit_here(workplace, "--model.estimator_learning_rate", "0", "--trainer.max_epochs", "1")
    start, after = AutoModelForSeq2SeqLM.from_pretrained(checkpoints["t5"]).state_dict(), weights(workplace, "tiny")
    moved = {
        part: any(not torch.equal(after[f"{part}.network.{name}"], value) for name, value in start.items())
        for part in ("estimator", "generator")
    }
    assert moved == {"estimator": False, "generator": True}


def test_a_packed_reader_trains_alone(workplace: Path) -> None:
    fit_here(workplace, "--model.estimator", "null", "--model.text_format", "packed", "--model.max_tokens", "128",
             "--trainer.max_epochs", "1")  # fmt: skip
    served = ReRagModel.load(workplace / "checkpoints/tiny/serving", "cpu")
    assert served.estimator is None
    assert served.generator.encode.format == "packed"


def test_an_estimator_trains_alone_on_labels(workplace: Path) -> None:
    fit_here(workplace, "--model.generator", "null", "--model.label_weight", "1", "--model.label_form", "listwise",
             "--checkpoint.monitor", "val/recall_1", "--trainer.max_epochs", "1")  # fmt: skip
    assert ReRagModel.load(workplace / "checkpoints/tiny/serving", "cpu").generator is None


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--trainer.precision", "16-true"], "bf16-mixed"),
        (["--model.text_format", "packed"], "set estimator null"),
        (["--model.estimator", "null", "--model.generator", "null"], "name at least one"),
        (["--model.generator", "null"], "label_weight"),
        (["--data.contexts", "0"], "contexts must be at least 1"),
        (["--data.pick", "best"], "pick"),
        (["--data.crop_growth_words", "3"], "0 without crop_words"),
        (["--data.crop_words", "5", "--data.crop_growth_words=-1"], "must be at least 0"),
        (["--data.word_swaps", "1.5"], "word_swaps must lie in [0, 1]"),
        (["--data.substitution=-0.1"], "substitution must lie in [0, 1]"),
    ],
)
def test_a_mistake_is_one_line(
    workplace: Path, extra: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workplace)
    try:
        code = exit_code("train.py", lambda: train.main(["fit", "--config", "config.yaml", *extra]))
    except SystemExit as stop:
        code = int(stop.code or 0)
    error = capsys.readouterr().err
    assert code == 2, error[-2000:]
    assert message in next(line for line in error.splitlines() if line.startswith("train.py: "))


def test_contexts_are_picked_as_said() -> None:
    passages = tuple(Passage.of(name, f"{name} is .") for name in NAMES[:6])
    question = Question("1", "who", ("name1",), passages, (passages[3].id, passages[5].id))
    extra = [Passage.of("name9", "name9 is ."), passages[0]]
    rng = random.Random(0)
    assert pick_contexts(question, extra, 3, "ranked", rng) == list(passages[:3])
    assert pick_contexts(question, extra, 9, "ranked", rng) == [*passages, extra[0]]
    assert set(pick_contexts(question, extra, 9, "gold", rng)) == {passages[3], passages[5]}
    seen = set()
    for _ in range(40):
        picked = pick_contexts(question, extra, 4, "sampled", rng)
        assert {passages[3], passages[5]} <= set(picked)
        assert len({p.id for p in picked}) == 4
        seen |= set(picked)
    assert seen == {*passages, extra[0]}


def test_a_crop_keeps_the_answer_and_the_length() -> None:
    text = " ".join(f"w{i}" for i in range(40)) + " New York. " + " ".join(f"v{i}" for i in range(40))
    for seed in range(50):
        cut = crop(Passage.of("title", text), ["New York"], 10, random.Random(seed))
        assert "New York." in cut.text
        assert len(cut.text.split()) == 10
        assert cut.title == "title"
        assert len(crop(Passage.of("t", text), ["absent"], 10, random.Random(seed)).text.split()) == 10
    short = Passage.of("t", "a b c")
    assert crop(short, ["b"], 10, random.Random(0)) is short


def test_a_substituted_answer_is_in_the_contexts_and_nothing_else_changes(checkpoints, batch_of) -> None:
    passages = [Passage.of("Paris Match", "Paris is not Parisian. In Paris, 1999."), Passage.of("t", "nothing")]
    changed = substitute(passages, "Paris", r"New \\1 York")
    assert changed[0].text == r"New \\1 York is not Parisian. In New \\1 York, 1999."
    assert changed[0].title == r"New \\1 York Match"
    assert changed[1] == passages[1]
    assert shape("New York in 1999") == "A A a 0"

    module = ReRagTrainer(str(checkpoints["t5"]), str(checkpoints["t5"]), max_tokens=96)
    data, _ = batch_of(module, substitution=1.0)
    learnt = set()
    for epoch in range(6):
        for question in data.questions:
            one = data._set(question, 5, "sampled", epoch)
            (gold,) = [p for p, label in zip(one.passages, one.labels, strict=True) if label]
            assert gold.text == f"the director of {gold.title} is {one.answer} ."
            learnt.add((question.id, one.answer))
    assert len(learnt) > 2 * len(data.questions)
    assert (
        data._set(data.questions[0], 5, "sampled", -1).answer == data.questions[0].answers[0]
    )  # validation is as it is


def test_validation_figures_by_hand() -> None:
    assert first_hit([3.0, 1.0, 2.0], [False, False, True]) == 1
    assert first_hit([1.0, 1.0], [True, False]) == 1  # a tie counts as badly as it can
    assert first_hit([1.0], [False]) is None
    judged = [
        Judged(0, (2.0, -1.0), (True, False), (Read("a", 1.0, 1.0),), 0.5),
        Judged(1, (1.0, 3.0), (True, False), (Read("b", 0.0, 0.5),), 1.5),
        Judged(2, (-4.0,), (False,), (Read("c", 0.0, 0.0),), 4.0),
    ]
    facts = summarise(judged, ranked=True, draw=False).facts
    assert facts["em"] == pytest.approx(100 / 3)
    assert facts["f1"] == pytest.approx(50)
    assert facts["gen_nats"] == 2
    assert facts["recall_1"] == pytest.approx(100 / 3)
    assert facts["recall_5"] == pytest.approx(200 / 3)
    assert facts["mrr"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert facts["answerable_auroc"] == 1
    assert facts["context_auroc"] == pytest.approx(
        (3 + 2 + 0 * 3) / 6 - 1 / 6
    )  # 2 beats -1, -4; 1 beats -1, -4; 3 beats both


def test_the_temperature_is_the_one_that_answers_most_and_nearest_to_one_among_equals() -> None:
    right, wrong = Read("a", 1.0, 1.0), Read("b", 0.0, 0.25)
    reads = [
        (wrong, right, right, right, wrong),
        (right, right, right, right, right),
        (wrong, wrong, right, right, right),
    ]
    judged = [Judged(row, (1.0, 0.0), (True, False), read, 1.0) for row, read in enumerate(reads)]
    summary = summarise(judged, ranked=True, draw=False)
    assert summary.chosen == 2  # 1, 2, 3, 3, 2 right
    assert summary.served["relevance_temperature"] == summary.facts["relevance_temperature"] == TEMPERATURES[2]
    assert summary.facts["em"] == summary.facts["f1"] == 100
    alone = summarise([replace(one, read=one.read[:1]) for one in judged], ranked=True, draw=False)
    assert "relevance_temperature" not in alone.served  # one temperature is no choice
    assert alone.facts["em"] == pytest.approx(100 / 3)


def test_the_memory_plan_counts_what_autograd_keeps(checkpoints) -> None:
    model = AutoModelForSeq2SeqLM.from_pretrained(checkpoints["t5"]).train()
    ids = torch.randint(5, 60, (6, 40))
    attention = torch.ones_like(ids)
    attention[:, 30:] = 0

    def run(network) -> torch.Tensor:
        out = network(input_ids=ids, attention_mask=attention, decoder_input_ids=ids[:, :8], use_cache=False)
        return out.logits.float().log_softmax(-1)

    planned = activation_bytes(model, 6, 40, 8, half=False)
    assert planned == pytest.approx(saved_bytes(model, run), rel=0.1)
    assert activation_bytes(model, 12, 40, 8, half=False) > 1.8 * planned
