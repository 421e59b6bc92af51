"""A language model as judge.

Verdicts on answers, and on passages.

Each request is asked once: systems that give the same answer or passage share its verdict.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from common.errors import UserError
from common.ranges import NonNegativeInt, PositiveInt
from common.records import Passage, Question
from harness.interfaces import LanguageModel
from harness.llm.prompts import Prompt
from harness.llm.structured import ReplyFields, ReplyText, Word, ask_parsed
from harness.runtime.loading import load
from harness.runtime.memo import Values, identity_of

Kind = Literal["answers", "passages"]
KINDS: tuple[Kind, ...] = ("answers", "passages")
CREDIT = {"correct": 1.0, "partly correct": 0.5, "incorrect": 0.0}  # HiQA's accuracy, Appendix B.2
REQUESTS_AT_ONCE = 64  # asked in one call of the model, then saved
_PLACES: dict[Kind, tuple[str, ...]] = {  # of the prompts, what is judged first
    "answers": ("answer", "question", "gold"), "passages": ("documents", "question"),
}  # fmt: skip


class OnAnswer(ReplyFields):
    """The judge's reply on an answer."""

    reason: ReplyText
    verdict: Word[Literal["correct", "partly correct", "incorrect"]]  # a key of CREDIT


class OnPassage(ReplyFields):
    """The judge's reply on a passage."""

    reason: ReplyText
    relevant: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judge's reply to one request."""

    key: str  # of the request: equal requests have one verdict
    fields: Mapping[str, Any] | None  # of the reply; None without a valid one
    failure: str  # why there are none, in one line
    costs: Mapping[str, float]  # of all rounds, see `common.chat.reply_costs`
    seconds: float  # its share of the time of its batch


class Judge:
    """A language model that judges answers and passages; it replies greedily (temperature 0), in JSON.

    Args:
        llm: Judges.
        verdicts: What it is asked for: `answers` (correct by the gold answers), `passages` (relevant to the question).
        passages: The k of judged H@k and P@k: the first k passages of the evidence are judged.
        repairs: How often, at most, a reply that is not valid is shown to the model again with the reason.
        answer_prompt: Prompt, by name or YAML file; places: question, gold, answer.
        passage_prompt: The same; places: question, documents.

    Raises:
        UserError: If no verdict is named, or one twice.
    """

    def __init__(
        self,
        llm: LanguageModel,
        verdicts: tuple[Kind, ...] = KINDS,
        passages: PositiveInt = 5,
        repairs: NonNegativeInt = 1,
        answer_prompt: str = "judge_answer",
        passage_prompt: str = "judge_passage",
    ) -> None:
        if not verdicts or len(set(verdicts)) < len(verdicts):
            raise UserError(
                f"verdicts is {list(verdicts)}; it must name at least one of {', '.join(KINDS)}, each once."
            )
        self.llm, self.passages, self.repairs = llm, passages, repairs
        files = (answer_prompt, passage_prompt)
        self._files = {kind: file for kind, file in zip(KINDS, files, strict=True) if kind in verdicts}
        self.verdicts = Values()  # in an evaluation those of its memo

    @cached_property
    def prompts(self) -> dict[Kind, Prompt]:
        """Of the verdicts that are asked for.

        Raises:
            UserError: If a prompt has another place, or lacks the one of what is judged.
        """
        return {
            kind: Prompt.with_places(file, {*_PLACES[kind]} - {"documents"}, _PLACES[kind][0])
            for kind, file in self._files.items()
        }

    def load(self) -> None:
        """Read the prompts and load the model."""
        _ = self.prompts
        load(self.llm)

    @property
    def facts(self) -> list[str]:
        """The model and the prompts, for reports."""
        prompts = "; ".join(f"{kind}: {prompt.fact}" for kind, prompt in self.prompts.items())
        return [f"judge: {self.llm.name}; {prompts}"]

    @property
    def identity(self) -> Mapping[str, object] | None:
        """What determines a verdict besides the request, for a memo; None if that is not known of the model."""
        known = identity_of(self.llm)
        return known and {"model": known, "repairs": self.repairs}

    def on_answers(self, cases: Sequence[tuple[Question, str]]) -> list[Verdict]:
        """Verdicts `{"reason", "verdict"}` on answers, by the gold answers of their questions.

        `verdict` is a key of CREDIT.
        """
        golds = [" | ".join(question.answers) or "(none known)" for question, _ in cases]
        places = [{"gold": gold, "answer": answer or "(empty)"} for gold, (_, answer) in zip(golds, cases, strict=True)]
        return self._ask("answers", [question for question, _ in cases], places, OnAnswer)

    def on_passages(self, cases: Sequence[tuple[Question, Passage]]) -> list[Verdict]:
        """Verdicts `{"reason", "relevant"}` on passages; `relevant` is true or false."""
        places = [{"documents": [passage]} for _, passage in cases]
        return self._ask("passages", [question for question, _ in cases], places, OnPassage)

    def _ask(
        self, kind: Kind, questions: Sequence[Question], places: Sequence[dict[str, Any]], fields: type[ReplyFields]
    ) -> list[Verdict]:
        """The verdict on each question with what stands in the places of the kind's prompt.

        Known, saved, or asked for, batch by batch.
        """
        prompt, what = self.prompts[kind], f"judging {kind}"
        asked = zip(questions, places, strict=True)
        chats = [prompt.chat(question=question.text, **own) for question, own in asked]
        keys = [hashlib.sha256(repr(chat).encode(errors="surrogatepass")).hexdigest() for chat in chats]

        def ask(rows: Sequence[int]) -> list[dict[str, Any]]:
            asked = [chats[row] for row in rows]
            replies = ask_parsed(self.llm, asked, fields.of, self.repairs)
            return [
                {
                    "fields": each.value and each.value.model_dump(), "failure": each.failure,
                    "costs": each.costs | {"repairs": float(len(each.replies) - 1)},
                    "lost": bool(each.replies[-1].error),  # the call failed: the next run makes it again
                }
                for each in replies
            ]  # fmt: skip

        found = self.verdicts(keys, ask, what, REQUESTS_AT_ONCE, lasts=lambda verdict: not verdict["lost"])
        return [
            Verdict(key, each["fields"], each["failure"], each["costs"], self.verdicts.seconds_of(key))
            for key, each in zip(keys, found, strict=True)
        ]
