"""Pages of reports for tests.

Texts that try to become markup, and a small page whose filters can be worked out by hand.
"""

import math

from common.records import Answer, Gold, Passage, Question, Ranked
from harness.evaluation.page import QuestionCase, page

NAN = math.nan
EVIL = (
    "</script><img src=x onerror=\"document.body.dataset.evil='1'\"><script>document.body.dataset.evil='2'</script>"
    " <!-- & \u2028\u2029"
)
CITY, RIVER, SHIP = (Passage.of(name, f"{name} lies beside the {name}.") for name in ("City", "River", "Ship"))


def answer(question: str, text: str, *evidence: Passage, **hard_negatives: object) -> Answer:
    return Answer(question, text, tuple(Ranked(p, 1.0 - place) for place, p in enumerate(evidence)), **hard_negatives)


def small_page() -> str:
    """Five questions of two kinds under two systems; the third has no gold answer, so that nothing is measured."""
    gold = {"passages": (CITY, RIVER), "support": (CITY.id,)}
    questions = [
        Question("q0", "Where is the harbour?", ("City",), kind="bridge", **gold),
        Question("q1", "Which river?", ("River",), kind="single", **gold),
        Question("q2", "Unknown?", kind="bridge"),
        Question("q3", "Which ship?", ("Ship",), kind="single", gold=Gold(titles=("Lost",))),
        Question("q4", "Which boat?", ("Ship",), kind="single"),
    ]
    first = {"id": CITY.id, "stage": "first", "partner": RIVER.id, "probability": 0.91234}
    second = {"id": RIVER.id, "stage": "second", "partner": None, "probability": None}
    told = {"costs": {"retriever_calls": 3.0}, "notes": {"selection": "cfs", "documents": [first, second]}}
    ours = [answer("q0", "City", CITY, RIVER, logprob=-0.5, **told), answer("q1", "Sea", RIVER), answer("q2", "Sea")]
    ours += [answer("q3", "Ship", CITY, SHIP), answer("q4", "Ship", SHIP)]
    theirs = [answer("q0", "Sea", RIVER), answer("q1", "River", CITY), *(answer(f"q{i}", "", CITY) for i in (2, 3, 4))]
    measures = {
        "ours": {"EM": [1, 0, NAN, 1, 1], "F1": [1, 0.25, NAN, 1, 0.5]},
        "BM25": {"EM": [0, 1, NAN, 0, 0], "F1": [0, 1, NAN, 0, 0.5]},
    }
    cases = [[QuestionCase("Why", ("what", "why"), (("CFS", "P = 0.9"),), "as Table 8")], [], [], [], []]
    return page("T", ["a fact"], [], "", {}, questions, {"ours": ours, "BM25": theirs}, measures, cases)
