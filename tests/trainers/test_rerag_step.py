"""A step of RE-RAG: the contexts it is given, its loss and gradients against the plain formula, terms over ranks."""

import json
import random
import re
from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from common.errors import DataError, UserError
from common.records import Passage, Question
from datamodules.examples.context_augmentation import shape, substitute
from datamodules.examples.context_sets import ContextBatch, pick_contexts, relevant, without_copies
from datamodules.rerag import ReRagData
from models.lora import Lora
from tests.conftest import NAMES
from tests.helpers.recorder import HARDLY, RECORDED, recorded
from tests.helpers.rerag_data import context_data, fid_rows
from tests.helpers.runs import fit_here, metrics
from tests.helpers.tolerances import assert_gradients_close, model_close
from tests.trainers.test_rerag_training import write_config
from trainers.rerag import ReRagTrainer
from trainers.rerag_options import JointOptimizer, Loss, Text


def test_contexts_are_picked_as_said() -> None:
    passages = tuple(Passage.of(name, f"{name} is .") for name in NAMES[:6])
    gold = {passages[3], passages[5]}
    question = Question("1", "who", ("name1",), passages, (passages[3].id, passages[5].id))
    extra = [Passage.of("name9", "name9 is ."), passages[0]]
    rng = random.Random(0)
    scored = replace(question, scores=(0.5, 3.0, 1.0, 2.0, 2.5, 3.0))
    partly = replace(question, scores=(None, *scored.scores[1:]))
    best_first = [passages[place] for place in (1, 5, 4, 3, 2, 0)]
    for asked, ranked in ((question, [*passages]), (scored, best_first), (partly, [*passages])):
        assert pick_contexts(asked, extra, 3, "ranked", rng) == ranked[:3]
        assert pick_contexts(asked, extra, 9, "ranked", rng) == [*ranked, extra[0]]
    assert set(pick_contexts(question, extra, 9, "gold", rng)) == gold
    copy = Passage.of("copy", passages[3].text)  # no negative: not mined, and relevant where the file has it
    assert without_copies(question, [copy, *extra, passages[3]]) == [*extra, passages[3]]
    assert relevant(question, [passages[0], copy, passages[5]], "gold") == (False, True, True)
    picked = [pick_contexts(question, extra, 4, "sampled", rng) for _ in range(40)]
    assert all(gold <= set(each) and len({p.id for p in each}) == 4 for each in picked)
    assert {passage for each in picked for passage in each} == {*passages, extra[0]}
    # or a reader of all contexts learns where the gold ones stand
    assert {each.index(passages[3]) for each in picked} == {0, 1, 2, 3}


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
    sets = [data.draws.draw(data.questions[row], 5, "sampled", 0) for row in batch.rows_B.tolist()]
    pairs = sum(len(one.passages) for one in sets)
    for one in sets:
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
        total = total + (gen + 0.7 * kl) / len(sets) + 0.3 * torch.stack(others).sum() / pairs
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
        both = getattr(module, name).network, model
        ours, theirs = ({key: p.grad for key, p in each.named_parameters()} for each in both)
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


def test_options_that_do_not_fit_the_models_are_refused(rerag) -> None:
    labels, frozen = Loss(label_weight=1.0), {"optimizer": JointOptimizer(generator_learning_rate=0)}
    for options, named in (
        ({"loss": replace(labels, label_form="vocabulary")}, "loss.label_form"),
        ({"loss": labels, "lora": Lora(8)}, "model.lora"),
        ({"loss": labels, **frozen}, "model.generator"),
        ({"generator": "t5", "estimator": None, **frozen}, "model.est"),
    ):
        with pytest.raises(UserError, match=re.escape(named)):
            rerag.trainer(**{"estimator": "bert", "generator": None, **options})


WEIGHTS = {"kl_weight": 0.5, "token_weight": 0.25, "label_weight": 3.0}
EPOCHS = 120


@pytest.mark.numeric
def test_a_step_minimizes_the_weighted_sum_of_its_terms(tmp_path, checkpoints, rerag) -> None:
    write_config(tmp_path, checkpoints["t5"], dropout=0.0)
    options = [part for name, weight in WEIGHTS.items() for part in (f"--model.loss.{name}", str(weight))]
    fit_here(tmp_path, *RECORDED, *options, "--model.optimizer.learning_rate", HARDLY, "--trainer.max_steps", "3")
    rows = [row for row in metrics(tmp_path) if "train/loss" in row]
    assert len(rows) == 3
    for row in rows:
        terms = [row[f"train/{name}"] for name in ("gen_nats", "re_nats", "tok", "label_nats")]
        assert all(term > 0.01 for term in terms)  # or a weight would not show
        weighted = sum(weight * term for weight, term in zip((1, *WEIGHTS.values()), terms, strict=True))
        assert row["train/loss"] == model_close(weighted, sum(terms))

    module = rerag.trainer(max_tokens=48, text=Text(max_answer_tokens=4), dropout=0.0, loss=Loss(**WEIGHTS))
    data = context_data(tmp_path / "fid.json", module, contexts=4, questions_per_step=8, tokens_per_bucket=300)
    batch = next(iter(data.train_dataloader()))
    terms = module.losses(batch)
    (terms["gen"] + 0.5 * terms["re"] + 0.25 * terms["tok"] + 3.0 * terms["label"]).backward()
    ours = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    theirs = recorded(tmp_path / "checkpoints/tiny")[0]["gradients"]
    assert_gradients_close(ours, theirs, int(batch.real_BN.sum()))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"gen": 1, "re": 1, "tok": 1}),
        ({"loss": Loss(kl_weight=0.0)}, {"gen": 1, "re": 0, "tok": 1}),
        ({"loss": Loss(token_weight=0.0)}, {"gen": 1, "re": 1}),
        ({"loss": Loss(label_weight=2.0)}, {"gen": 1, "re": 1, "tok": 1, "label": 2}),
        ({"generator": None, "loss": Loss(label_weight=2.0)}, {"label": 2}),
        ({"generator": None, "loss": Loss(label_weight=2.0, token_weight=0.5)}, {"tok": 0.5, "label": 2}),
        ({"estimator": None}, {"gen": 1}),
    ],
)
def test_which_terms_there_are_and_what_they_weigh(rerag, options, expected) -> None:
    module = rerag.trainer(**{"dropout": 0.0, **options})
    data = rerag.data(module)
    batch = next(iter(data.train_dataloader()))
    module._trainer = data.trainer  # world size and accumulation, as in `context_data`
    with torch.no_grad():
        terms = module.losses(batch)
        assert set(terms) == set(expected)
        loss = module.training_step(batch, 0)
    weighted = sum(weight * terms[name].item() for name, weight in expected.items())
    assert loss.item() == model_close(weighted, sum(term.item() for term in terms.values()))
    assert module.shares["train/loss"] == loss
    assert len(module.shares) == 1 + len(terms)


TAUGHT = Loss(label_weight=1.0, teacher_weight=2.0, teacher_temperature=0.5)


def test_a_teachers_file_is_learned_and_the_other_contexts_keep_their_labels(rerag, tmp_path) -> None:
    file, rows = tmp_path / "teacher.jsonl", fid_rows(12)
    known = {(row["question"], ctx["text"].strip()): len(ctx["text"]) / 10 for row in rows for ctx in row["ctxs"][:2]}
    file.write_text(
        "".join(json.dumps({"query": q, "text": f"{t} ", "score": s}) + "\n" for (q, t), s in known.items())
    )
    module = rerag.trainer("bert", None, dropout=0.0, loss=TAUGHT)
    data = rerag.data(module, rows, teacher=[str(file)])
    assert data.audit["questions_with_a_teachers_scores"] == f"{len(data.questions)} of {len(data.questions)}"
    assert str(file) in data.files
    batch = next(iter(data.train_dataloader()))
    drawn = [data._training_batches.drawn(0, row) for row in batch.rows_B.tolist()]
    divergence = labelled = 0.0
    with torch.no_grad():
        terms, relevance_BN = module.losses(batch), module(batch).relevance_BN
    for one, scores in zip(drawn, relevance_BN.tolist(), strict=True):
        own = [known.get((one.question.text, passage.text)) for passage in one.passages]
        taught = [place for place, score in enumerate(own) if score is not None]
        assert 0 < len(taught) < len(own)
        target, found = [torch.tensor([each[place] for place in taught]) for each in (own, scores)]
        target, found = (target / 0.5).log_softmax(0), found.log_softmax(0)
        divergence += float((target.exp() * (target - found)).sum())
        for place in set(range(len(own))) - set(taught):
            sign = 1 if one.labels[place] else -1
            weight = 1 if one.labels[place] else TAUGHT.label_false_weight
            labelled -= weight * float(F.logsigmoid(torch.tensor(sign * scores[place]))) / len(own)
    assert terms["teacher"].item() == model_close(divergence / batch.step_questions)
    assert terms["label"].item() == model_close(labelled / batch.step_questions)


def test_a_teacher_that_teaches_nothing_is_refused(rerag, tmp_path) -> None:
    file = tmp_path / "teacher.jsonl"
    file.write_text('{"query": "another question", "passage_id": "p1", "score": "0.5"}\n')
    with pytest.raises(DataError, match="no score belongs"):
        rerag.data(rerag.trainer("bert", None, loss=TAUGHT), teacher=[str(file)])
    for loss, teacher in ((Loss(label_weight=1.0), [str(file)]), (TAUGHT, None)):
        with pytest.raises(UserError, match=r"data\.teacher and model\.loss\.teacher_weight"):
            rerag.data(rerag.trainer("bert", None, loss=loss), teacher=teacher)
    listwise = replace(TAUGHT, label_form="listwise")
    frozen = {"generator": "t5", "optimizer": JointOptimizer(generator_learning_rate=0)}
    for options, named in (
        ({"loss": listwise}, "label_form"),
        (frozen, "frozen"),
        ({"estimator": None, "generator": "t5"}, "there is none"),
    ):
        with pytest.raises(UserError, match=named):
            rerag.trainer(**{"estimator": "bert", "generator": None, "loss": TAUGHT, **options})


@pytest.mark.numeric
@pytest.mark.parametrize("ranks", [2, 8])  # 8 ranks exceed the 6 questions of a step: some only keep going
def test_the_ranks_terms_make_up_those_of_the_step(rerag, ranks) -> None:
    module = rerag.trainer(loss=Loss(label_weight=1.0)).eval()
    drawn = {"substitution": 1.0, "crop_words": 4, "crop_growth_words": 2}  # alike on every rank
    alone = list(rerag.data(module, **drawn).train_dataloader())
    parts = [list(rerag.data(module, 12, ranks, rank, **drawn).train_dataloader()) for rank in range(ranks)]
    with torch.no_grad():
        for number, whole in enumerate(alone):
            expected = module.losses(whole)
            found = [module.losses(mine[number]) for mine in parts]
            for name, term in expected.items():
                assert sum(each[name].item() for each in found) == model_close(term.item(), 10.0), name
            if ranks == 8:
                idle = [each for each, mine in zip(found, parts, strict=True) if mine[number].weight == 0]
                assert idle
                assert all(term == 0 for each in idle for term in each.values())


def test_every_accepted_answer_is_learnt_as_often_and_steps_are_planned_anew(rerag) -> None:
    """Binomial: each of three answers in a third of the epochs, within five standard deviations."""
    module = rerag.trainer()
    data = rerag.data(module, [{**row, "answers": [*row["answers"], "yes", "no"]} for row in fid_rows(12)])

    def drawn(question: Question, epochs: int) -> list[str]:
        return [data.draws.draw(question, 5, "sampled", epoch).answer for epoch in range(epochs)]

    deviation = (EPOCHS * (1 / 3) * (2 / 3)) ** 0.5
    for question in data.questions:
        counts = Counter(drawn(question, EPOCHS))
        assert set(counts) == set(question.answers)
        assert all(abs(count - EPOCHS / 3) < 5 * deviation for count in counts.values())
        assert drawn(question, EPOCHS) == drawn(question, EPOCHS)  # resumes exactly
    assert len({*zip(*(drawn(question, 5) for question in data.questions), strict=True)}) == 5  # not all together

    loader = data.train_dataloader()
    learnt, plans = set(), set()
    for epoch in range(6):  # what is learnt is what was drawn
        steps = [(batch.rows_B.tolist(), batch.answers_BA.tolist()) for batch in loader]
        for rows, labels in steps:
            answers = [drawn(data.questions[row], epoch + 1)[-1] for row in rows]
            assert labels == module.answer_labels(answers).tolist()
            learnt |= {tuple(ids) for ids in labels}
        assert sorted(row for rows, _ in steps for row in rows) == list(range(len(data.questions)))
        plans.add(str(sorted(sorted(rows) for rows, _ in steps)))
    assert len(plans) > 2  # other company, not only another order
    assert {tuple(ids) for ids in module.answer_labels(["yes", "no"]).tolist()} < learnt
