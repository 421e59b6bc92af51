"""DMQR-RAG's study: H@k, P@k, EM and F1 of every method (Tables 2 to 4), and recall.

All methods share one search per query and one score per (question, passage); every rewriter is asked once per question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from common.errors import ArtifactError, UserError
from common.ranges import PositiveInt
from common.records import Answer, Question
from common.rewrites import Rewrites
from harness.evaluation.answer_scores import score_answers
from harness.evaluation.comparison import costs_of
from harness.evaluation.dmqr.answers import method_answers
from harness.evaluation.dmqr.cases import chosen_cases, query_case
from harness.evaluation.dmqr.choice import choice_table, plot_choice
from harness.evaluation.dmqr.further import Further, further_rewriter, without_choice
from harness.evaluation.dmqr.judged import judge_methods, judged_columns
from harness.evaluation.dmqr.methods import (
    ALL_STRATEGIES,
    FUSED,
    OQR,
    OWN_REWRITER,
    RM3,
    Method,
    Rewriting,
    check_names,
    check_rows,
    methods_of,
    own_name,
    selected,
)  # fmt: skip
from harness.evaluation.dmqr.rewrites import plot_rewrites, rewrites_table
from harness.evaluation.dmqr.scores import Relevance
from harness.evaluation.dmqr.search import Found, Spent, find_all, rewrite_all
from harness.evaluation.dmqr.tables import (
    BY_REWRITE,
    JUDGED,
    NOTES,
    RECALL,
    RULES,
    Scored,
    method_tables,
    plot_recall,
    recall_tables,
    score_methods,
)
from harness.evaluation.paper_figures import DMQR, dmqr
from harness.evaluation.reading import ReadChoices, read_choices
from harness.evaluation.study import Asked, Findings, Settings, word_of
from harness.indexing.index_folder import open_index
from harness.interfaces import Retriever, Rewriter
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.corpora import check_same_corpus, gold_not_in_index, index_records
from harness.retrievers.multi_query import ORIGINAL, MultiQueryRetriever
from harness.retrievers.rm3 import Rm3Retriever
from harness.runtime.provenance import computed_in
from harness.strategies.dmqr import Dmqr


@dataclass(frozen=True, slots=True)
class Shared:
    """What the tables are made of; by method."""

    found: dict[str, Found]
    texts: dict[str, list[Answer]]  # of the methods that the reader has read
    answers: dict[str, list[Answer]]
    spent: Spent
    facts: list[str]  # of the rewriters
    further_indexes: dict[str, list[dict[str, object]]]


class Study:
    """Measures the system, each of its strategies alone, all but each, and its baselines on the same questions.

    Args:
        rows: Methods to measure besides OQR, OQR deep, "all strategies" and the system itself, e.g. [RM3, gqr, "w/o
            gqr"]; all when omitted. An empty list measures the system alone.
        rewriters: Further rewriters by name (Table 3): config file of a system like this one, or class_path and
            init_args of a rewriter. Each has a row of its name with all its strategies, and a row for each strategy
            alone, such as `NAME, gqr`.
        bm25: BM25 index of the same corpus, for RM3's feedback where the system's retriever has none.
        deep: Passages of OQR deep and RM3 deep; as many as all queries of the system retrieve together when omitted.
        read: Methods that the reader answers from besides the system itself; all when omitted.
    """

    def __init__(
        self,
        rows: list[str] | None = None,
        rewriters: dict[str, Rewriter | Path] | None = None,
        bm25: Path | None = None,
        deep: PositiveInt | None = None,
        read: list[str] | None = None,
    ) -> None:
        self.rows, self.bm25, self.deep, self.read = rows, bm25, deep, read
        self.rewriters = dict(rewriters or {})

    def check(self, strategy: Dmqr, out: Path, layout: str) -> None:
        """Check rows, rewriters and the index.  Raises UserError or a subclass."""
        own = Rewriting.of(strategy)
        check_names((*own.strategies, word_of(strategy)), self.rewriters)
        further = {name: each.rewriting for name, each in self._further(strategy).items()}
        if self.bm25 is not None:
            open_index(self.bm25, "bm25", "off")
        methods = methods_of(own, further, self.bm25 is not None or bool(_feedback(strategy)), self.deep)
        check_rows(methods, self.rows, "rows")
        check_rows(selected(methods, self.rows, own_name(own)), self.read, "read")

    def _further(self, strategy: Dmqr) -> dict[str, Further]:
        """The further rewriters by name."""
        given = {name: further_rewriter(name, each, strategy) for name, each in self.rewriters.items()}
        return given | without_choice(strategy)

    def ask(self, strategy: Dmqr, questions: Sequence[Question], settings: Settings) -> Asked:
        """What all methods find, and what the reader answers from it.

        Raises:
            UserError: If a question has earlier turns.
            ArtifactError: If the retrievers search indexes of different corpora.
        """
        if turned := next((each for each in questions if each.history), None):
            raise UserError(
                f"question {turned.id!r} has earlier turns, and the study of DMQR-RAG compares questions that stand "
                "alone: rewrite them first."
            )
        own, spent, further = Rewriting.of(strategy), Spent(), self._further(strategy)
        self.rewriters.clear()  # each is freed once it has been asked
        retrievers = self._retrievers(strategy, further)
        every = methods_of(own, {name: each.rewriting for name, each in further.items()}, RM3 in retrievers, self.deep)
        methods = selected(every, self.rows, own_name(own))
        used = {method.retriever for method in methods.values()}
        retrievers = {name: each for name, each in retrievers.items() if name in used}
        facts: list[str] = []
        rewrites = self._rewrites(strategy, questions, methods, further, retrievers, settings.partial, spent, facts)
        most = max(strategy.k, *settings.ks)
        found = find_all(
            strategy, methods.values(), retrievers, questions, rewrites, most, settings.partial / "scores.jsonl", spent
        )
        rows = [name for name in found if self.read is None or name in (*self.read, own_name(own))]
        read = _read(strategy, questions, {name: found[name] for name in rows}, settings.partial)
        texts = dict(zip(rows, read.answers, strict=True)) if read else {}
        seconds_each = read.seconds_each if read else 0.0
        answers = {
            name: method_answers(questions, each, strategy.k, spent, texts.get(name), seconds_each)
            for name, each in found.items()
        }
        further_indexes = index_records({name: each for name, each in retrievers.items() if name != OWN_REWRITER})
        shared = Shared(found, texts, answers, spent, facts, further_indexes)
        own_row = own_name(own)
        variants = {name: each for name, each in answers.items() if name != own_row}
        seconds_before = spent.seconds_before + (read.seconds_before if read else 0.0)
        return Asked(answers[own_row], variants, seconds_before, shared)

    def measure(self, strategy: Dmqr, questions: Sequence[Question], asked: Asked, settings: Settings) -> Findings:
        """Tables of all methods.

        Retrieval on questions to which the rule applies, answers on those with gold answers.
        """
        shared: Shared = asked.found
        spent, methods = shared.spent, {name: each.method for name, each in shared.found.items()}
        findings = Findings(facts=shared.facts)
        _add_tables(findings, strategy, questions, shared.found, shared.texts, settings)
        costs = costs_of(shared.answers)
        costs.name, costs.title = "costs of the methods", "Costs of the methods per question"
        findings.tables.append(costs)
        findings.records = [_record(number, shared.answers) for number in range(len(questions))]
        findings.facts += [
            f"{len(methods)} methods; {spent.pairs:,} (question, passage) scored once each in "
            f"{spent.pairs * spent.pair_seconds:.0f} s"
            + (f", matrix products in {dtype}" if (dtype := computed_in(strategy.search.scorer)) else "")
        ]
        findings.settings |= {
            "methods": {name: asdict(method) for name, method in methods.items()},
            "further indexes": shared.further_indexes,
            "passages scored": spent.pairs,
        }
        return findings

    def _retrievers(self, strategy: Dmqr, further: Mapping[str, Further]) -> dict[str, Retriever]:
        """All retrievers by name."""
        retrievers: dict[str, Retriever] = {OWN_REWRITER: strategy.retriever}
        feedback = Bm25Retriever(self.bm25) if self.bm25 else _feedback(strategy)
        if feedback is not None:
            retrievers[RM3] = Rm3Retriever(strategy.retriever, feedback)
        retrievers |= {each.rewriting.retriever: each.retriever for each in further.values()}
        check_same_corpus([*retrievers.values()])
        return retrievers

    def _rewrites(
        self,
        strategy: Dmqr,
        questions: Sequence[Question],
        methods: Mapping[str, Method],
        further: dict[str, Further],
        retrievers: Mapping[str, Retriever],
        folder: Path,
        spent: Spent,
        facts: list[str],
    ) -> dict[str, list[Rewrites]]:
        """What every rewriter makes of the questions.

        A further rewriter is taken out, loaded, asked and freed before the next one.
        """
        used = {name for each in methods.values() for name in (each.rewriter, each.judge[0] if each.judge else None)}
        rewrites: dict[str, list[Rewrites]] = {}
        if OWN_REWRITER in used:
            rewrites[OWN_REWRITER] = rewrite_all(strategy.search, questions, folder / "rewrites.jsonl", spent)
        for number, name in enumerate([*further], 1):
            each = further.pop(name)
            if name in used:
                search = MultiQueryRetriever(
                    each.retriever, each.rewriter, each.rewriting.strategies, each.rewriting.per_query, "rrf",
                    original=each.rewriting.original, feedback=each.feedback,
                )  # fmt: skip
                search.load()
                rewrites[name] = rewrite_all(search, questions, folder / f"rewrites-{number}.jsonl", spent)
                name_and_version = [each.rewriter.name] if each.rewriter else []
                facts += [f"{name}: {fact}" for fact in getattr(each.rewriter, "facts", name_and_version)]
        return rewrites


def _record(number: int, answers: Mapping[str, Sequence[Answer]]) -> dict[str, object]:
    """Fields of one question's record: the passages of every row, best first, and its answer where it was read."""
    rows = {}
    for name, own in answers.items():
        answer = own[number]
        read = {"answer": answer.text} if answer.text else {}
        rows[name] = {"passages": [hit.passage.id for hit in answer.evidence], **read}
    return {"rows": rows}


def _read(
    strategy: Dmqr, questions: Sequence[Question], found: Mapping[str, Found], folder: Path
) -> ReadChoices | None:
    """What the reader answers from each method's passages; None without a reader or gold answers."""
    if strategy.reader is None or not any(question.answers for question in questions):
        return None
    chosen = [[hits.ranked[: strategy.k] for hits in each.hits] for each in found.values()]
    return read_choices(strategy.reader, questions, chosen, folder / "reading.jsonl", [*found])


def _add_tables(
    findings: Findings,
    strategy: Dmqr,
    questions: Sequence[Question],
    found: Mapping[str, Found],
    texts: Mapping[str, Sequence[Answer]],
    settings: Settings,
) -> None:
    """Tables 2 to 4, recall and number of rewrites, their plots, and the cases."""
    relevance, k = _relevance(strategy, questions), strategy.k
    scored = score_methods(found, relevance, k, settings.ks)
    for name, each in scored.items():
        _add_answer_scores(each, questions, texts.get(name), settings)
    columns, judge_costs = [f"H@{k}", f"P@{k}", "EM", "F1"], None
    own = found[own_name(Rewriting.of(strategy))]
    if settings.judge is not None:
        judge_costs = judge_methods(settings.judge, questions, found, scored, texts)
        judged = judged_columns(settings.judge.passages)
        columns += [name for name in judged if name in scored[own.method.name].values]
    paper = settings.paper if settings.paper in DMQR else None
    published = dict.fromkeys(name for row in dmqr(paper, (2,)).values() for name in row)
    columns += [name for name in published if name not in columns and f"{JUDGED}{name}" not in columns]
    title = f"relevance by {relevance.rule}"
    recalls = recall_tables(scored, settings.ks, title, settings.bootstrap)
    findings.tables += [*method_tables(scored, columns, title, settings.bootstrap, paper), *recalls]
    findings.tables += [judge_costs] if judge_costs else []
    findings.plots["recall.png"] = partial(plot_recall, recalls[:1])
    findings.paper = "DMQR-RAG" if paper else ""
    depths = [each.method.per_query for each in scored.values() if each.method.rewriter is None]
    deep = max(depths, default=strategy.search.per_query)
    judged_by = strategy.search.judged_by
    findings.notes = NOTES.format(
        k=k, rule=RULES[relevance.rule], recall=RECALL[relevance.rule], per_query=strategy.search.per_query, deep=deep,
        judged="" if judged_by == ORIGINAL else BY_REWRITE.format(judged_by=judged_by),
    )  # fmt: skip
    findings.settings |= {"relevance": relevance.rule, "questions with relevance": relevance.questions_known}
    whole = {name: each for name, each in found.items() if each.method.rewriter is not None and not each.method.part}
    shown = {name: each for name, each in whole.items() if not name.endswith(FUSED)}
    if shown:
        findings.tables.append(rewrites_table(shown))
        findings.plots["rewrites.png"] = partial(plot_rewrites, findings.tables[-1])
    if ALL_STRATEGIES in found:
        findings.tables.append(choice_table(found, scored, own.method.name, columns, settings.bootstrap))
        findings.plots["choice.png"] = partial(plot_choice, findings.tables[-1])
    if own.method.rewriter is not None:
        hits = [scored[name].values[f"H@{k}"] for name in (own.method.name, OQR if OQR in scored else own.method.name)]
        findings.notes += "\n" + chosen_cases(questions, own.hits, relevance, *hits)
        findings.cases = [[query_case(number, each, relevance)] for number, each in enumerate(own.hits)]


def _relevance(strategy: Dmqr, questions: Sequence[Question]) -> Relevance:
    """By gold passage, or by has-answer if the index holds none of the gold passages: it is of another corpus."""
    known = [question for question in questions if question.support and not question.unshipped_support]
    try:
        gold_not_in_index(strategy.retriever, known, count=False)
    except ArtifactError:
        return Relevance([replace(question, support=(), unshipped_support=()) for question in questions])
    return Relevance(questions)


def _add_answer_scores(
    scored: Scored, questions: Sequence[Question], read: Sequence[Answer] | None, settings: Settings
) -> None:
    """EM and F1 of a method, undefined without a gold answer or a reader."""
    scored.values |= {name: np.full(len(questions), np.nan) for name in ("EM", "F1")}
    places = [place for place, question in enumerate(questions) if question.answers] if read else []
    if read and places:
        asked, given = [questions[place] for place in places], [read[place].text for place in places]
        found = score_answers(given, asked, settings.normalization, settings.yes_no_rule)
        scored.values["EM"][places], scored.values["F1"][places] = found.exact_N, found.f1_N


def _feedback(strategy: Dmqr) -> Bm25Retriever | None:
    """The BM25 retriever that a system searches with, fuses or reads from; None without one."""
    around = (strategy.retriever, *getattr(strategy.retriever, "retrievers", ()), strategy.feedback)
    return next((each for each in around if isinstance(each, Bm25Retriever)), None)
