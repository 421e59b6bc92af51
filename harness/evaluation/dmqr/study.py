"""DMQR-RAG's study: H@k, P@k, EM and F1 of every method (Tables 2 to 4), and recall.

All methods share one search per query and one score per (question, passage); every rewriter is asked once per question.
"""

from argparse import ArgumentError
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from jsonargparse import ArgumentParser

from common.command_line import in_one_line
from common.errors import ArtifactError, MissingInputError, UserError
from common.ranges import PositiveInt
from common.records import Answer, Question
from common.rewrites import Rewrites
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
    check_names,
    methods_of,
    selected,
)
from harness.evaluation.dmqr.search import DmqrResults, Spent, find_all, method_answers, rewrite_all
from harness.evaluation.paper_figures import DMQR, dmqr
from harness.evaluation.plots import plot_recall
from harness.evaluation.reading import read_choices
from harness.evaluation.study import Asked, Findings, Settings, word_of
from harness.evaluation.tables import ReportTable
from harness.interfaces import Retriever
from harness.retrievers.corpora import check_same_corpus, gold_not_in_index, index_records
from harness.retrievers.multi_query import ORIGINAL, MultiQueryRetriever
from harness.rewriters.strategy_checks import check_strategies
from harness.runtime.provenance import computed_in, reusing
from harness.systems.dmqr import Dmqr

_ALLOWED = "give the config file of a system of class harness.systems.dmqr.Dmqr"
Further = dict[str, tuple[Method, MultiQueryRetriever]]  # rewriters with what they search with, none of them loaded


@dataclass(frozen=True, slots=True)
class Shared:
    """The data of the tables, by method."""

    found: dict[str, DmqrResults]
    texts: dict[str, list[Answer]]  # of the reader; empty without one
    answers: dict[str, list[Answer]]
    spent: Spent
    facts: list[str]  # of the rewriters
    further_indexes: dict[str, list[dict[str, object]]]


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

    def check(self, system: Dmqr, out: Path, layout: str) -> None:
        """Check rows and rewriters.  Raises UserError or a subclass."""
        check_names((*system.search.strategies, word_of(system)), self.rewriters)
        self._methods(system, self._further(system))

    def _further(self, system: Dmqr) -> Further:
        """The further rewriters by name; the system's own without its choice of strategies, if it chooses."""
        systems = {name: _system(f"study.rewriters.{name}", file, system) for name, file in self.rewriters.items()}
        further: Further = {}
        for name, other in systems.items():
            if other.rewriter is not None:
                check_strategies(other.rewriter, other.search.strategies)
            place = OWN_REWRITER if other.retriever is system.retriever else name
            further[name] = Method.of(other, name, name, place), _rewriting(other, other.rewriter)
        if getattr(system.rewriter, "adaptive", False):
            every = system.rewriter.without_choice()  # type: ignore[union-attr]  # what chooses has it
            further[ALL_STRATEGIES] = (
                Method.of(system, ALL_STRATEGIES, ALL_STRATEGIES),
                _rewriting(system, every),
            )
        return further

    def _methods(self, system: Dmqr, further: Further) -> dict[str, Method]:
        """The rows to measure."""
        own = Method.of(system)
        return selected(methods_of(own, [method for method, _ in further.values()], self.deep), self.rows, own.name)

    def ask(self, system: Dmqr, questions: Sequence[Question], settings: Settings) -> Asked:
        """The results of all methods, and the reader's answers from them.

        Raises:
            UserError: If a question has earlier turns.
            ArtifactError: If the retrievers search indexes of different corpora.
        """
        if turned := next((each for each in questions if each.history), None):
            raise UserError(
                f"question {turned.id!r} has earlier turns, and the study of DMQR-RAG compares questions that stand "
                "alone: rewrite them first."
            )
        spent, further, facts, folder = Spent(), self._further(system), list[str](), settings.partial
        methods, own = self._methods(system, further), Method.of(system).name
        retrievers: dict[str, Retriever] = {OWN_REWRITER: system.retriever}
        retrievers |= {method.retriever: search.retriever for method, search in further.values()}
        check_same_corpus([*retrievers.values()])
        used = {method.retriever for method in methods.values()}
        retrievers = {name: each for name, each in retrievers.items() if name in used}
        rewrites = _rewrites(system, questions, methods, further, folder, spent, facts)
        most = max(system.k, *settings.ks)
        file = folder / "scores.jsonl"
        found = find_all(system, methods.values(), retrievers, questions, rewrites, most, file, spent)
        texts, seconds_each, seconds_before = dict[str, list[Answer]](), 0.0, spent.seconds_before
        if system.reader is not None and any(question.answers for question in questions):
            chosen = [[hits.ranked[: system.k] for hits in each.hits] for each in found.values()]
            read = read_choices(system.reader, questions, chosen, folder / "reading.jsonl")
            texts, seconds_each = dict(zip(found, read.answers, strict=True)), read.seconds_each
            seconds_before += read.seconds_before
        answers = {
            name: method_answers(questions, each, system.k, spent, texts.get(name), seconds_each)
            for name, each in found.items()
        }
        further_indexes = index_records({name: each for name, each in retrievers.items() if name != OWN_REWRITER})
        shared = Shared(found, texts, answers, spent, facts, further_indexes)
        variants = {name: each for name, each in answers.items() if name != own}
        return Asked(answers[own], variants, seconds_before, shared)

    def measure(self, system: Dmqr, questions: Sequence[Question], asked: Asked, settings: Settings) -> Findings:
        """Tables of all methods.

        Retrieval on questions to which the rule applies, answers on those with gold answers.
        """
        shared: Shared = asked.found
        spent, methods = shared.spent, {name: each.method for name, each in shared.found.items()}
        findings = Findings(facts=shared.facts)
        _add_tables(findings, system, questions, shared, settings)
        costs = costs_of(shared.answers)
        costs.name, costs.title = "costs of the methods", "Costs of the methods per question"
        findings.tables.append(costs)
        findings.records = [_record(number, shared.answers) for number in range(len(questions))]
        findings.facts += [
            f"{len(methods)} methods; {spent.pairs:,} (question, passage) scored once each in "
            f"{spent.pairs * spent.pair_seconds:.0f} s"
            + (f", matrix products in {dtype}" if (dtype := computed_in(system.search.scorer)) else "")
        ]
        findings.settings |= {
            "methods": {name: asdict(method) for name, method in methods.items()},
            "further indexes": shared.further_indexes,
            "passages scored": spent.pairs,
        }
        return findings


def _rewriting(other: Dmqr, rewriter: object) -> MultiQueryRetriever:
    """Makes and searches the queries of a system, with its rewriter or another one."""
    own = other.search
    return MultiQueryRetriever(
        other.retriever, rewriter, own.strategies, own.per_query, "rrf",  # type: ignore[arg-type]
        original=own.original, feedback_retriever=other.feedback_retriever,
    )  # fmt: skip


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


def _rewrites(
    system: Dmqr,
    questions: Sequence[Question],
    methods: Mapping[str, Method],
    further: Further,
    folder: Path,
    spent: Spent,
    facts: list[str],
) -> dict[str, list[Rewrites]]:
    """The rewrites of the questions by every rewriter.

    A further rewriter is taken out, loaded, asked and freed before the next one.
    """
    used = {name for each in methods.values() for name in (each.rewriter, each.judge[0] if each.judge else None)}
    rewrites: dict[str, list[Rewrites]] = {}
    if OWN_REWRITER in used:
        rewrites[OWN_REWRITER] = rewrite_all(system.search, questions, folder / "rewrites.jsonl", spent)
    for number, name in enumerate([*further], 1):
        _, search = further.pop(name)
        if name in used:
            search.load()
            rewrites[name] = rewrite_all(search, questions, folder / f"rewrites-{number}.jsonl", spent)
            name_and_version = [search.rewriter.name] if search.rewriter else []
            facts += [f"{name}: {fact}" for fact in getattr(search.rewriter, "facts", name_and_version)]
    return rewrites


def _record(number: int, answers: Mapping[str, Sequence[Answer]]) -> dict[str, object]:
    """Fields of one question's record: the passages of every row, best first, and its answer where it was read."""
    rows = {}
    for name, own in answers.items():
        answer = own[number]
        read = {"answer": answer.text} if answer.text else {}
        rows[name] = {"passages": [hit.passage.id for hit in answer.evidence], **read}
    return {"rows": rows}


def _add_tables(
    findings: Findings, system: Dmqr, questions: Sequence[Question], shared: Shared, settings: Settings
) -> None:
    """Tables 2 to 4, recall and number of rewrites, their plots, and the cases."""
    found, k, bootstrap = shared.found, system.k, settings.bootstrap
    by_gold = _by_gold(system, questions)
    scored = tables.score_methods(questions, found, by_gold, k, settings.ks)
    for name, texts in shared.texts.items():
        values = answer_values(questions, texts, settings)
        scored[name].values |= {"EM": values[0], "F1": values[1]}
    columns = [f"H@{k}", f"P@{k}", "EM", "F1"]
    own, search = found[Method.of(system).name], system.search
    judge_costs: list[ReportTable] = []
    if settings.judge is not None:
        judged, judge_costs = tables.judge_methods(settings.judge, questions, found, scored, shared.texts)
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
    known = [question for question in questions if question.support and not question.unshipped_support]
    try:
        gold_not_in_index(system.retriever, known, count=False)
    except ArtifactError:
        return False
    return bool(known)
