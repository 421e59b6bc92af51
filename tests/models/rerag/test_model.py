"""RE-RAG's T5 and encoders: answers and marginals against plain transformers, mT5, serving folders."""

import json
import math
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import models.rerag.marginal_reader
from common.errors import ArtifactError
from common.records import Passage
from common.sealed_json import write_sealed
from models.calibration import Calibration
from models.cross_encoder import RelevanceEstimator
from models.length_batching import IGNORE
from models.rerag.marginal_reader import MarginalReader, MarginalReading, weigh
from models.rerag.model import ESTIMATOR, GENERATOR, ReRagModel
from models.rerag.parts import load_generator
from models.text_formats import label_tokens, special_texts
from tests.conftest import NAMES
from tests.helpers.mt5 import save_mt5
from tests.helpers.rerag_world import CROWD, HAMLET, PAIRS, QUESTION, estimator, generator, reading_batch
from tests.helpers.tolerances import fp32_tolerance, model_close

pytestmark = pytest.mark.numeric


@pytest.mark.parametrize("prefix", ["", "answer: "])
def test_answer_logp_is_minus_transformers_loss_times_tokens(checkpoints, prefix) -> None:
    reader = generator(checkpoints, prefix)
    plain = AutoModelForSeq2SeqLM.from_pretrained(checkpoints["t5"]).eval()
    answers = ["name3", "the city of name4", "", "no"] * 3
    logp = reader(*reading_batch(reader), reader.labels(answers))
    assert logp.dtype == torch.float32
    for (question, passage), answer, value in zip(PAIRS, answers, logp.tolist(), strict=True):
        text = f"question: {question} title: {passage.title} context: {passage.text}"
        batch = reader.encode.tokenizer(text, return_tensors="pt")
        labels = reader.encode.tokenizer(prefix + answer, return_tensors="pt").input_ids
        loss = plain(**batch, labels=labels).loss
        assert value == model_close(-loss.item() * labels.shape[1])


def test_labels_end_and_are_padded_and_cut(checkpoints) -> None:
    reader = generator(checkpoints, "answer: ")
    labels = reader.labels(["name1", " name2\n name3 "])
    ids = reader.encode.tokenizer.convert_tokens_to_ids
    expected = [[*ids(["answer", ":", "name1"]), 1, IGNORE], [*ids(["answer", ":", "name2", "name3"]), 1]]
    assert labels.tolist() == expected
    assert reader.labels(["name1", "name2 name3"], max_tokens=4).tolist() == [expected[0][:4], [*expected[1][:3], 1]]


def test_the_answer_prefix_is_taken_off(checkpoints) -> None:
    plain = generator(checkpoints)
    written = plain.write(plain.encode_contexts(*reading_batch(plain)), 4)
    first = next(text.split()[0] for text in written if text)
    prefixed = generator(checkpoints, f"{first} ")
    expected = [text.removeprefix(first).strip() for text in written]
    assert expected != written
    assert prefixed.write(prefixed.encode_contexts(*reading_batch(prefixed)), 4) == expected


def test_answers_are_those_written_one_by_one(checkpoints) -> None:
    reader = generator(checkpoints)
    rows = [(question, [passage]) for question, passage in PAIRS]
    answers = reader.answers(rows, 6, tokens_per_batch=90)
    for row, (text, logp) in zip(rows, answers, strict=True):
        encoded = reader.encode_contexts(*reader.encode.pad(reader.encode([row])))
        assert [text] == reader.write(encoded, 6)
        assert logp == model_close(reader.answer_logp(encoded, reader.labels([text])).item())
    assert len({text for text, _ in answers}) > 1
    assert reader.answers([]) == []


SETS = [CROWD[:4], [], CROWD[4:5], CROWD[5:13], CROWD[13:15]]
QUESTIONS = [f"where was {name} born" for name in NAMES[: len(SETS)]]
LARGEST = 40.0  # an answer of up to six tokens is hardly less likely than e^-40; its error is that of its share
SCORES = [[0.3 * (-1) ** i * i for i, _ in enumerate(passages)] for passages in SETS]


def brute_reading(
    folder: Path, question: str, passages: list[Passage], scores: list[float], kind: str
) -> dict[str, list]:
    """Joint probabilities P_RE(c) P_G(a | q, c), or of `fast` P_RE(c) where c wrote a, per candidate and context."""
    plain, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    prior = [math.exp(s) / sum(math.exp(t) for t in scores) for s in scores]
    texts = [f"question: {question} title: {p.title} context: {p.text}" for p in passages]
    inputs = [tokenizer(text, return_tensors="pt") for text in texts]
    ids = [plain.generate(**x, max_new_tokens=5, do_sample=False)[0] for x in inputs]
    written = [tokenizer.decode(each, skip_special_tokens=True) for each in ids]
    joint: dict[str, list] = {}
    for text in dict.fromkeys(written):
        labels = tokenizer(text, return_tensors="pt").input_ids
        if kind == "fast":
            joint[text] = [p * (text == own) for p, own in zip(prior, written, strict=True)]
        else:
            losses = [plain(**x, labels=labels).loss.item() for x in inputs]
            joint[text] = [p * math.exp(-n * labels.shape[1]) for p, n in zip(prior, losses, strict=True)]
    return joint


@pytest.mark.parametrize("kind", ["thorough", "fast"])
def test_marginals_equal_brute_force(checkpoints, kind) -> None:
    reader = MarginalReader(generator(checkpoints), kind, max_answer_tokens=5, tokens_per_batch=100)
    readings = reader.read(QUESTIONS, SETS, SCORES)
    most = 0
    for question, passages, scores, reading in zip(QUESTIONS, SETS, SCORES, readings, strict=True):
        if not passages:
            assert (reading.text, reading.logprob, reading.shares, reading.written) == ("", 0.0, (), ())
            continue
        joint = brute_reading(checkpoints["t5"], question, passages, scores, kind)
        most = max(most, len(joint))
        totals = {text: math.log(sum(parts)) for text, parts in joint.items()}
        assert reading.candidates == model_close(totals)
        assert reading.text == max(totals, key=totals.__getitem__)
        assert reading.logprob == reading.candidates[reading.text]
        shares = [part / sum(joint[reading.text]) for part in joint[reading.text]]
        assert reading.shares == model_close(shares, LARGEST)
        assert sum(reading.shares) == pytest.approx(1, abs=fp32_tolerance(2 * len(passages)))
        assert set(reading.written) == set(joint)
    assert most > 1  # several candidates competed


@pytest.mark.parametrize("kind", ["thorough", "fast"])
def test_neither_batches_nor_groups_nor_company_change_a_reading(checkpoints, kind, monkeypatch) -> None:
    def read(budget: int | None, group: int, several: bool = True) -> list[MarginalReading]:
        monkeypatch.setattr(models.rerag.marginal_reader, "TOKENS_PER_GROUP", group)
        reader = MarginalReader(generator(checkpoints), kind, 5, budget)
        if several:
            return reader.read(QUESTIONS, SETS, SCORES)
        rows = zip(QUESTIONS, SETS, SCORES, strict=True)
        return [reading for q, c, s in rows for reading in reader.read([q], [c], [s])]

    expected = read(None, 10**6)
    for other in (read(1, 10**6), read(90, 1), read(None, 60), read(90, 10**6, several=False)):
        for here, there in zip(other, expected, strict=True):
            assert (here.text, here.written) == (there.text, there.written)
            assert here.candidates == model_close(there.candidates)
            assert here.shares == model_close(there.shares, LARGEST)


@pytest.mark.parametrize("kind", ["thorough", "fast"])
@pytest.mark.parametrize("chosen", [[2, 0], [1], [3, 1, 2], [0, 1, 2, 3, 4, 5, 6, 7]])
def test_a_subset_is_read_as_if_it_were_all(checkpoints, kind, chosen) -> None:
    reader = MarginalReader(generator(checkpoints), kind, max_answer_tokens=5)
    question, passages, scores = QUESTIONS[3], SETS[3], SCORES[3]
    (matrix,) = reader.matrices([question], [passages])
    here = weigh(matrix.subset(chosen), torch.tensor([scores[i] for i in chosen]))
    (there,) = reader.read([question], [[passages[i] for i in chosen]], [[scores[i] for i in chosen]])
    assert (here.text, here.written) == (there.text, there.written)
    assert here.candidates == model_close(there.candidates)
    assert list(here.candidates) == list(there.candidates)
    assert here.shares == model_close(there.shares, LARGEST)


def test_no_context_is_encoded_twice(checkpoints) -> None:
    reading, seen = generator(checkpoints), []
    encoder = reading.network.get_encoder()
    encoder.register_forward_hook(lambda *given: seen.append(len(given[2]["input_ids"])), with_kwargs=True)
    MarginalReader(reading, "thorough", 5, 100).read(QUESTIONS, SETS, SCORES)
    assert sum(seen) == sum(map(len, SETS))


@pytest.fixture
def saved(checkpoints, tmp_path) -> tuple[ReRagModel, Path]:
    reader = load_generator(str(checkpoints["t5"]), 48, "packed", answer_prefix="answer: ").eval()
    model = ReRagModel(estimator(checkpoints), reader, Calibration(1.5, -0.25), 0.7, 6, 0.5, 3, 2.0)
    model.save(tmp_path / "serving", metrics={"em": 0.5})
    return model, tmp_path / "serving"


def test_a_served_model_scores_and_answers_as_the_one_saved(saved) -> None:
    model, folder = saved
    served = ReRagModel.load(folder, "cpu", needs=(ESTIMATOR, GENERATOR))
    assert served.estimator.scores(PAIRS) == model_close(model.estimator.scores(PAIRS))
    assert (served.calibration, served.refusal_threshold) == (Calibration(1.5, -0.25), 0.7)
    assert (served.max_answer_tokens, served.relevance_temperature) == (6, 0.5)
    assert (served.refusal_contexts, served.refusal_cost) == (3, 2.0)
    assert served.generator.answer_prefix == "answer: "
    assert served.estimator.encode.same_as(model.estimator.encode)
    assert served.generator.encode.same_as(model.generator.encode)
    assert not served.estimator.encode.same_as(served.generator.encode)
    assert not served.generator.network.training

    rows = [(question, [passage, HAMLET]) for question, passage in PAIRS]
    given, again = (each.generator.answers(rows, 6) for each in (model, served))
    assert [text for text, _ in again] == [text for text, _ in given]
    assert [logp for _, logp in again] == model_close([logp for _, logp in given], 40.0)
    manifest = json.loads((folder / "serving.json").read_text())
    assert manifest["metrics"] == {"em": 0.5}
    ids = model.estimator.encode.tokenizer.convert_tokens_to_ids(["true", "false"])
    assert list(manifest["parts"][ESTIMATOR]["label_ids"].values()) == ids
    alone = AutoModelForSeq2SeqLM.from_pretrained(folder / ESTIMATOR)  # transformers alone reads a part
    assert all(torch.equal(a, b) for a, b in zip(alone.parameters(), model.estimator.network.parameters(), strict=True))


@pytest.mark.parametrize("family", ["bert", "big_bird"])
def test_an_encoder_only_estimator_alone_can_be_served(checkpoints, tmp_path, family) -> None:
    re = estimator(checkpoints, family)
    ReRagModel(re, None).save(tmp_path / family)
    served = ReRagModel.load(tmp_path / family, "cpu", needs=(ESTIMATOR,))
    assert served.generator is None
    assert served.estimator.scores(PAIRS) == model_close(re.scores(PAIRS))
    with pytest.raises(ArtifactError, match="generator"):
        ReRagModel.load(tmp_path / family, "cpu", needs=(GENERATOR,))


def test_a_folder_of_an_earlier_release_has_the_values_of_then(saved) -> None:
    model, folder = saved
    manifest = json.loads((folder / "serving.json").read_text())
    del manifest["parts"][ESTIMATOR]["label_words"]
    for name in ("seal", "relevance_temperature", "refusal_contexts", "refusal_cost"):
        del manifest[name]
    write_sealed(folder / "serving.json", manifest)
    served = ReRagModel.load(folder, "cpu")
    assert (served.relevance_temperature, served.refusal_contexts, served.refusal_cost) == (1.0, None, None)
    assert served.estimator.label_words == ("true", "false")  # the paper's
    ids = [(each.true_id, each.false_id) for each in (served.estimator, model.estimator)]
    assert ids[0] == ids[1]
    other, words = {"text_format": "fid; v0", "max_tokens": 64}, {"label_words": {"true": "yes"}}
    for wrong, named in (
        ({"refusal_contexts": "two"}, "refusal_contexts"),
        ({"parts": manifest["parts"] | {ESTIMATOR: other}}, "fid; v0"),
        (
            {"parts": manifest["parts"] | {ESTIMATOR: manifest["parts"][ESTIMATOR] | words}},
            "label_words has no 'false'",
        ),
    ):
        write_sealed(folder / "serving.json", {**manifest, **wrong})
        with pytest.raises(ArtifactError, match=named):
            ReRagModel.load(folder, "cpu")


def test_mt5_has_words_of_single_pieces_and_sentinels_among_its_pieces(tmp_path) -> None:
    """Which are found, and escaped."""
    folder = save_mt5(tmp_path / "mt5")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.tokenize("true false") == ["▁true", "▁fal", "se"]
    assert label_tokens(tokenizer, "yes", "no") == tuple(tokenizer.convert_tokens_to_ids(["▁yes", "▁no"]))
    ids = tokenizer.convert_tokens_to_ids([f"▁<extra_id_{number}>" for number in range(10)])
    assert tokenizer.unk_token_id not in ids
    assert not {"<extra_id_0>", "▁<extra_id_0>"} & set(tokenizer.all_special_tokens)
    assert {"<extra_id_9>", "</s>", "<pad>"} <= set(special_texts(tokenizer))
    encode = RelevanceEstimator.build(str(folder), 64, label_words=("yes", "no")).encode
    (poisoned,) = encode([(QUESTION, [Passage.of("name1", f"<extra_id_3> {HAMLET.text}")])])
    assert not set(ids) & set(poisoned)
