"""One system, judged: its answers, its passages, and how far the judge agrees with what is known.

Shape legend: N questions.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import nan

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import NORMALIZATIONS, exact_match, has_answer
from common.records import Answer, Passage
from harness.evaluation.engine import Measured, has_read
from harness.evaluation.judge import CREDIT, CRITERIA, Judge, Verdict
from harness.evaluation.judged import Judged
from harness.evaluation.judging.agreement import COLUMNS, Case, agreement_cells, known_answers
from harness.evaluation.judging.tables import (
    ADEQUACY,
    CORRECT,
    HALF,
    NEEDS_SEVERAL,
    NO_READER,
    NOT_ASKED_FOR,
    costs_table,
    judged_table,
    kinds_table,
    not_judged,
    retrieval_rows,
)  # fmt: skip
from harness.evaluation.page import Case as PageCase
from harness.evaluation.study import Settings
from harness.evaluation.tables import Cells, Table

MADE = "answers made right and wrong"
_MEASURES = {CORRECT: "judged correct", HALF: "judged correct, half credit"}  # row -> its measure per question, 0 to 1


class _System:
    """What is judged of one system, and what was found of it."""

    def __init__(self, judge: Judge, measured: Measured, settings: Settings) -> None:
        self.judge, self.settings = judge, settings
        self.questions, self.answers = measured.questions, measured.answers
        self.passages = [_first_passages(answer, judge.passages) for answer in measured.answers]
        self.reads = has_read(measured.answers)
        self.judged = Judged([], judge.facts)
        self.failed: dict[str, int] = {}
        self.of_answers: list[Verdict | None] = [None] * len(self.questions)  # None: not asked
        self.of_passages: list[list[Verdict]] = [[] for _ in self.questions]
        self.of_criteria: list[Verdict | None] = [None] * len(self.questions)

    def judge_answers(self) -> None:
        """Correctness of the answers by the gold answers; an empty answer is wrong, without asking."""
        reason = self._reason("answers", needs_reader=True)
        known = [number for number, question in enumerate(self.questions) if question.answers]
        if reason or not known:
            self.judged.reasons |= dict.fromkeys((CORRECT, HALF), reason or "no question has a gold answer")
            return
        asked = [number for number in known if self.answers[number].text]
        verdicts = self.judge.on_answers([(self.questions[each], self.answers[each].text) for each in asked])
        for number, verdict in zip(asked, verdicts, strict=True):
            self.of_answers[number] = verdict
        credit_N = np.full(len(self.questions), nan)
        for number in known:
            found = self.of_answers[number]
            credit_N[number] = credit_by(found) if found else 0.0
        self._add(CORRECT, 100.0 * np.where(np.isnan(credit_N), nan, credit_N == 1), verdicts)
        self._add(HALF, 100 * credit_N, verdicts)
        self.judged.verdicts["answers"] = verdicts

    def judge_passages(self) -> None:
        """Hit rate and precision of the first passages, by their relevance."""
        hit, precision = retrieval_rows(self.judge.passages)
        reason = self._reason("passages") or ("" if any(self.passages) else "no passage was found")
        if reason:
            self.judged.reasons |= dict.fromkeys((hit, precision), reason)
            return
        cases = [(q, each) for q, found in zip(self.questions, self.passages, strict=True) for each in found]
        verdicts = self.judge.on_passages(cases)
        rest = iter(verdicts)
        self.of_passages = [[*islice(rest, len(found))] for found in self.passages]
        values_N2 = [
            hit_and_precision([relevant_by(v) for v in each], self.judge.passages) for each in self.of_passages
        ]
        for row, values_N in zip((hit, precision), np.array(values_N2).T, strict=True):
            self._add(row, 100 * values_N, verdicts)
        self.judged.verdicts["passages"] = verdicts

    def judge_criteria(self) -> None:
        """The criteria of DMQR-RAG's Appendix B."""
        if reason := self._reason("criteria", needs_reader=True):
            self.judged.reasons |= dict.fromkeys(CRITERIA, reason)
            return
        verdicts = self.judge.on_criteria([*zip(self.questions, self.answers, strict=True)])
        self.of_criteria = [*verdicts]
        for name in CRITERIA:
            values = [each.fields[name] if each.fields else nan for each in verdicts]
            self._add(name, np.array(values, dtype=np.float64), verdicts)
        self.judged.verdicts["criteria"] = verdicts

    def agreement(self) -> Table:
        """Verdicts against gold passages, has-answer, EM, and answers whose truth is known."""
        rows: dict[str, Cells] = {}
        normalize = NORMALIZATIONS[self.settings.normalization]
        support = [set(q.support) if not q.unshipped_support else set() for q in self.questions]
        by_gold = [
            Case(number, passage.id in support[number], relevant)
            for number, passage, relevant in self._judged_passages()
            if support[number]
        ]
        by_text = [
            Case(number, has_answer(passage.text, self.questions[number].answers), relevant)
            for number, passage, relevant in self._judged_passages()
            if self.questions[number].answers
        ]
        by_em = [
            Case(number, bool(exact_match(self.answers[number].text, self.questions[number].answers, normalize)),
                correct)
            for number, verdict in enumerate(self.of_answers)
            if verdict and (correct := _correct(verdict)) is not None
        ]  # fmt: skip
        made = self._made()
        failed = "all verdicts failed"
        no_passages = self._reason("passages") or ("no passage was found" if not any(self.passages) else "")
        if not no_passages and not self._judged_passages():
            no_passages = failed
        no_answers = self._reason("answers", needs_reader=True) or (
            failed if any(self.of_answers) else "no answer was judged"
        )
        none_made = failed if self.judged.verdicts.get(MADE) else "there are none (--judge.known_answers)"
        for row, cases, absent in (
            ("passages, by gold passages", by_gold, no_passages or "no question ships its gold passages"),
            ("passages, by has-answer", by_text, no_passages or "no question has a gold answer"),
            ("answers, by EM", by_em, no_answers),
            (MADE, made, self._reason("answers") or none_made),
        ):
            rows[row] = agreement_cells(cases, absent, self.settings.bootstrap)
        note = (
            "By gold passages and by has-answer: whether a passage that the system returned is judged relevant, "
            "against whether it is a gold passage, or contains a gold answer (DPR's rule). Other passages may be "
            "relevant too. By EM: whether an answer is judged correct, against its exact match; an answer in other "
            f"words is right without EM. Made right and wrong: for {self.judge.known_answers} questions at most, the "
            "gold answer, and the gold answer of another question that shares no word with it; only here the truth is "
            "certain. Precision: share of what is judged true that is true; recall: the other way round; partly "
            "correct counts as not correct. Kappa: Cohen's, 0 for agreement by chance, 1 for full agreement. "
            "Brackets: questions are resampled with all their cases. Failed verdicts are left out."
        )
        return Table("judge agreement", "Agreement of the judge with known truth", COLUMNS, rows, note=note)

    def _made(self) -> list[Case]:
        """Cases of answers that are right or wrong by construction."""
        if "answers" not in self.judge.prompts:
            return []
        made = [*known_answers(self.questions, self.judge.known_answers, NORMALIZATIONS[self.settings.normalization])]
        verdicts = self.judge.on_answers([(self.questions[number], text) for number, text, _ in made])
        self.judged.verdicts[MADE] = verdicts
        return [
            Case(number, truth, correct)
            for (number, _, truth), verdict in zip(made, verdicts, strict=True)
            if (correct := _correct(verdict)) is not None
        ]

    def _judged_passages(self) -> list[tuple[int, Passage, bool]]:
        return [
            (number, passage, relevant)
            for number, (found, verdicts) in enumerate(zip(self.passages, self.of_passages, strict=True))
            for passage, verdict in zip(found, verdicts, strict=False)
            if (relevant := relevant_by(verdict)) is not None
        ]

    def _reason(self, kind: str, needs_reader: bool = False) -> str:
        """Why something is not judged; empty if it is."""
        if kind not in self.judge.prompts:
            return NOT_ASKED_FOR
        return NO_READER if needs_reader and not self.reads else ""

    def _add(self, row: str, values_N: NDArray[np.float64], verdicts: Sequence[Verdict]) -> None:
        self.judged.values[row] = values_N
        self.failed[row] = sum(each.fields is None for each in verdicts)

    def record_of(self, number: int) -> dict[str, object]:
        """What questions.jsonl says of one question."""
        record: dict[str, object] = {}
        if verdict := self.of_answers[number]:
            record["answer"] = _shown(verdict)
        if self.of_passages[number]:
            record["passages"] = [
                {"id": passage.id, **_shown(verdict)}
                for passage, verdict in zip(self.passages[number], self.of_passages[number], strict=True)
            ]
        if verdict := self.of_criteria[number]:
            record["criteria"] = _shown(verdict)
        return {"judge": record}

    def case_of(self, number: int) -> list[PageCase]:
        """What the page says of one question."""
        rows = []
        if verdict := self.of_answers[number]:
            rows.append(("answer", _word(verdict, "verdict"), _why(verdict)))
        for place, verdict in enumerate(self.of_passages[number], start=1):
            title = self.passages[number][place - 1].title
            rows.append((f"passage {place}: {title}", _word(verdict, "relevant"), _why(verdict)))
        if verdict := self.of_criteria[number]:
            rows += [(name, _word(verdict, name), _why(verdict)) for name in CRITERIA]
        return [PageCase("Judged by a language model", ("what", "verdict", "reason"), tuple(rows))] if rows else []


def judge_measured(judge: Judge | None, measured: Measured, settings: Settings) -> None:
    """Judge a system's answers and passages.  Tables, measures per question and computing time are added to its own.

    Without a judge only the table that says so is added.

    Args:
        judge: Judges.
        measured: The system's results; the variants of its study are not judged.
        settings: Of the evaluation.
    """
    if judge is None:
        measured.tables.append(not_judged())
        return
    started, seconds_before = time.perf_counter(), judge.seconds_before
    judged = measured.judged = _judged(judge, measured, settings)
    measured.tables += judged.tables
    own = measured.measures[measured.word]
    names = _MEASURES | {row: row.removesuffix(" %") for row in retrieval_rows(judge.passages)}
    own |= {names[row]: values_N / 100 for row, values_N in judged.values.items() if row in names}
    measured.seconds += time.perf_counter() - started + judge.seconds_before - seconds_before


def _judged(judge: Judge, measured: Measured, settings: Settings) -> Judged:
    system = _System(judge, measured, settings)
    system.judge_answers()
    system.judge_passages()
    system.judge_criteria()
    judged = system.judged
    agreement = system.agreement()
    judged.reasons[ADEQUACY] = NEEDS_SEVERAL if "ranking" in judge.prompts else NOT_ASKED_FOR
    judged.tables = [
        judged_table(judged, system.failed, settings.bootstrap),
        *kinds_table(judged, [question.kind for question in measured.questions], settings.bootstrap),
        agreement,
        costs_table(judged.verdicts),
    ]
    count = len(measured.questions)
    judged.records = [system.record_of(number) for number in range(count)]
    judged.cases = [system.case_of(number) for number in range(count)]
    judged.record = judge_record(judge, judged)
    return judged


def judge_record(judge: Judge, judged: Judged) -> dict[str, object]:
    """The judge and what it found, for report.json."""
    means: dict[str, float | None] = {
        row: float(np.nanmean(values_N)) if not np.isnan(values_N).all() else None
        for row, values_N in judged.values.items()
    }
    asked = {each.key: each for verdicts in judged.verdicts.values() for each in verdicts}
    return {
        "model": judge.llm.name,
        "prompts": {kind: {"name": prompt.name, "hash": prompt.hash} for kind, prompt in judge.prompts.items()},
        "passages": judge.passages,
        "means": means,
        "verdicts": len(asked),
        "failures": _counted(each.failure for each in asked.values() if each.failure),
    }


def _counted(failures: Iterable[str]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for failure in failures:
        counts[failure] = counts.get(failure, 0) + 1
    return counts


def _first_passages(answer: Answer, k: int) -> list[Passage]:
    """The first k passages; one that occurs several times counts once."""
    return [*{hit.passage.id: hit.passage for hit in answer.evidence}.values()][:k]


def hit_and_precision(relevant: Sequence[bool | None], k: int) -> tuple[float, float]:
    """Judged H@k and P@k of one question, 0 to 1; NaN where a failed verdict (None) leaves them open."""
    unknown = None in relevant
    return 1.0 if True in relevant else nan if unknown else 0.0, nan if unknown else relevant.count(True) / k


def credit_by(verdict: Verdict) -> float:
    """The credit of an answer, 0 to 1; NaN after a failure."""
    return CREDIT[verdict.fields["verdict"]] if verdict.fields else nan


def _correct(verdict: Verdict) -> bool | None:
    return verdict.fields["verdict"] == "correct" if verdict.fields else None


def relevant_by(verdict: Verdict) -> bool | None:
    """Whether the judge finds a passage relevant; None after a failure."""
    return bool(verdict.fields["relevant"]) if verdict.fields else None


def _shown(verdict: Verdict) -> dict[str, object]:
    return dict(verdict.fields) if verdict.fields else {"failure": verdict.failure}


def _word(verdict: Verdict, field: str) -> str:
    if not verdict.fields:
        return "failed"
    value = verdict.fields[field]
    return {True: "relevant", False: "not relevant"}[value] if isinstance(value, bool) else str(value)


def _why(verdict: Verdict) -> str:
    return str(verdict.fields.get("reason", "")) if verdict.fields else verdict.failure
