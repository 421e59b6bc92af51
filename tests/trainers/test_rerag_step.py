"""A step of RE-RAG's training.

The contexts it is given, its loss and gradients against the plain formula.
"""

import random
import re
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
from tests.helpers.tolerances import assert_gradients_close, model_close
from trainers.rerag import ReRagTrainer
from trainers.rerag_options import JointOptimizer, Loss, Text


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


def test_a_substituted_answer_is_in_the_contexts_and_nothing_else_changes(rerag) -> None:
    passages = [Passage.of("Paris Match", "Paris is not Parisian. In Paris, 1999."), Passage.of("t", "nothing")]
    changed = substitute(passages, "Paris", r"New \\1 York")
    assert changed[0].text == r"New \\1 York is not Parisian. In New \\1 York, 1999."
    assert changed[0].title == r"New \\1 York Match"
    assert changed[1] == passages[1]
    assert shape("New York in 1999") == "A A a 0"

    module = rerag.trainer()
    data = rerag.data(module, substitution=1.0)
    learnt = set()
    for epoch in range(6):
        for question in data.questions:
            one = data.draws.draw(question, 5, "sampled", epoch)
            (gold,) = [p for p, label in zip(one.passages, one.labels, strict=True) if label]
            assert gold.text == f"the director of {gold.title} is {one.answer} ."
            learnt.add((question.id, one.answer))
    assert len(learnt) > 2 * len(data.questions)
    validated = data.draws.draw(data.questions[0], 5, "sampled", -1)
    assert validated.answer == data.questions[0].answers[0]  # as it is


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
        marginal, joint = -torch.log((p_re * logp.exp()).sum()), -(p_re.log() + logp).sum()
        gen = marginal if module.preset.gen_form == "marginal" else joint
        q_to_p, p_to_q = (q_g * (q_g.log() - p_re.log())).sum(), (p_re * (p_re.log() - q_g.log())).sum()
        kl = q_to_p if module.preset.kl_direction == "generator_to_estimator" else p_to_q
        total = total + (gen + 0.7 * kl) / len(batch.rows_B) + 0.3 * torch.stack(others).sum() / pairs
    return total


@pytest.mark.numeric
@pytest.mark.parametrize(
    ("preset", "options"), [("released", {}), ("paper", {}), ("ours", {"bucket_checkpointing": True})]
)
def test_a_step_equals_the_plain_formula(checkpoints, rerag, preset, options) -> None:
    text, loss = Text("fid", answer_prefix=""), Loss(kl_weight=0.7, token_weight=0.3)
    module = rerag.trainer(preset=preset, text=text, loss=loss, **options).eval()
    data = rerag.data(module)
    batch = next(iter(data.train_dataloader()))
    assert len(batch.buckets) > 1
    assert not batch.real_BN.all()  # ragged
    terms = module.losses(batch)
    loss = terms["gen"] + 0.7 * terms["re"] + 0.3 * terms["tok"]
    loss.backward()
    folder = str(checkpoints["t5"])
    models = {name: AutoModelForSeq2SeqLM.from_pretrained(folder).eval() for name in ("estimator", "generator")}
    reference = plain_loss(module, data, batch, models, AutoTokenizer.from_pretrained(folder))
    reference.backward()
    assert loss.item() == model_close(reference.item())
    for name, model in models.items():
        ours, theirs = (
            {key: p.grad for key, p in each.named_parameters()} for each in (getattr(module, name).network, model)
        )
        assert_gradients_close(ours, theirs, int(batch.real_BN.sum()), name)


def test_a_protocol_sets_every_option_and_each_can_be_set_alone(rerag) -> None:
    released = rerag.trainer(preset="released")
    assert released.preset.kl_direction == "generator_to_estimator"
    assert released.generator.encode.format == released.estimator.encode.format == "re_rag_train"
    assert released.generator.answer_prefix == "Answer: "
    assert released.generator.network.generation_config.repetition_penalty == 2.5
    mixed = rerag.trainer(preset="released", text=Text(answer_prefix=""), loss=Loss("per_context"))
    assert (mixed.preset.gen_form, mixed.preset.kl_direction) == ("per_context", "generator_to_estimator")
    assert mixed.generator.answer_prefix == ""


def test_an_encoder_only_estimator_reads_its_own_tokens_and_its_word_embeddings_alone_can_be_frozen(rerag) -> None:
    module = rerag.trainer("bert", loss=Loss(label_weight=1.0), freeze_embeddings=True).eval()
    assert len(module.encoders) == 2
    assert module.token_weight == 0
    batch = next(iter(rerag.data(module).train_dataloader()))
    terms = module.losses(batch)
    assert set(terms) == {"gen", "re", "label"}
    scores = module(batch)
    assert (scores.relevance_BN[~batch.real_BN] == 0).all()
    assert (scores.answer_logp_BN[batch.real_BN] < 0).all()
    sum(terms.values()).backward()
    assert module.estimator.network.classifier.weight.grad.abs().sum() > 0
    frozen = [name for name, parameter in module.estimator.named_parameters() if not parameter.requires_grad]
    assert [name.rpartition(".embeddings.")[2] for name in frozen] == ["word_embeddings.weight"]


LABELS = Loss(label_weight=1.0)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"loss": Loss(label_weight=1.0, label_form="vocabulary")}, "loss.label_form"),
        ({"loss": LABELS, "lora": Lora(8)}, "model.lora"),
        ({"loss": LABELS, "optimizer": JointOptimizer(generator_learning_rate=0)}, "model.generator"),
        ({"generator": "t5", "estimator": None, "optimizer": JointOptimizer(generator_learning_rate=0)}, "model.est"),
    ],
)
def test_options_that_do_not_fit_the_models_are_refused(rerag, options, named) -> None:
    with pytest.raises(UserError, match=re.escape(named)):
        rerag.trainer(**{"estimator": "bert", "generator": None, **options})
