"""RE-RAG from the command line: learning, single parts, a frozen generator, weights of the retriever, export."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from common.answer_metrics import exact_match
from common.errors import UserError
from common.records import Passage
from datamodules.cache.number_store import NumberStore
from datamodules.cache.splits import split_questions
from datamodules.examples.context_sets import ContextSet
from datamodules.examples.data_files import QuestionDataFile
from datamodules.rerag import ReRagData
from harness.systems.rerag import ReRag
from models.rerag.causal_generator import CausalGenerator
from models.rerag.generator import Generator, T5Generator
from models.rerag.marginal_reader import MarginalReader
from models.rerag.model import ReRagModel
from models.rerag.parts import load_generator
from models.rerag.temperature import fit_temperature
from tests.helpers import tiny_runs
from tests.helpers.mt5 import save_mt5
from tests.helpers.rerag_data import fid_rows
from tests.helpers.rerag_world import vary
from tests.helpers.runs import assert_repeated, fit_here, metrics, weights
from tests.helpers.tolerances import model_close
from trainers.rerag import ReRagTrainer
from trainers.rerag_frozen import FrozenGenerator
from trainers.rerag_options import JointOptimizer
from trainers.rerag_validation import QuestionScores, score_questions, summarize

TRAINER = "rerag"


def refusable_rows(count: int) -> list[dict]:
    """Questions of which every fourth has no relevant context, for the refusal threshold."""
    rows = fid_rows(count)
    for row in rows[::4]:
        row["ctxs"] = [context for context in row["ctxs"] if not context["isgold"]]
    return rows


def write_config(
    folder: Path, model: Path, dropout: float | None = 0.1, rows: list[dict] | None = None, **text: str
) -> None:
    """Data and the configuration of a tiny joint run; `text` are further options of the texts."""
    rows = rows or refusable_rows(40)
    (folder / "fid.json").write_text(json.dumps(rows))
    options = {
        "estimator": str(model), "generator": str(model), "max_tokens": 48, "text": {"max_answer_tokens": 4, **text},
        "dropout": dropout, "optimizer": {"learning_rate": 3e-3},
    }  # fmt: skip
    data = {
        "train": [{"layout": "fid", "path": str(folder / "fid.json")}], "validation_fraction": 0.3, "contexts": 4,
        "context_sampling": "sampled", "labels": "gold", "questions_per_step": 8, "tokens_per_bucket": 300,
    }  # fmt: skip
    tiny_runs.write_config(folder, "rerag.ReRagTrainer", options, "rerag.ReRagData", data, "val/em")


def test_a_run_learns_to_rank_and_exports(workplace, capsys) -> None:
    fit_here(workplace, "--trainer.max_epochs", "20", "--model.dropout", "0", "--model.loss.label_weight", "1",
             "--trainer.check_val_every_n_epoch", "10")  # fmt: skip
    assert "\nrelevant contexts " in capsys.readouterr().out
    assert max(row["val/recall_1"] for row in metrics(workplace) if "val/recall_1" in row) > 0.6  # chance is below 0.3
    folder = workplace / "checkpoints/tiny/serving"
    manifest = json.loads((folder / "serving.json").read_text())
    assert manifest["calibration"]["scale"] > 0
    assert manifest["refusal_threshold"] in (0.5, 0.6, 0.7, 0.8, 0.9)
    assert (manifest["refusal_contexts"], manifest["refusal_cost"]) == (25, None)
    served = ReRagModel.load(folder, "cpu")
    gold = Passage.of("name1", "the director of name1 is name2 .")
    noise = Passage.of("name3", "name3 was born in the city of name4 .")
    question = "who is the director of name1"
    assert served.estimator.scores([(question, gold)]) > served.estimator.scores([(question, noise)])


def test_single_parts_train_alone(workplace) -> None:
    """A packed reader, and an estimator on labels in two forms."""
    one = ("--trainer.max_epochs", "1")
    fit_here(workplace, "--name", "packed", "--model.estimator", "null", "--model.text.format", "packed",
             "--model.max_tokens", "128", *one)  # fmt: skip
    served = ReRagModel.load(workplace / "checkpoints/packed/serving", "cpu")
    assert served.estimator is None
    assert served.generator.encode.format == "packed"
    assert served.relevance_temperature == 1  # there is nothing to weigh
    labels = ("--model.generator", "null", "--model.loss.label_weight", "1", "--checkpoint.monitor", "val/recall_1")
    for form in ("listwise", "vocabulary"):
        fit_here(workplace, "--name", form, *labels, "--model.loss.label_form", form, *one)
        assert ReRagModel.load(workplace / "checkpoints" / form / "serving", "cpu").generator is None


def test_an_mt5_with_words_of_its_own_trains_as_estimator_and_generator_and_is_served(tmp_path) -> None:
    """The end of `fit` compares the export's scores with the trained module's."""
    write_config(tmp_path, save_mt5(tmp_path / "mt5"), true_word="yes", false_word="no")
    fit_here(tmp_path, "--trainer.max_epochs", "1", "--model.loss.label_weight", "1")
    serving = tmp_path / "checkpoints/tiny/serving"
    part = json.loads((serving / "serving.json").read_text())["parts"]["estimator"]
    assert part["label_words"] == {"true": "yes", "false": "no"}
    assert 'logit("yes") - logit("no")' in (serving / "README.md").read_text()
    served = ReRagModel.load(serving, "cpu")
    assert served.estimator.label_words == ("yes", "no")
    for part in (served.estimator, served.generator):
        assert part.network.config.model_type == "mt5"
        assert not part.network.lm_head.weight.equal(part.network.shared.weight)


FROZEN = ("--model.optimizer.generator_learning_rate", "0")


@pytest.fixture
def rows_read(monkeypatch) -> list[int]:
    """Grows by the number of rows that a generator computes log P of."""
    read: list[int] = []
    for kind in (T5Generator, CausalGenerator):

        def counted(self: Generator, ids_PT: Tensor, *given: Tensor, plain=kind.forward) -> Tensor:
            read.append(len(ids_PT))
            return plain(self, ids_PT, *given)

        monkeypatch.setattr(kind, "forward", counted)
    return read


@pytest.mark.numeric
def test_losses_are_those_of_the_generator_and_later_epochs_run_none(tmp_path, rerag, rows_read) -> None:
    rows = [{**row, "answers": [*row["answers"], "name9"]} for row in fid_rows(12)]  # one of them in each epoch
    losses = {}
    for rate in (0.0, None):
        module = rerag.trainer(dropout=0.1, optimizer=JointOptimizer(generator_learning_rate=rate))
        module.estimator.eval()
        module.generator.train(rate == 0)  # dropout, unless it is frozen
        data = rerag.data(module, rows, cache=str(tmp_path / "cache"))
        module.trainer = SimpleNamespace(datamodule=data, precision="32-true")
        loader = data.train_dataloader()
        batches = [*loader, *loader]  # two epochs, of other contexts and in other batches
        terms = [module.losses(batch) for batch in batches]
        losses[rate] = [{name: term.item() for name, term in each.items()} for each in terms]
        sum(terms[-1].values()).backward()
        if rate == 0:
            distinct = sum(rows_read)
            assert 0 < distinct < sum(int(batch.real_BN.sum()) for batch in batches)
            module._known = None  # as a later run
            assert all(module.losses(batch) == each for batch, each in zip(batches, terms, strict=True))
            assert sum(rows_read) == distinct
            assert all(parameter.grad is None for parameter in module.generator.parameters())
    for known, computed in zip(losses[0.0], losses[None], strict=True):
        assert known.keys() == {"gen", "re", "tok"}
        assert known == pytest.approx(computed, abs=1e-6, rel=1e-6)


def test_a_run_trains_the_estimator_alone_resumes_exactly_and_exports_both(workplace, checkpoints, rows_read) -> None:
    options = (*FROZEN, "--model.validation.contexts", "0", "--checkpoint.monitor", "val/recall_1")
    fit_here(workplace, "--name", "whole", *options)
    first = sum(rows_read)
    fit_here(workplace, "--name", "tiny", *options, "--trainer.max_epochs", "1")
    fit_here(workplace, "--ckpt_path", "checkpoints/tiny/last.ckpt", *options)
    assert sum(rows_read) - first <= 2 * 8 * 4 * 2  # what export compares; nothing in training or validation
    assert_repeated(weights(workplace, "tiny"), weights(workplace, "whole"))
    assert all("val/em" not in row for row in metrics(workplace))
    plain = load_generator(str(checkpoints["t5"])).state_dict()
    served = load_generator(str(workplace / "checkpoints/whole/serving/generator")).state_dict()
    assert all(torch.equal(value, plain[name]) for name, value in served.items())
    checkpoint = torch.load(workplace / "checkpoints/whole/last.ckpt", weights_only=True)
    moments = [state["exp_avg"].shape for state in checkpoint["optimizer_states"][0]["state"].values()]
    shapes = [parameter.shape for parameter in load_generator(str(checkpoints["t5"])).parameters()]  # the estimator's
    assert sorted(moments) == sorted(shapes)


def test_a_frozen_causal_lm_is_the_base_of_the_estimators_adapter(tmp_path, plain_lm, checkpoints, rows_read) -> None:
    write_config(tmp_path, plain_lm, None, true_word="gold", false_word="jade")
    options = (*FROZEN, "--model.validation.contexts", "0", "--checkpoint.monitor", "val/gen_nats", "--checkpoint.mode",
               "min", "--trainer.max_epochs", "1")  # fmt: skip
    fit_here(tmp_path, *options)
    assert all(".lora_" in name and ".estimator." in name for name in weights(tmp_path, "tiny"))
    serving = tmp_path / "checkpoints/tiny/serving"
    served = ReRagModel.load(serving, "cpu")
    question, passage = "who is the director of name1", Passage.of("name1", "the director of name1 is name2 .")
    sequences = served.generator.encode([(question, [passage])])
    plain = load_generator(str(plain_lm), served.generator.encode.max_tokens)
    assert served.generator.logprobs(sequences, ["name2"]) == pytest.approx(plain.logprobs(sequences, ["name2"]))
    first = sum(rows_read)
    words = ("--model.text.true_word", "true", "--model.text.false_word", "false")
    fit_here(tmp_path, "--name", "encoder", *options, "--model.estimator", str(checkpoints["bert"]), *words)
    assert sum(rows_read) - first < first / 2  # the same numbers, though that generator has no adapter beside it


def test_numbers_survive_a_kill_and_damage(tmp_path, capsys) -> None:
    ours, theirs = NumberStore(tmp_path), NumberStore(tmp_path)
    ours.add({1: -0.5, 2: float("-inf"), (1 << 64) - 1: 2.0**-60})
    theirs.add({3: 7.0})
    assert theirs.found([1, 2, (1 << 64) - 1, 3, 4]) == [-0.5, float("-inf"), 2.0**-60, 7.0, None]
    ours.add({4: 1.0})
    assert theirs.found([4]) == [1.0]  # what was added since
    (file,) = (each for each in tmp_path.iterdir() if each.stat().st_size == 80)
    data = bytearray(file.read_bytes())
    data[21] ^= 1  # of the second record
    file.write_bytes(data[:-1])  # killed while it wrote the last
    assert NumberStore(tmp_path).found([1, 2, (1 << 64) - 1, 3, 4]) == [-0.5, None, 2.0**-60, 7.0, None]
    assert "1 damaged numbers are computed again" in capsys.readouterr().err
    alone = NumberStore(None)
    alone.add({1: 3.0})
    assert alone.found([1, 2]) == [3.0, None]


def test_another_generator_or_precision_finds_nothing(tmp_path, checkpoints) -> None:
    generator, places = load_generator(str(checkpoints["t5"])).requires_grad_(False), set()
    for change, precision in ((0, "32-true"), (1e-6, "32-true"), (0, "bf16-mixed")):
        generator.network.shared.weight[0, 0] += change
        places.add(FrozenGenerator(generator, str(tmp_path), precision).store.folder)
    assert len(places) == 3


def scored_rows(count: int, seed: int = 0) -> list[dict]:
    """Rows of which the retriever ranks the gold passage best in two of three questions.

    The order of the others is not the file's.
    """
    rows = fid_rows(count, seed)
    for number, row in enumerate(rows):
        for place, item in enumerate(row["ctxs"]):
            item["score"] = place / 10 + (1.0 if item["isgold"] and number % 3 else 0.0)
    return rows


@pytest.fixture
def trained_on(rerag) -> Callable[..., tuple[ReRagTrainer, ReRagData]]:
    """A module without an estimator, and its data of twelve questions with scores."""

    def make(**options: object) -> tuple[ReRagTrainer, ReRagData]:
        module = rerag.trainer(None, **options).eval()
        vary(module.generator.network, 3)
        return module, rerag.data(module, scored_rows(12))

    return make


@pytest.mark.numeric
def test_the_loss_is_that_of_eq_2(trained_on) -> None:
    module, data = trained_on(relevance="retriever", retriever_temperature=0.25)
    batch = next(iter(data.train_dataloader()))
    uniform, _ = trained_on(relevance="uniform")
    with torch.no_grad():
        logp_BN = module(batch).answer_logp_BN.double()
        found, equal = module.losses(batch)["gen"].item(), uniform.losses(batch)["gen"].item()
    by_score, by_none = 0.0, 0.0
    for place, row in enumerate(batch.rows_B.tolist()):
        one = data.draws.draw(data.questions[row], 5, "sampled", 0)
        score_of = dict(zip((p.id for p in one.question.passages), one.question.scores, strict=True))
        scores_N = torch.tensor([score_of[passage.id] for passage in one.passages], dtype=torch.float64)
        answer_N = logp_BN[place, : len(one.passages)].exp()
        by_score -= (torch.softmax(scores_N / 0.25, 0) * answer_N).sum().log().item()
        by_none -= answer_N.mean().log().item()
    assert [found, equal] == model_close([total / len(batch.rows_B) for total in (by_score, by_none)], 40.0)
    assert abs(found - equal) > 1e-3


@pytest.mark.numeric
def test_validation_reads_the_retrievers_best_with_its_weights(trained_on) -> None:
    module, data = trained_on(relevance="retriever", retriever_temperature=0.25)
    (batch,) = data.val_dataloader()
    sets: list[ContextSet] = data.validation_sets
    with torch.inference_mode():
        relevance_BN = module(batch).relevance_BN
    rows = range(len(sets))
    found = score_questions(rows, sets, relevance_BN, None, module.generator, False, False, 2, 4, fit_temperature=True)
    for one, each in zip(found, sets, strict=True):
        (row,) = [q for q in scored_rows(12) if q["question"] == each.question.text]
        score_of = {item["title"]: item["score"] / 0.25 for item in row["ctxs"]}
        scores = [score_of[passage.title] for passage in each.passages]
        assert one.scores == pytest.approx(scores)
        assert scores == sorted(scores, reverse=True)  # as `ranked` contexts are
        (expected,) = MarginalReader(module.generator, "fast", 4).read(
            [each.question.text], [each.passages[:2]], [scores[:2]]
        )
        assert [answer.text for answer in one.answers] == [expected.text]
    backwards = [replace(one, passages=one.passages[::-1]) for one in sets]
    flipped_BN = torch.nn.utils.rnn.pad_sequence([torch.tensor(one.scores[::-1]) for one in found], batch_first=True)
    again = score_questions(rows, backwards, flipped_BN, None, module.generator, False, False, 2, 4)
    assert [one.answers for one in again] == [one.answers for one in found]


def test_has_answer_says_nothing_about_yes_and_no(tmp_path, checkpoints, capsys) -> None:
    rows = fid_rows(24)
    for row in rows[::4]:
        row["answers"] = ["yes"]
    rows[1]["answers"] = ["x"]
    write_config(tmp_path, checkpoints["t5"], 0.0, rows)
    fit_here(tmp_path, "--trainer.max_epochs", "1", "--data.labels", "has_answer")
    audit = json.loads((tmp_path / "checkpoints/tiny/audit.json").read_text())
    said, read = audit["questions_of_yes_or_no_without_labels"], capsys.readouterr()
    assert 0 < said <= 6
    assert "questions of yes or no without labels" in read.err + read.out
    assert audit["questions_with_answers_of_one_character"] == 1
    known = QuestionScores(0, (1.0, 0.0), (True, False))
    everything = [known, QuestionScores(1, (0.0, 1.0), (False, False), labelled=False)]
    assert summarize(everything, True, False).metrics["recall_1"] == 1.0
    only = summarize(everything[1:], True, False)
    assert "no validation question has labels" in only.not_fitted


def test_a_run_exports_what_serves_with_its_weights(tmp_path, checkpoints, capsys) -> None:
    write_config(tmp_path, checkpoints["t5"], 0.0, scored_rows(40))
    fit_here(tmp_path, "--model.estimator", "null", "--model.relevance", "retriever", "--model.validation.contexts",
             "2", "--data.contexts", "3", "--data.context_sampling", "ranked", "--data.labels", "has_answer",
             "--trainer.max_epochs", "20", "--trainer.check_val_every_n_epoch", "10")  # fmt: skip
    split = split_questions([QuestionDataFile(str(tmp_path / "fid.json"), "fid")], [], 0.3)
    training, held_out = split.training, split.held_out
    scores, labels = [], []
    for question in training:
        chosen = sorted(zip(question.scores, question.passages, strict=True), key=lambda pair: -pair[0])[:3]
        scores.append(np.array([score for score, _ in chosen]))
        labels.append(np.array([question.answers[0] in passage.text.split() for _, passage in chosen]))
    temperature = fit_temperature(scores, labels)
    assert f"softmax(retriever score / {temperature:.4g}), fitted on training questions" in capsys.readouterr().out

    serving = tmp_path / "checkpoints/tiny/serving"
    manifest = json.loads((serving / "serving.json").read_text())
    assert (manifest["relevance"], manifest["retriever_temperature"]) == ("retriever", pytest.approx(temperature))
    assert "weighted by softmax(retriever score / " in (serving / "README.md").read_text()
    answers = ReRag(None, serving, contexts=2, marginal="fast", device="cpu").answer(held_out)
    exact = [exact_match(answer.text, q.answers) for answer, q in zip(answers, held_out, strict=True)]
    best = max(row["val/em"] for row in metrics(tmp_path) if "val/em" in row)
    assert np.mean(exact) == pytest.approx(best)
    for answer, question in zip(answers, held_out, strict=True):
        by_score = sorted(question.scores, reverse=True)[:2]
        assert [hit.score for hit in answer.evidence] == pytest.approx([score / temperature for score in by_score])
    (cold,) = ReRag(None, serving, contexts=2, temperature=0.5, device="cpu").answer(held_out[:1])
    best_two = sorted(held_out[0].scores)[:-3:-1]
    assert [hit.score for hit in cold.evidence] == pytest.approx([2 * score for score in best_two])
    with pytest.raises(UserError, match="without a score"):
        ReRag(None, serving, device="cpu").answer([replace(held_out[0], scores=())])


def test_what_the_folder_records_is_what_weights_the_contexts(tmp_path, trained_on) -> None:
    module, data = trained_on()
    question, logits = data.questions[0], {}
    for relevance, temperature in (("retriever", 0.5), ("uniform", None), (None, None)):
        folder = tmp_path / f"{relevance}"
        folder.mkdir()
        ReRagModel(None, module.generator, relevance=relevance, retriever_temperature=temperature).save(folder)
        strategy = ReRag(None, folder, contexts=2, device="cpu")
        logits[relevance] = [hit.score for hit in strategy.answer([question])[0].evidence]
    best = sorted(question.scores, reverse=True)[:2]
    assert logits == {"retriever": [2 * score for score in best], "uniform": [0.0, 0.0], None: best}
