"""A step of RE-RAG's training.

The contexts it is given, its loss and gradients against the plain formula.
"""

import json
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from common.errors import UserError
from common.records import Passage, Question
from datamodules.examples.context_augmentation import shape, substitute
from datamodules.examples.context_sets import ContextBatch, pick_contexts, relevant, without_copies
from datamodules.rerag import ReRagData
from models.lora import Lora
from tests.conftest import NAMES
from tests.helpers.rerag_data import context_data, fid_rows
from tests.helpers.tolerances import assert_gradients_close, model_close
from trainers.rerag import ReRagTrainer
from trainers.rerag_options import Loss, Text


@pytest.fixture
def batch_of(tmp_path) -> Callable[..., tuple[ReRagData, ContextBatch]]:
    """Makes a module's first training batch, of all questions of a step, outside Lightning's trainer."""
    (tmp_path / "fid.json").write_text(json.dumps(fid_rows(12)))

    def make(module: ReRagTrainer, **options: object) -> tuple[ReRagData, ContextBatch]:
        data = context_data(tmp_path / "fid.json", module, **options)
        return data, next(iter(data.train_dataloader()))

    return make


def test_contexts_are_picked_as_said() -> None:
    passages = tuple(Passage.of(name, f"{name} is .") for name in NAMES[:6])
    question = Question("1", "who", ("name1",), passages, (passages[3].id, passages[5].id))
    extra = [Passage.of("name9", "name9 is ."), passages[0]]
    rng = random.Random(0)
    assert pick_contexts(question, extra, 3, "ranked", rng) == list(passages[:3])
    assert pick_contexts(question, extra, 9, "ranked", rng) == [*passages, extra[0]]
    scored = replace(question, scores=(0.5, 3.0, 1.0, 2.0, 2.5, 3.0))
    best_first = [passages[place] for place in (1, 5, 4, 3, 2, 0)]
    assert pick_contexts(scored, extra, 3, "ranked", rng) == best_first[:3]
    assert pick_contexts(scored, extra, 9, "ranked", rng) == [*best_first, extra[0]]
    partly = replace(question, scores=(None, *scored.scores[1:]))
    assert pick_contexts(partly, extra, 9, "ranked", rng) == [*passages, extra[0]]
    assert set(pick_contexts(question, extra, 9, "gold", rng)) == {passages[3], passages[5]}
    copy = Passage.of("copy", passages[3].text)  # no negative: not mined, and relevant where the file has it
    assert without_copies(question, [copy, *extra, passages[3]]) == [*extra, passages[3]]
    assert relevant(question, [passages[0], copy, passages[5]], "gold") == (False, True, True)
    seen, places = set(), set()
    for _ in range(40):
        picked = pick_contexts(question, extra, 4, "sampled", rng)
        places.add(picked.index(passages[3]))
        assert {passages[3], passages[5]} <= set(picked)
        assert len({p.id for p in picked}) == 4
        seen |= set(picked)
    assert seen == {*passages, extra[0]}
    assert places == {0, 1, 2, 3}  # or a reader of all contexts learns where the gold ones stand


def test_a_substituted_answer_is_in_the_contexts_and_nothing_else_changes(checkpoints, batch_of) -> None:
    passages = [Passage.of("Paris Match", "Paris is not Parisian. In Paris, 1999."), Passage.of("t", "nothing")]
    changed = substitute(passages, "Paris", r"New \\1 York")
    assert changed[0].text == r"New \\1 York is not Parisian. In New \\1 York, 1999."
    assert changed[0].title == r"New \\1 York Match"
    assert changed[1] == passages[1]
    assert shape("New York in 1999") == "A A a 0"

    module = ReRagTrainer(str(checkpoints["t5"]), str(checkpoints["t5"]), max_tokens=96).load()
    data, _ = batch_of(module, substitution=1.0)
    learnt = set()
    for epoch in range(6):
        for question in data.questions:
            one = data.draws.draw(question, 5, "sampled", epoch)
            (gold,) = [p for p, label in zip(one.passages, one.labels, strict=True) if label]
            assert gold.text == f"the director of {gold.title} is {one.answer} ."
            learnt.add((question.id, one.answer))
    assert len(learnt) > 2 * len(data.questions)
    assert (
        data.draws.draw(data.questions[0], 5, "sampled", -1).answer == data.questions[0].answers[0]
    )  # validation is as it is


def plain_loss(module: ReRagTrainer, data: ReRagData, batch: ContextBatch, models: dict, tokenizer) -> torch.Tensor:
    """Eq. 3-12 written out: every context alone through plain transformers, no buckets, no padding, float64 sums."""
    total = torch.zeros((), dtype=torch.float64)
    true_id, false_id = (tokenizer.convert_tokens_to_ids(word) for word in ("true", "false"))
    pairs = sum(len(data.draws.draw(data.questions[row], 5, "sampled", 0).passages) for row in batch.rows_B.tolist())
    for row in batch.rows_B.tolist():
        one = data.draws.draw(data.questions[row], 5, "sampled", 0)
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
            if module.preset.gen_form == "marginal"
            else -(p_re.log() + logp).sum()
        )
        if module.preset.kl_direction == "generator_to_estimator":
            kl = (q_g * (q_g.log() - p_re.log())).sum()
        else:
            kl = (p_re * (p_re.log() - q_g.log())).sum()
        total = total + (gen + 0.7 * kl) / len(batch.rows_B) + 0.3 * torch.stack(others).sum() / pairs
    return total


@pytest.mark.numeric
@pytest.mark.parametrize(
    ("preset", "options"), [("released", {}), ("paper", {}), ("ours", {"bucket_checkpointing": True})]
)
def test_a_step_equals_the_plain_formula(checkpoints, batch_of, preset, options) -> None:
    folder = str(checkpoints["t5"])
    module = ReRagTrainer(
        folder,
        folder,
        max_tokens=96,
        preset=preset,
        text=Text("fid", answer_prefix=""),
        loss=Loss(kl_weight=0.7, token_weight=0.3),
        **options,
    ).load()
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
    assert loss.item() == model_close(reference.item())
    for name, model in models.items():
        ours, theirs = (
            {key: p.grad for key, p in each.named_parameters()} for each in (getattr(module, name).network, model)
        )
        assert_gradients_close(ours, theirs, int(batch.real_BN.sum()), name)


def test_a_protocol_sets_every_option_and_each_can_be_set_alone(checkpoints) -> None:
    folder = str(checkpoints["t5"])
    released = ReRagTrainer(folder, folder, preset="released", max_tokens=96).load()
    assert released.preset.kl_direction == "generator_to_estimator"
    assert released.generator.encode.format == released.estimator.encode.format == "re_rag_train"
    assert released.generator.answer_prefix == "Answer: "
    assert released.generator.network.generation_config.repetition_penalty == 2.5
    text, loss = Text(answer_prefix=""), Loss("per_context")
    mixed = ReRagTrainer(folder, folder, preset="released", text=text, loss=loss, max_tokens=96).load()
    assert mixed.preset.gen_form == "per_context"
    assert mixed.generator.answer_prefix == ""
    assert mixed.preset.kl_direction == "generator_to_estimator"


def test_encoder_only_estimator_reads_its_own_tokens(checkpoints, batch_of) -> None:
    module = (
        ReRagTrainer(str(checkpoints["bert"]), str(checkpoints["t5"]), max_tokens=96, loss=Loss(label_weight=1.0))
        .load()
        .eval()
    )
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
    with pytest.raises(UserError, match=r"has no LM head: set loss\.label_form to pointwise or listwise"):
        ReRagTrainer(
            str(checkpoints["bert"]), None, loss=Loss(label_weight=1.0, label_form="vocabulary"), max_tokens=96
        ).load()
    with pytest.raises(UserError, match=r"model\.lora is for a causal LM, and neither model is one"):
        ReRagTrainer(str(checkpoints["bert"]), None, loss=Loss(label_weight=1.0), lora=Lora(8)).load()


def test_an_encoder_only_estimators_word_embeddings_alone_are_frozen(checkpoints) -> None:
    module = ReRagTrainer(
        str(checkpoints["bert"]), None, loss=Loss(label_weight=1.0), max_tokens=96, freeze_embeddings=True
    ).load()
    frozen = [name for name, parameter in module.named_parameters() if not parameter.requires_grad]
    assert [name.rpartition(".embeddings.")[2] for name in frozen] == ["word_embeddings.weight"]
