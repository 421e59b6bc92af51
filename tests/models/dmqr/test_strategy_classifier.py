"""The network of the adaptive choice: its input, probabilities, export."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from models.dmqr.strategy_classifier import KIND, PART, TEXT_FORMAT, QuestionEncoder, StrategyClassifier
from models.long_questions import HISTORY_NOTE
from models.pretrained import MINILM, resolve
from models.serving_manifest import write_manifest

STRATEGIES = ("kwr", "par", "hop")
ASKED = [
    ("Who directed the film Lulu?", ()),
    ("where was name3 born [SEP] in name4", ("who is name3 ?", "name3 is the director .")),
    ("is name9 the city", ()),
]


@pytest.fixture
def classifier(checkpoints: dict[str, Path]) -> StrategyClassifier:
    torch.manual_seed(3)
    return StrategyClassifier.build(str(checkpoints["bert"]), STRATEGIES, 32, 0.0).eval()


@pytest.fixture
def minilm() -> QuestionEncoder:
    return QuestionEncoder(AutoTokenizer.from_pretrained(resolve(MINILM)), 24)


def test_turns_lose_their_oldest_words_and_the_question_none(minilm: QuestionEncoder) -> None:
    question, turns = (
        "Where was he born?",
        ["Who first directed Jaws and many other good films of that very long decade in America?", "Spielberg."],
    )
    (alone, both) = minilm([(question, ()), (question, turns)])
    assert alone is not None
    assert both is not None
    tokens = minilm.tokenizer.convert_ids_to_tokens(both)
    assert len(both) == 24
    assert tokens[0] == "[CLS]"
    assert both[-len(alone) + 1 :] == alone[1:]
    text = minilm.tokenizer.convert_tokens_to_string(tokens[1 : -len(alone) + 1])
    assert text.endswith("in america? spielberg.")
    assert "who" not in tokens  # the first word


def test_a_long_question_keeps_its_first_tokens_and_special_tokens_stay_text(
    minilm: QuestionEncoder,
) -> None:
    exact, longer, special = minilm(
        [("word " * 22, ("turn",)), (" ".join(map(str, range(10, 33))), ("turn",)), ("a [SEP] b [CLS] ?", ())]
    )
    assert exact == minilm.tokenizer("word " * 22)["input_ids"]
    assert longer == minilm.tokenizer(" ".join(map(str, range(10, 32))))["input_ids"]
    assert minilm.cut_note(" ".join(map(str, range(10, 33)))) == "reads the first 22 of the question's 23 tokens"
    assert minilm.cut_note("word " * 22, ("turn",)) == HISTORY_NOTE
    assert minilm.cut_note("word " * 21, ("turn",)) == ""
    assert special.count(minilm.tokenizer.sep_token_id) == 1
    assert minilm([]) == []


def test_probabilities_are_those_of_each_question_alone(classifier: StrategyClassifier) -> None:
    long = ("name1 " * 40, ())
    together = classifier.probabilities([*ASKED, long])
    assert together[-1] == pytest.approx(classifier.probabilities([("name1 " * 30, ())])[0], abs=1e-6)
    for asked, found in zip(ASKED, together, strict=False):
        (alone,) = classifier.probabilities([asked])
        assert found == pytest.approx(alone, abs=1e-6)
        assert len(alone) == 3
    assert classifier.tokens_read == 2 * sum(map(len, classifier.encode([*ASKED, long])))


def test_the_exported_folder_chooses_alike_also_in_transformers(classifier: StrategyClassifier, tmp_path: Path) -> None:
    classifier.save(tmp_path)
    write_manifest(tmp_path, KIND, TEXT_FORMAT, 32, strategies=list(STRATEGIES), threshold=0.25)
    loaded = StrategyClassifier.load(tmp_path, "cpu", "fp32")
    assert loaded.probabilities(ASKED) == classifier.probabilities(ASKED)
    assert (loaded.threshold, loaded.strategies) == (0.25, STRATEGIES)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / PART)
    network = AutoModelForSequenceClassification.from_pretrained(tmp_path / PART).eval()
    assert network.config.id2label == dict(enumerate(STRATEGIES))
    assert network.config.problem_type == "multi_label_classification"
    batch = tokenizer([ASKED[0][0], ASKED[2][0]], padding=True, return_tensors="pt")
    with torch.inference_mode():
        theirs_PS = network(**batch).logits.sigmoid()
    ours = loaded.probabilities([ASKED[0], ASKED[2]])
    assert torch.allclose(theirs_PS.double(), torch.tensor(ours, dtype=torch.double), atol=1e-6)
