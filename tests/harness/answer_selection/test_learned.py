"""The learned selection: features by hand, a fit that finds the trustworthy source, questions kept apart, its file."""

from dataclasses import replace

import numpy as np
import pytest

from common.errors import ArtifactError, UserError
from common.records import Answer, Passage, Question, Ranked
from harness.answer_selection.answer_encoder import AnswerEncoder
from harness.answer_selection.estimator import ContextProbability
from harness.answer_selection.features import FEATURES, answer_features
from harness.answer_selection.learned import FOLDS, LearnedSelector, choices, fit, out_of_fold
from models.msrag.answer_model import ANSWER_MODEL
from tests.helpers.table_encoder import TableEncoder

ENCODER = TableEncoder({"the ocean": (1, 0), "Ocean": (1, 0), "lake": (0.6, 0.8), "unknown": (0, 1)})
NOTED = ContextProbability(None)


def answer(text: str, logprob: float | None = None, context: str = "", probability: float | None = None) -> Answer:
    hits = (Ranked(Passage.of("", context), 0.0),) if context else ()
    notes = {"contexts": [{"id": "x", "probability": probability}]} if context else {}
    return Answer("q", text, hits, logprob, notes=notes)


def test_features_by_hand() -> None:
    question = Question("q", "Does the alba end in a lake?")
    given = {
        "web": answer("the ocean", -1.0, "It ends in the ocean.", 0.7),
        "generated": answer("lake", -30.0, "It ends.", 0.4),
        "none": answer("Ocean", -3.0),
    }
    (found,) = answer_features([question], [given], ENCODER, NOTED)
    named = {source: dict(zip(FEATURES, values.tolist(), strict=True)) for source, values in found.items()}
    web, generated, none = named["web"], named["generated"], named["none"]
    assert (web["source is web"], web["source is generated"], none["source is none"]) == (1, 0, 1)
    for name, values in {
        "mean cosine to the others": (0.8, 0.6, 0.8),
        "greatest cosine to the others": (1, 0.6, 1),
        "share of the others that are equal": (0.5, 0, 0.5),
        "P(relevant)": (0.7, 0.4, 0),
        "lead in P(relevant)": (0.3, -0.3, -0.7),
        "log-probability": (-1, -20, -3),
        "log of words": (np.log(3), np.log(2), np.log(2)),
        "stands in the question": (0, 1, 0),
        "stands in its context": (1, 0, 0),
    }.items():
        assert (web[name], generated[name], none[name]) == pytest.approx(values), name
    assert none["lead in log-probability"] == -2
    (refused,) = answer_features([question], [{"web": answer("unknown"), "none": answer("")}], ENCODER, NOTED)
    assert list(refused) == ["web"]
    assert dict(zip(FEATURES, refused["web"].tolist(), strict=True))["refusal"] == 1


def made(count: int, encoder=ENCODER):
    """Questions whose right answer is that of the source with the greater P(relevant), with features."""
    random = np.random.default_rng(0)
    questions, answers, right = [], [], []
    for number in range(count):
        web, generated = random.uniform(size=2)
        texts = ("the ocean", "lake") if web > generated else ("lake", "the ocean")
        questions.append(Question(str(number), f"question {number}", ("ocean",)))
        said = zip(("web", "generated"), texts, (float(web), float(generated)), strict=True)
        answers.append({source: answer(text, -1.0, "text", p) for source, text, p in said})
        right.append({source: each.text == "the ocean" for source, each in answers[-1].items()})
    return questions, answers, answer_features(questions, answers, encoder, NOTED), right


def test_a_fit_learns_which_answer_to_trust_also_of_questions_it_has_not_seen() -> None:
    questions, answers, features, right = made(120)
    model = fit(features, right)
    for chosen in (choices(model, answers, features), out_of_fold(questions, answers, features, right)):
        assert np.mean([own[each.source] for own, each in zip(right, chosen, strict=True)]) > 0.95
    assert chosen[0].why.startswith("most probably right: P ")


def test_no_question_is_chosen_by_a_model_that_has_seen_it() -> None:
    """Another label of a question changes the scores of questions in other folds, and not its own."""
    questions, answers, features, right = made(40)
    before = out_of_fold(questions, answers, features, right)
    right[0] = {source: not each for source, each in right[0].items()}
    after = out_of_fold(questions, answers, features, right)
    assert after[0] == before[0]
    changed = sum(one != other for one, other in zip(before, after, strict=True))
    assert 40 * (FOLDS - 1) / FOLDS - 12 < changed < 40
    with pytest.raises(UserError, match="right and wrong answers are needed"):
        fit(features, [dict.fromkeys(each, False) for each in right])


def test_a_saved_selection_chooses_as_before_and_refuses_another_encoder(tmp_path, encoder_folder, checkpoints) -> None:
    encoder, file = AnswerEncoder(encoder_folder, "cpu"), tmp_path / "selector.json"
    questions, answers, features, right = made(30, encoder)
    model = fit(features, right)
    model = replace(model, encoder=encoder.name, encoder_sha256=encoder.recipe, fitted={"questions": 30})
    ANSWER_MODEL.write(file, model.content)
    loaded = LearnedSelector(file, device="cpu")
    assert loaded.choose(questions, answers) == choices(model, answers, features)
    assert "fitted on questions 30" in loaded.facts[0]
    (nothing,) = loaded.choose([questions[0]], [{"web": Answer("q", "", ()), "none": Answer("q", "", ())}])
    assert (nothing.source, nothing.why) == ("web", "no source has an answer")
    with pytest.raises(ArtifactError, match="is another one"):
        LearnedSelector(file, str(checkpoints["bert"]), device="cpu").load()
    ANSWER_MODEL.write(tmp_path / "old.json", replace(model, features=(*FEATURES[:-1], "other")).content)
    with pytest.raises(ArtifactError, match="by another release"):
        LearnedSelector(tmp_path / "old.json").load()
