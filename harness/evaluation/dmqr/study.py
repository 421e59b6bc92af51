"""DMQR-RAG's study: H@k, P@k, EM and F1 of every method (Tables 2 to 4), and recall.

A method is the system with other settings of its search.
"""

from argparse import ArgumentError
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from common.command_line import in_one_line
from common.errors import ArtifactError, MissingInputError, UserError
from common.ranges import PositiveInt
from common.records import Answer, Question
from common.roots import TYPED, add_roots, resolve
from harness.evaluation.answer_scores import answer_values, costs_table
from harness.evaluation.dmqr import figures, tables
from harness.evaluation.dmqr.methods import OQR_DEEP, Method, check_names, methods_of, own_name, selected
from harness.evaluation.dmqr.tables import Found
from harness.evaluation.paper_figures import published
from harness.evaluation.plots import plot_recall
from harness.evaluation.settings import Settings
from harness.evaluation.study import Findings, RowAnswers, word_of
from harness.evaluation.tables import ReportTable
from harness.interfaces import System
from harness.retrievers.corpora import absent_gold, check_same_corpus, gold_of, index_records
from harness.retrievers.multi_query import ORIGINAL, MultiQueryHits
from harness.rewriters.strategy_checks import check_strategies
from harness.runtime.memo import FOR_STUDY
from harness.runtime.provenance import computed_in, reusing
from harness.runtime.retriever_tree import facts_of
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

    def check(self, system: Dmqr) -> None:
        """Check rows and rewriters.  Raises UserError or a subclass."""
        check_names((*system.search.strategies, word_of(system)), self.rewriters)
        self._set_methods(system)

    def _set_methods(self, system: Dmqr) -> None:
        """Set the further systems and the rows to measure."""
        self.further = {name: _system(f"study.rewriters.{name}", file, system) for name, file in self.rewriters.items()}
        for other in self.further.values():
            if other.rewriter is not None:
                check_strategies(other.rewriter, other.search.strategies)
        self.methods = selected(methods_of(system, self.further, self.deep), self.rows, own_name(system))

    def rows_of(self, system: Dmqr) -> dict[str, System]:
        """The system and its search at other settings; the question alone is asked first, then the most strategies.

        Raises:
            ArtifactError: If the retrievers search indexes of different corpora.
        """
        self._set_methods(system)
        check_same_corpus([system.retriever, *(other.retriever for other in self.further.values())])
        rows: dict[str, Dmqr] = {
            name: system.with_settings(**each.settings) if each.settings else system
            for name, each in self.methods.items()
        }

        def place(row: Dmqr) -> tuple[bool, int, int]:
            return row.rewriter is not None, -len(row.search.strategies), -row.search.per_query

        return {name: rows[name] for name in sorted(rows, key=lambda name: place(rows[name]))}

    def measure(self, system: Dmqr, questions: Sequence[Question], asked: RowAnswers, settings: Settings) -> Findings:
        """Tables of all methods.

        Retrieval on questions to which the rule applies, answers on those with gold answers.
        """
        nothing = MultiQueryHits((), None, (), 0)  # of a question that failed
        found: dict[str, list[Any]] = {
            name: [answer.notes.get(FOR_STUDY, nothing) for answer in asked.rows[name]] for name in self.methods
        }
        answers = {
            # the notes of all rows would fill the page
            name: [replace(answer, notes={}) for answer in asked.rows[name]] if each.part else asked.rows[name]
            for name, each in self.methods.items()
        }
        findings = Findings(variants={name: each for name, each in answers.items() if name != asked.own})
        rewriters = {name: self.further[name].rewriter for name in self.further if name in self.methods}
        for name, rewriter in rewriters.items():
            if rewriter is not None:
                findings.facts += [f"{name}: {fact}" for fact in facts_of(rewriter) or [rewriter.name]]
        self._add_tables(findings, system, questions, found, answers, settings)
        findings.tables.append(costs_table(answers, "costs of the methods", "Costs of the methods per question"))
        findings.records = [_record(number, answers) for number in range(len(questions))]
        scored, dtype = asked.memo.of("relevance", system.search.scorer), computed_in(system.search.scorer)
        findings.facts.append(
            f"{len(found)} methods; {scored.count:,} (question, passage) scored once each in {scored.seconds:.0f} s"
            + (f", matrix products in {dtype}" if dtype else "")
        )
        others = {name: each.retriever for name, each in self.further.items() if each.retriever is not system.retriever}
        findings.settings |= {
            "methods": {
                name: {key: value for key, value in each.settings.items() if isinstance(value, str | int | tuple)}
                for name, each in self.methods.items()
            },
            "further indexes": {name: index_records(each) for name, each in others.items()},
            "passages scored": scored.count,
        }
        return findings

    def _add_tables(
        self,
        findings: Findings,
        system: Dmqr,
        questions: Sequence[Question],
        found: Found,
        answers: Mapping[str, Sequence[Answer]],
        settings: Settings,
    ) -> None:
        """Tables 2 to 4, recall and number of rewrites, their plots, and the cases."""
        k, bootstrap, search, own = system.k, settings.bootstrap, system.search, own_name(system)
        by_gold = _by_gold(system, questions)
        scored = tables.score_methods(questions, found, by_gold, k, settings.ks)
        texts = answers if system.reader is not None and any(question.answers for question in questions) else {}
        for name, own_texts in texts.items():
            values = answer_values(questions, own_texts, settings)
            scored[name].values |= {"EM": values[0], "F1": values[1]}
        columns = [f"H@{k}", f"P@{k}", "EM", "F1"]
        judge_costs: list[ReportTable] = []
        if settings.judge is not None:
            judged, judge_costs = tables.judge_methods(settings.judge, questions, found, scored, texts)
            columns += judged
        if published("DMQR-RAG, Table 2", settings.paper, ()):
            findings.paper = "DMQR-RAG"
            further = ("H@5", "P@5", "Acc")  # a judge's
            columns += [name for name in further if {name, f"{tables.JUDGED}{name}"}.isdisjoint(columns)]
        rule = "gold passage" if by_gold else "has-answer"
        title, without = f"relevance by {rule}", [name for name, each in self.methods.items() if each.without]
        recalls = tables.recall_tables(scored, without, settings.ks, title, bootstrap)
        made = tables.method_tables(scored, own, without, columns, title, bootstrap, settings.paper)
        findings.tables += [*made, *recalls, *judge_costs]
        curves = tables.recall_curves(scored, without, settings.ks)
        findings.plots["recall.png"] = partial(plot_recall, curves, recalls[0].title)
        deepest = self.methods[OQR_DEEP].settings["per_query"] if OQR_DEEP in self.methods else search.per_query
        findings.notes = tables.NOTES.format(
            k=k, rule=tables.RULES[by_gold], recall=tables.RECALL[by_gold], per_query=search.per_query, deep=deepest,
            judged="" if search.judged_by == ORIGINAL else tables.BY_REWRITE.format(judged_by=search.judged_by),
        )  # fmt: skip
        known = sum(scored[own][f"H@{k}"] >= 0)
        findings.settings |= {"relevance": rule, "questions with relevance": int(known)}
        whole = {name: each for name, each in found.items() if not self.methods[name].part}
        if shown := {name: each for name, each in whole.items() if any(hits.rewrites for hits in each)}:
            findings.tables.append(figures.rewrites_table(shown))
        if system.rewriter is not None:
            findings.cases = [[figures.query_case(*each, by_gold)] for each in zip(questions, found[own], strict=True)]


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


def _by_gold(system: Dmqr, questions: Sequence[Question]) -> bool:
    """Whether gold passages are relevant; not if the index holds none of them: it is of another corpus."""
    known = [question for question in questions if question.support and not question.gold.titles]
    try:
        absent_gold(system.retriever, gold_of(known))
    except ArtifactError:
        return False
    return bool(known)
