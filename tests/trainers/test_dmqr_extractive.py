"""The extractive rewriter: words and their tokens, scores, export; its targets and loss, and real (tiny) runs."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

from common.errors import DataError
from common.records import Passage
from datamodules.dmqr_extractive import UNLABELLED, ExtractiveData
from datamodules.examples.data_files import DataFile
from datamodules.formats.word_labels import WordLabels, to_row
from models.dmqr.word_selector import JOINS, KIND, LABELS, PRIOR, STAYS, WordSelector
from models.dmqr.word_tokenizer import TEXT_FORMAT, WordPairEncoder
from models.pretrained import MINILM, resolve
from models.serving_manifest import write_manifest
from tests.conftest import NAMES
from tests.helpers.tiny_runs import fit, metrics, run_card, set_up, write_config
from trainers.dmqr_extractive import ExtractiveTrainer, word_loss

TRAINER = "extractive"


def labels(count: int) -> list[WordLabels]:
    """Learnable labels: the name after "director" joins; of the question the names stay, and "who" does not."""
    rng, made = random.Random(5), []
    for number in range(count):
        film, person, other = rng.sample(NAMES, 3)
        texts = {
            film: f"{film} is a film of the director {person} .",
            other: f"{other} was born in the city of {film} .",
        }
        stays, joins = {film: -0.4, "who": 0.1, "film": -0.001}, {person: 0.3, "director": 0.05, "born": -0.2}
        question, passages = f"who is of the film {film} {number}", tuple(Passage.of(*each) for each in texts.items())
        made.append(WordLabels(str(number), question, 0.5, stays, joins, passages))
    return made


def write(path: Path, made: list[WordLabels]) -> None:
    path.write_text("".join(json.dumps(to_row(each)) + "\n" for each in made))


def write_run(folder: Path, model: Path) -> None:
    """Data and the configuration of a tiny run."""
    write(folder / "labels.jsonl", labels(60))
    rates = {"learning_rate": 1e-2, "head_learning_rate": 1e-2}
    options = {"pretrained": str(model), "max_tokens": 48, "dropout": 0.0, "optimizer": rates}
    train = [{"layout": "word_labels", "path": str(folder / "labels.jsonl")}]
    data = {"train": train, "validation_fraction": 0.2, "tokens_per_step": 300, "tokens_per_validation_batch": 200}
    classes = "dmqr_extractive.ExtractiveTrainer", "dmqr_extractive.ExtractiveData"
    write_config(folder, classes[0], options, classes[1], data, "val/average_precision")


def data_of(module: ExtractiveTrainer, path: Path, *place: int, **options: Any) -> ExtractiveData:
    given: dict[str, Any] = {"validation_fraction": 0.2, "tokens_per_step": 300, **options}
    return set_up(ExtractiveData([DataFile(str(path), "word_labels")], **given), module, *place)


@pytest.fixture
def module(checkpoints) -> ExtractiveTrainer:
    return ExtractiveTrainer(str(checkpoints["bert"]), 48, dropout=0.0).load().eval()


def test_the_targets_of_a_question_by_hand(module, workplace) -> None:
    data = data_of(module, workplace / "labels.jsonl")
    (made, *_) = labels(1)
    (pair, _) = module.selector.encode([(made.question, passage) for passage in made.passages])
    stays, joins = data.targets(made, pair)
    film, person = made.passages[0].title, next(iter(made.with_word))
    at = {each.position: each.word.text for each in (*pair.question_words, *pair.passage_words)}
    # the change of the word "film" is too small
    assert {at[place]: target for place, target in stays.items()} == {film: 1.0, "who": 0.0}
    assert {at[place]: target for place, target in joins.items()} == {person: 1.0, "director": 0.25, "a": 0.0}


def test_unusual_rows_are_counted_or_an_error(module, workplace) -> None:
    made = labels(60)
    write(workplace / "twice.jsonl", [*made, made[0]])
    (line,) = data_of(module, workplace / "twice.jsonl").audit["unusual_rows"]
    assert line.startswith("a row with the question of an earlier one: 1, left out; the first: ")
    with pytest.raises(DataError, match="Correct it, or omit strict"):
        data_of(module, workplace / "twice.jsonl", strict=True)


@pytest.mark.numeric
def test_the_loss_by_hand() -> None:
    log_odds_PTL = torch.tensor([[[0.0, 2.0], [1.0, 0.0]], [[3.0, -1.0], [5.0, 5.0]]])
    targets_PTL = torch.tensor([[[1.0, UNLABELLED], [UNLABELLED, 0.25]], [[UNLABELLED, 1.0], [1.0, 0.0]]])
    ln2, softplus1 = 0.6931472, 1.3132617
    joins = ln2 + softplus1  # σ(0) against 0.25; σ(-1) against 1; the last pair's second token is ignored below
    ignored = torch.tensor([1.0, 1.0])
    loss = word_loss(log_odds_PTL, targets_PTL, ignored, (4, 8), 0.5)
    last = 5.0067153  # softplus(5) for the target 0
    assert float(loss) == pytest.approx((joins + last) / 8 + 0.5 * (ln2 + 0.0067153) / 4, abs=1e-6)
    first_alone = word_loss(log_odds_PTL, targets_PTL, torch.tensor([1.0, 0.0]), (1, 1), 0.0)
    assert float(first_alone) == pytest.approx(ln2, abs=1e-6)


def test_an_epoch_has_every_helpful_pair_and_a_share_of_the_others(module, workplace) -> None:
    data = data_of(module, workplace / "labels.jsonl", unhelpful_share=0.25)
    others = len(data.pairs) - data.helpful
    for epoch in range(3):
        drawn = sorted(row for step in data._plan(epoch) for row in step)
        assert drawn[: data.helpful] == list(range(data.helpful))
        assert len(drawn) == len(set(drawn)) == data.helpful + round(0.25 * others)
    assert data._drawn(0) != data._drawn(1)
    assert all(each.helpful for each in data.pairs[: data.helpful])
    assert not any(each.helpful for each in data.pairs[data.helpful :])
    sides = [{each.question for each in side} for side in (data.pairs, data.held_out)]
    assert not sides[0] & sides[1]
    assert len(sides[0]) + len(sides[1]) == 60


def test_a_run_learns_and_exports_what_it_trained(workplace, monkeypatch) -> None:
    folder = fit("tiny", "--trainer.max_epochs", "8", "--trainer.check_val_every_n_epoch", "4")
    found = [row for row in metrics(folder) if "val/average_precision" in row][-1]
    assert found["val/average_precision"] > 0.9  # 0.1 by chance
    assert found["val/stays_auc"] == 1.0
    selector = WordSelector.load(folder / "serving", "cpu", "fp32")
    asked = "who is of the film name3", Passage.of("name3", "name3 is a film of the director name7 .")
    (scores,) = selector.scores([asked])
    assert max(scores.joins, key=lambda each: each.log_odds).word.text == "name7"
    _, found = run_card(folder / "serving", monkeypatch)
    passage = Passage.of("Jaws (film)", "Jaws is a 1975 thriller directed by Steven Spielberg.")
    (pair,) = selector.encode([(found["question"], passage)])
    (read,) = selector.scores([(found["question"], passage)])
    theirs = dict(zip([each.position for each in pair.question_words], read.stays, strict=True))
    for position, each in theirs.items():
        probability = float(torch.tensor(each.log_odds).sigmoid())
        assert found["probabilities"][position][STAYS] == pytest.approx(probability, abs=1e-5)
    assert found["probabilities"][pair.passage_words[-1].position][JOINS] <= 1


QUESTION = "Who directed the film Lulu's Return?"
PASSAGES = [
    Passage.of("Lulu", "Lulu is a film by Georg Pabst. Pabst was born in Raudnitz."),
    Passage.of("", "Pabst."),
    Passage.of("Name9 [SEP] name3", "name3 name3 film of name4 " * 9),
]
PAIRS = [(QUESTION, passage) for passage in PASSAGES]


@pytest.fixture
def selector(checkpoints) -> WordSelector:
    torch.manual_seed(3)
    return WordSelector.build(str(checkpoints["bert"]), 48, 0.0).eval()


@pytest.fixture
def minilm() -> WordPairEncoder:
    return WordPairEncoder(AutoTokenizer.from_pretrained(resolve(MINILM)), 48)


def test_a_word_is_represented_by_its_first_token(minilm) -> None:
    (pair, *_) = minilm(PAIRS)
    tokens = minilm.tokenizer.convert_ids_to_tokens(pair.ids)
    asked = ["who", "directed", "the", "film", "lulu", "s", "return"]
    assert [each.word.text for each in pair.question_words] == asked
    assert [tokens[each.position] for each in pair.question_words] == asked
    found = {each.word.text: tokens[each.position] for each in pair.passage_words}
    assert found["pabst"] == "pa"
    assert found["raudnitz"] == "ra"
    assert tokens[0] == "[CLS]"
    assert tokens[pair.question_tokens - 1] == "[SEP]" == tokens[-1]
    text = minilm.text("Lulu. Lulu is a film by Georg Pabst. Pabst was born in Raudnitz.")
    assert [text[each.word.start : each.word.end] for each in pair.passage_words[-2:]] == ["in", "Raudnitz"]


def test_the_passage_is_truncated_and_a_question_that_leaves_it_no_room(minilm) -> None:
    whole, cut = minilm([(QUESTION, PASSAGES[0]), (QUESTION, PASSAGES[2])])
    assert len(cut.ids) == 48 > len(whole.ids)
    assert cut.ids[: cut.question_tokens] == whole.ids[: whole.question_tokens]
    assert max(each.position for each in cut.passage_words) < 47  # the last token is the separator
    fits, long = minilm([("word " * 29, PASSAGES[2]), ("word " * 30, PASSAGES[2])])  # 29 + 3 + 16 = 48
    assert (fits.question_tokens, long.question_tokens) == (31, 24)  # 22 of 45, half of the room
    assert len(long.ids) == 48
    assert [each.position for each in long.question_words] == [*range(1, 23)]
    assert minilm.cut_note("word " * 29) == ""
    assert minilm.cut_note("word " * 30) == "reads the first 22 of the question's 30 tokens"


def test_a_new_head_begins_with_the_usual_share_of_each_label(selector) -> None:
    assert selector.network.classifier.bias.sigmoid().tolist() == pytest.approx([PRIOR[each] for each in LABELS])


def test_scores_are_those_of_each_pair_alone(selector) -> None:
    bias = selector.network.classifier.bias  # a new head begins with the usual share of each label
    assert bias.sigmoid().tolist() == pytest.approx([PRIOR[each] for each in LABELS])
    together = selector.scores(PAIRS)
    for pair, found in zip(PAIRS, together, strict=True):
        (alone,) = selector.scores([pair])
        for ours, theirs in ((found.stays, alone.stays), (found.joins, alone.joins)):
            assert [each.word for each in ours] == [each.word for each in theirs]
            assert [each.log_odds for each in ours] == pytest.approx([each.log_odds for each in theirs], abs=1e-5)


def test_a_word_that_joins_stands_once_at_its_best_place(selector) -> None:
    (found,) = selector.scores([PAIRS[2]])
    (pair,) = selector.encode([PAIRS[2]])
    ids_PT, types_PT, attention_PT = selector.encode.pad([pair])
    with torch.inference_mode():
        logits_TL = selector(ids_PT, types_PT, attention_PT)[0]
    places = [each for each in pair.passage_words if each.word.text == "name3"]
    assert len(places) > 2
    best = max(places, key=lambda each: float(logits_TL[each.position, JOINS]))
    (scored,) = [each for each in found.joins if each.word.text == "name3"]
    assert scored.word == best.word
    assert scored.log_odds == pytest.approx(float(logits_TL[best.position, JOINS]), abs=1e-5)
    assert "film" not in {each.word.text for each in found.joins}  # the question has it
    assert [each.word.text for each in found.stays] == ["who", "directed", "the", "film", "lulu", "s", "return"]
    first = pair.question_words[0].position
    assert found.stays[0].log_odds == pytest.approx(float(logits_TL[first, STAYS]), abs=1e-5)


def test_the_exported_folder_scores_alike_also_in_transformers(selector, tmp_path) -> None:
    selector.save(tmp_path)
    write_manifest(tmp_path, KIND, TEXT_FORMAT, 48)
    loaded = WordSelector.load(tmp_path, "cpu", "fp32")
    for ours, theirs in zip(selector.scores(PAIRS), loaded.scores(PAIRS), strict=True):
        assert ours == theirs
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "selector")
    network = AutoModelForTokenClassification.from_pretrained(tmp_path / "selector").eval()
    assert network.config.id2label == {STAYS: "stays", JOINS: "joins"}
    text = selector.encode.text("Lulu. Lulu is a film by Georg Pabst. Pabst was born in Raudnitz.")
    batch = tokenizer(selector.encode.text(QUESTION), text, return_tensors="pt")
    (pair,) = selector.encode(PAIRS[:1])
    assert batch["input_ids"][0].tolist() == pair.ids
    with torch.inference_mode():
        theirs_TL = network(**batch).logits[0]
        ours_TL = loaded(*loaded.encode.pad([pair]))[0, : len(pair.ids)]
    assert torch.allclose(theirs_TL, ours_TL, atol=1e-5)
