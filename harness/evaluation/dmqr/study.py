"""DMQR-RAG's study: H@k, P@k, EM and F1 of every method (Tables 2 to 4), and recall.

A method is the system with other settings of its search.
"""

from argparse import ArgumentError
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from jsonargparse import ArgumentParser

from common.command_line import in_one_line
from common.errors import ArtifactError, MissingInputError, UserError
from common.ranges import PositiveInt
from common.records import Answer, Question
from common.roots import TYPED, add_roots, resolve
from harness.evaluation.answer_scores import answer_values
from harness.evaluation.comparison import costs_of
from harness.evaluation.dmqr import figures, tables
from harness.evaluation.dmqr.methods import (
    ALL_STRATEGIES,
    FUSED,
    OQR,
    OWN_REWRITER,
    Method,
    MethodHits,
    check_names,
    methods_of,
    selected,
)
from harness.evaluation.paper_figures import DMQR, dmqr
from harness.evaluation.plots import plot_recall
from harness.evaluation.settings import Settings
from harness.evaluation.study import Findings, RowAnswers, word_of
from harness.evaluation.tables import ReportTable
from harness.interfaces import ChoosingRewriter, System
from harness.retrievers.corpora import check_gold_in_index, check_same_corpus, gold_of, index_records
from harness.retrievers.multi_query import ORIGINAL
from harness.retrievers.retriever_tree import facts_of
from harness.rewriters.strategy_checks import check_strategies
from harness.runtime.provenance import computed_in, reusing
from harness.systems.dmqr import Dmqr

_ALLOWED = "give the config file of a system of class harness.systems.dmqr.Dmqr"


class Study:
    """Measures the system, each of its strategies alone, all but each, and its baselines on the same questions.

    Args:
        rows: Methods to measure besides OQR, OQR deep, "all strategies" and the system itself, e.g. [gqr, "w/o gqr"];
            all when omitted.
        rewriters: Further systems by name (Table 3): config files of systems like this one. Each has a row of its name
            with all its strategies, and a row for each strategy alone, such as `NAME, gqr`. A root that is typed, such
            as --index_root, counts in them, too.
        deep: Passages of OQR deep; as many as all queries of the system retrieve together when omitted.
    """

    def __init__(
        self, rows: list[str] | None = None, rewriters: dict[str, Path] | None = None, deep: PositiveInt | None = None
    ) -> None:
        self.rows, self.deep, self.rewriters = rows, deep, dict(rewriters or {})
        self.methods: dict[str, Method] = {}  # of the rows
        self.further: dict[str, Dmqr] = {}

    def check(self, system: Dmqr, out: Path, layout: str) -> None:
        """Check rows and rewriters.  Raises UserError or a subclass."""
        check_names((*system.search.strategies, word_of(system)), self.rewriters)
        self._methods(system, self._further(system))

    def _further(self, system: Dmqr) -> dict[str, tuple[Method, Dmqr]]:
        """The further systems by name; the system itself without its choice of strategies, if it chooses."""
        systems = {name: _system(f"study.rewriters.{name}", file, system) for name, file in self.rewriters.items()}
        further: dict[str, tuple[Method, Dmqr]] = {}
        for name, other in systems.items():
            if other.rewriter is not None:
                check_strategies(other.rewriter, other.search.strategies)
            place = OWN_REWRITER if other.retriever is system.retriever else name
            further[name] = Method.of(other, name, name, place), other
        if isinstance(system.rewriter, ChoosingRewriter) and system.rewriter.adaptive:
            every = system.rewriter.without_choice()
            whole = Method.of(system, ALL_STRATEGIES, ALL_STRATEGIES)
            further[ALL_STRATEGIES] = whole, system.with_settings(rewriter=every)
        return further

    def _methods(self, system: Dmqr, further: Mapping[str, tuple[Method, Dmqr]]) -> dict[str, Method]:
        """The rows to measure."""
        own = Method.of(system)
        return selected(methods_of(own, [method for method, _ in further.values()], self.deep), self.rows, own.name)

    def rows_of(self, system: Dmqr) -> dict[str, System]:
        """The system and its search at other settings; the question alone is asked first, then the most strategies.

        Raises:
            ArtifactError: If the retrievers search indexes of different corpora.
        """
        further = self._further(system)
        self.further = {name: other for name, (_, other) in further.items()}
        self.methods, own = self._methods(system, further), Method.of(system).name
        check_same_corpus([system.retriever, *(other.retriever for other in self.further.values())])
        rows: dict[str, Dmqr] = {
            name: system if name == own else self._row(system, each) for name, each in self.methods.items()
        }

        def place(row: Dmqr) -> tuple[bool, int, int]:
            return row.rewriter is not None, -len(row.search.strategies), -row.search.per_query

        return {name: rows[name] for name in sorted(rows, key=lambda name: place(rows[name]))}

    def _row(self, system: Dmqr, method: Method) -> Dmqr:
        """The system as a method has it."""
        judged = method.judged_by if method.fusion == "rerank" else ORIGINAL
        made_by = method.rewriter if judged == ORIGINAL or method.rewriter is not None else OWN_REWRITER
        other = system if made_by is None else self.further.get(made_by, system)
        found = self.further.get(method.retriever, system)
        strategies = tuple(dict.fromkeys([*method.strategies, *([judged] if judged != ORIGINAL else [])]))
        rewriter = None if made_by is None else other.rewriter
        return system.with_settings(
            retriever=found.retriever, rewriter=rewriter, strategies=strategies, searching=method.strategies,
            feedback_retriever=other.feedback_retriever if rewriter else None, per_query=method.per_query,
            fusion=method.fusion, original=method.original, judged_by=judged,
        )  # fmt: skip

    def measure(self, system: Dmqr, questions: Sequence[Question], asked: RowAnswers, settings: Settings) -> Findings:
        """Tables of all methods.

        Retrieval on questions to which the rule applies, answers on those with gold answers.
        """
        order = {name: asked.rows[name] for name in self.methods}
        found = {name: MethodHits.of(method, order[name]) for name, method in self.methods.items()}
        answers = {name: _shown(self.methods[name], each) for name, each in order.items()}
        findings = Findings(variants={name: each for name, each in answers.items() if name != asked.own})
        findings.facts = self._facts()
        _add_tables(findings, system, questions, found, answers, settings)
        costs = costs_of(answers)
        costs.name, costs.title = "costs of the methods", "Costs of the methods per question"
        findings.tables.append(costs)
        findings.records = [_record(number, answers) for number in range(len(questions))]
        scored, dtype = asked.memo.of("relevance", system.search.scorer), computed_in(system.search.scorer)
        findings.facts.append(
            f"{len(found)} methods; {scored.count:,} (question, passage) scored once each in {scored.seconds:.0f} s"
            + (f", matrix products in {dtype}" if dtype else "")
        )
        others = {name: self.further[name].retriever for name in _retrievers(self.methods) if name in self.further}
        findings.settings |= {
            "methods": {name: asdict(method) for name, method in self.methods.items()},
            "further indexes": index_records(others),
            "passages scored": scored.count,
        }
        return findings

    def _facts(self) -> list[str]:
        """Lines on the further rewriters."""
        used = {each.rewriter for each in self.methods.values()}
        facts = []
        for name, other in self.further.items():
            if name in used and other.rewriter is not None:
                facts += [f"{name}: {fact}" for fact in facts_of(other.rewriter) or [other.rewriter.name]]
        return facts


def _retrievers(methods: Mapping[str, Method]) -> list[str]:
    """The names of the methods' retrievers, each once."""
    return list(dict.fromkeys(method.retriever for method in methods.values()))


def _shown(method: Method, answers: Sequence[Answer]) -> Sequence[Answer]:
    """The answers of a row; without notes where only some strategies search, which would fill the page."""
    return [replace(answer, notes={}) for answer in answers] if method.part else answers


def _config(system: Dmqr) -> None:
    """The content of a config."""


def _system(option: str, file: Path, own: Dmqr) -> Dmqr:
    """The system of a config; parts that are configured like those of the measured one are its own.

    Raises:
        UserError: If the config is of another kind, or an option is out of range.
        MissingInputError: If the file does not exist.
    """
    if not file.is_file():
        raise MissingInputError(f"{option}: {file} does not exist: {_ALLOWED}.")
    parser = ArgumentParser(exit_on_error=False)
    parser.add_function_arguments(_config, sub_configs=True)  # objects can be files, as on the command line
    add_roots(parser)
    try:
        options = parser.parse_path(file)
        for root, folder in TYPED.get().items():
            options[root] = folder
        resolve(options)
    except ArgumentError as error:
        raise UserError(f"{option}: {in_one_line(str(error))}: {_ALLOWED}.") from error
    other: Dmqr = parser.instantiate(options, instantiators=[(reusing(own), object, True)]).system
    return other


def _record(number: int, answers: Mapping[str, Sequence[Answer]]) -> dict[str, object]:
    """Fields of one question's record: the passages of every row, best first, and its answer where it was read."""
    rows = {}
    for name, own in answers.items():
        answer = own[number]
        read = {"answer": answer.text} if answer.text else {}
        rows[name] = {"passages": [hit.passage.id for hit in answer.evidence], **read}
    return {"rows": rows}


def _add_tables(
    findings: Findings,
    system: Dmqr,
    questions: Sequence[Question],
    found: Mapping[str, MethodHits],
    answers: Mapping[str, Sequence[Answer]],
    settings: Settings,
) -> None:
    """Tables 2 to 4, recall and number of rewrites, their plots, and the cases."""
    k, bootstrap = system.k, settings.bootstrap
    read = system.reader is not None and any(question.answers for question in questions)
    texts = answers if read else {}
    by_gold = _by_gold(system, questions)
    scored = tables.score_methods(questions, found, by_gold, k, settings.ks)
    for name, own_texts in texts.items():
        values = answer_values(questions, own_texts, settings)
        scored[name].values |= {"EM": values[0], "F1": values[1]}
    columns = [f"H@{k}", f"P@{k}", "EM", "F1"]
    own, search = found[Method.of(system).name], system.search
    judge_costs: list[ReportTable] = []
    if settings.judge is not None:
        judged, judge_costs = tables.judge_methods(settings.judge, questions, found, scored, texts)
        columns += judged
    paper = settings.paper if settings.paper in DMQR else None
    published = dict.fromkeys(name for row in dmqr(paper, (2,)).values() for name in row)
    columns += [name for name in published if name not in columns and f"{tables.JUDGED}{name}" not in columns]
    rule = "gold passage" if by_gold else "has-answer"
    title = f"relevance by {rule}"
    recalls = tables.recall_tables(scored, settings.ks, title, bootstrap)
    findings.tables += [*tables.method_tables(scored, columns, title, bootstrap, paper), *recalls, *judge_costs]
    findings.plots["recall.png"] = partial(plot_recall, tables.recall_curves(recalls[0]), recalls[0].title)
    findings.paper = "DMQR-RAG" if paper else ""
    depths = [each.method.per_query for each in scored.values() if each.method.rewriter is None]
    findings.notes = tables.NOTES.format(
        k=k, rule=tables.RULES[by_gold], recall=tables.RECALL[by_gold], per_query=search.per_query,
        deep=max(depths, default=search.per_query),
        judged="" if search.judged_by == ORIGINAL else tables.BY_REWRITE.format(judged_by=search.judged_by),
    )  # fmt: skip
    known = sum(scored[own.method.name][f"H@{k}"] >= 0)
    findings.settings |= {"relevance": rule, "questions with relevance": int(known)}
    whole = {name: each for name, each in found.items() if each.method.rewriter is not None and not each.method.part}
    if shown := {name: each for name, each in whole.items() if not name.endswith(FUSED)}:
        findings.tables.append(figures.rewrites_table(shown))
    if ALL_STRATEGIES in found:
        findings.tables.append(figures.choice_table(found, scored, own.method.name, columns, bootstrap))
    if own.method.rewriter is not None:
        cases = [figures.query_case(*each, by_gold) for each in zip(questions, own.hits, strict=True)]
        hits = [scored[name][f"H@{k}"] for name in (own.method.name, OQR if OQR in scored else own.method.name)]
        findings.notes += "\n" + figures.chosen_cases(questions, cases, *hits)
        findings.cases = [[case] for case in cases]


def _by_gold(system: Dmqr, questions: Sequence[Question]) -> bool:
    """Whether gold passages are relevant; not if the index holds none of them: it is of another corpus."""
    known = [question for question in questions if question.support and not question.gold.titles]
    try:
        check_gold_in_index(system.retriever, gold_of(known))
    except ArtifactError:
        return False
    return bool(known)
