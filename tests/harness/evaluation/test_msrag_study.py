"""MSRAG's study through the command line.

Rows, figures by hand, sources, the fitted selection, StrategyQA, resuming.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from common.chat import Chat, Reply
from common.records import Question
from harness.answer_selection.estimator import EstimatedRelevance
from harness.answer_selection.learned import LearnedSelector
from harness.answer_selection.oracle import Oracle
from harness.context_sources.facts import IndexedFacts
from harness.context_sources.generated import GeneratedContext
from harness.context_sources.web import WebContext
from harness.evaluation.engine import ask_rows
from harness.evaluation.msrag.study import Study
from harness.evaluation.msrag.tables import is_yes_no
from harness.evaluation.settings import Bootstrap, Settings
from harness.readers.llm import LlmReader
from harness.retrievers.bm25 import Bm25Retriever
from harness.rewriters.prompted import PromptRewriter
from harness.runtime.memo import Memo
from harness.runtime.provenance import construct
from harness.systems.msrag import Msrag, sampling_parts
from harness.tuning.msrag import Tuning
from models.msrag.answer_model import ANSWER_MODEL
from tests.harness.systems.test_msrag import WordReader
from tests.helpers.commands import command, refused
from tests.helpers.rerag_world import write_serving
from tests.helpers.river_corpus import write_index, write_questions
from tests.helpers.scripted_lm import ScriptedLm
from tests.helpers.studied import counted, rows_of, studied
from tests.helpers.table_rewriter import CountingRetriever, TableRewriter

QUESTIONS = [
    Question("1", "alba river", ("brune",)),  # web: its sub-question finds Brune, which ends in the ocean
    Question("2", "elbe mountain", ("mountain",)),
    Question("3", "calder river", ("dorn",)),
    Question("4", "zzz", ("lake",)),  # found nowhere
]
TABLE = {question.text: {"decomposition": [question.text]} for question in QUESTIONS} | {
    "alba river": {"decomposition": ["brune ends"]}
}


@pytest.fixture(scope="module")
def bm25(tmp_path_factory: pytest.TempPathFactory) -> Bm25Retriever:
    return Bm25Retriever(write_index(tmp_path_factory.mktemp("index")))


@pytest.fixture(scope="module")
def system(bm25: Bm25Retriever) -> Msrag:
    web, facts = WebContext(bm25, TableRewriter(TABLE)), IndexedFacts(bm25)
    return Msrag(WordReader("lake"), web=web, knowledge=facts)


def settings(folder: Path, layout: str = "hotpotqa", paper=None) -> Settings:
    return Settings(layout, "squad", (1,), paper, Bootstrap(100, 0), folder / "partial")


def test_rows_are_what_systems_answer(system: Msrag, tmp_path: Path, encoder_folder: str) -> None:
    findings = studied(Study(encoder=encoder_folder), system, QUESTIONS, settings(tmp_path, paper="hotpotqa"))
    # alone: the web ends in the ocean, mountain, dorn and finds nothing; the facts: brune, mountain, dorn, nothing;
    # memory: lake
    one, two, three = (rows_of(findings.tables, f"table {number}") for number in (1, 2, 3))
    assert (one["No-RAG"][0], one["SR-RAG"][0], two["No-RAG"][0], two["GPT-Retrieval"][0]) == (25.0, 75.0, 25.0, 75.0)
    assert one["MSRAG, most relevant context"] == three["MSRAG, most relevant context"]
    assert {"w/o GPT, most relevant context", "w/o Web, most relevant context"} < three.keys()
    assert three["w/o GPT, most relevant context"][0] == 75.0  # of two answers the web's; without it that from memory
    assert three["w/o Web, most relevant context"][0] == 100.0  # the last one from memory
    assert rows_of(findings.tables, "segmentation")["web alone"][0] == 50.0
    ours = system.answer(QUESTIONS)
    assert [answer.text for answer in findings.answers] == [answer.text for answer in ours]
    gold = [name for name in findings.variants if "oracle" in name]
    assert gold
    assert all("uses the gold answer" in name for name in gold)
    own = next(table for table in findings.tables if table.name == "table 1")
    assert own.paper["FLARE"][0].value == 14.9
    calls = {
        name: [answer.costs.get("retriever_calls", 0) for answer in own] for name, own in findings.variants.items()
    }
    both = [one + other for one, other in zip(calls["web alone"], calls["GPT-Retrieval"], strict=True)]
    assert [answer.costs.get("retriever_calls", 0) for answer in findings.answers] == both
    assert findings.paper == "MSRAG"


@pytest.mark.parametrize("in_order", [True, False])
def test_every_row_equals_a_system_that_is_asked_alone(
    bm25: Bm25Retriever, encoder_folder: str, in_order: bool
) -> None:
    searched = CountingRetriever(bm25)
    reader, lm = WordReader("lake"), ScriptedLm({"": ["the sea"]})
    web, facts = WebContext(searched, TableRewriter(TABLE), summarizer=lm), IndexedFacts(bm25)
    whole, once = WebContext(bm25, summarizer=lm), WebContext(bm25)
    system = Msrag(reader, web=web, knowledge=facts)
    without = {"w/o Web": ("generated", "none"), "w/o GPT": ("web", "none"), "w/o no-retrieval": ("web", "generated")}
    single = {"No-RAG": ("none",), "GPT-Retrieval": ("generated",), "web alone": ("web",)}
    alone = {row: Msrag(reader, None, web, facts, sources) for row, sources in single.items()}
    alone["SR-RAG"] = Msrag(reader, None, once, sources=("web",))
    for selector in EstimatedRelevance(), Oracle(encoder_folder):
        alone[f"MSRAG, {selector.name}"] = Msrag(reader, selector, web, facts)
        alone[f"no segmentation, {selector.name}"] = Msrag(reader, selector, whole, facts)
        alone |= {f"{row}, {selector.name}": Msrag(reader, selector, web, facts, own) for row, own in without.items()}
    rows = Study(encoder=encoder_folder).rows_of(system)
    assert {row for (row,) in rows} == {*alone}
    rows = dict(rows if in_order else reversed(rows.items()))
    found = ask_rows(rows, QUESTIONS, Memo())
    assert [query for queries, _ in searched.asked for query in queries].count("brune ends") == 1
    for (row,), answers in found.items():
        assert [*map(counted, answers)] == [*map(counted, alone[row].answer(QUESTIONS))], row


def test_questions_without_a_gold_answer_have_no_score(system: Msrag, tmp_path: Path, encoder_folder: str) -> None:
    asked = [*QUESTIONS[:3], replace(QUESTIONS[3], answers=(), support=("x",))]
    findings = studied(Study(encoder=encoder_folder), system, asked, settings(tmp_path))
    gold = next(row for row in findings.variants if row.startswith("MSRAG, oracle"))
    assert rows_of(findings.tables, "table 1")[gold][0] == pytest.approx(200 / 3)  # of three
    assert f"{gold}: 1 questions have no gold answer, and no score" in findings.facts
    asked = [replace(each, answers=(), support=("x",)) for each in QUESTIONS]
    findings = studied(Study(segmentation=False, encoder=encoder_folder), system, asked, settings(tmp_path))
    assert not [row for row in findings.variants if "oracle" in row or row == "SR-RAG"]
    assert not [table for table in findings.tables if table.name == "segmentation"]
    assert findings.answers[0].text == "brune"  # it is read all the same


def test_yes_and_no_are_scored_by_the_first_word(tmp_path: Path, encoder_folder: str) -> None:
    system = Msrag(WordReader("No, never"), sources=("none",))
    questions = [Question("1", "a?", ("no",)), Question("2", "b?", ("yes",)), Question("3", "c?", ("no",))]
    findings = studied(Study(encoder=encoder_folder), system, questions, settings(tmp_path, "strategyqa", "strategyqa"))
    table = rows_of(findings.tables, "table 1")
    assert table["No-RAG"][2] == pytest.approx(200 / 3)
    assert table["No-RAG"][0] == 0
    own = next(table for table in findings.tables if table.name == "table 1")
    assert [None if cell is None else cell.value for cell in own.paper["SR-RAG"]] == [None, None, 65.4]


def test_questions_without_gold_answers_are_not_yes_or_no() -> None:
    assert not is_yes_no([Question("1", "a?")])
    assert is_yes_no([Question("1", "a?"), Question("2", "b?", ("no",))])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path], encoder_folder: str) -> Path:
    folder = tmp_path_factory.mktemp("msrag-study")
    write_questions(folder)
    index = {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": str(write_index(folder))}}
    serving = str(write_serving(checkpoints["t5"], folder / "serving"))
    system = {
        "reader": {"class_path": "harness.readers.t5.ContextReader", "init_args": {"serving": serving}},
        "web": {"class_path": "harness.context_sources.web.WebContext", "init_args": {"retriever": index}},
        "knowledge": {"class_path": "harness.context_sources.facts.IndexedFacts", "init_args": {"retriever": index}},
    }
    config = {"system": {"class_path": "harness.systems.msrag.Msrag", "init_args": system}}
    (folder / "msrag.yaml").write_text(json.dumps(config))
    return folder


def evaluate(place: Path, out: str, *more: str):
    options = ("--config", "msrag.yaml", "--questions", "questions.json", "--resamples", "50", "--out", out)
    return command(place, "infer.py", "evaluate", *options, *more)


def test_the_command_writes_the_report_and_ask_shows_all_answers(place: Path, encoder_folder: str) -> None:
    ended = evaluate(place, "report", "--study.encoder", encoder_folder)
    assert ended.code == 0, ended.err
    assert "which uses the GOLD answer" in ended.out
    record = json.loads((place / "report/questions.jsonl").read_text().splitlines()[0])
    assert [each["source"] for each in record["notes"]["sources"]] == ["web", "generated", "none"]
    shown = command(place, "infer.py", "ask", "--config", "msrag.yaml", "--question", "alba river")
    assert shown.code == 0, shown.err
    assert "Selector: most relevant context" in shown.out
    for code, part, arguments in (
        (2, "sources contains 'gpt'", ("evaluate", "--out", "x", "--system.init_args.sources", "[web,gpt]")),
        (2, "study.runs", ("evaluate", "--out", "x", "--study.runs", "3")),  # no part samples
        (2, "study.runs", ("evaluate", "--out", "x", "--study.runs", "0")),
        (2, "msrag.yaml exists and is not a fitted selector", ("tune", "--out", "msrag.yaml")),
        (2, "tuning.penalty", ("tune", "--out", "x", "--tuning.penalty", "0")),
        (2, "cannot be learned", ("tune", "--out", "x", "--tuning.encoder", encoder_folder)),  # all answers are wrong
    ):
        word, *more = arguments
        typed = ("infer.py", word, "--config", "msrag.yaml", "--questions", "questions.json", *more)
        refused(command(place, *typed), code, part)
    assert not (place / "x").exists()


def test_the_fitted_selection_chooses(system: Msrag, tmp_path: Path, encoder_folder: str) -> None:
    file = tmp_path / "selector.json"
    learned = Msrag(system.reader, LearnedSelector(file), *system.sources.values())  # it names what is yet to be fitted
    (line,) = Tuning(encoder=encoder_folder).tune(learned, QUESTIONS, file, settings(tmp_path))
    model = ANSWER_MODEL.read(file)
    assert model.encoder == encoder_folder
    assert model.fitted["questions"] == 4
    assert line.startswith("the choice, fitted on 4 questions; EM: on other questions ")
    assert line.endswith("web alone 50.00 %, generated alone 75.00 %, none alone 25.00 %")
    chosen = learned.answer(QUESTIONS)
    right = sum(answer.text in question.answers for answer, question in zip(chosen, QUESTIONS, strict=True))
    assert f"on these {25 * right:.2f} %" in line


SAMPLED = [
    Question("1", "alba river", ("lake",), kind="river"),
    Question("2", "elbe mountain", ("sea",), kind="peak"),
]
MEMORY = "from your own knowledge"  # words of the prompt
BY_SAMPLE = {"alba river": ("lake", "lake", "sea"), "elbe mountain": ("sea", "dorn", "dorn")}


class SampledLm:
    """Replies from memory by the number of the sample; it stops once at a given sample."""

    name = "sampled"
    chats: list[Chat] = []  # noqa: RUF012  # of all
    stops_at: int | None = None

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat."""
        if any(chat.sample == SampledLm.stops_at for chat in chats):
            SampledLm.stops_at = None
            raise KeyboardInterrupt
        SampledLm.chats += chats
        return [Reply(f"Answer: {self._answer(chat)}") for chat in chats]

    @staticmethod
    def _answer(chat: Chat) -> str:
        text = chat.messages[-1].content
        asked = next(question for question in BY_SAMPLE if question in text)
        return BY_SAMPLE[asked][chat.sample] if MEMORY in text else "nothing"


@pytest.fixture
def sampled(tmp_path: Path, encoder_folder: str) -> Msrag:
    SampledLm.chats, SampledLm.stops_at = [], None
    reader = construct(LlmReader, llm=construct(SampledLm), temperature=0.7)
    facts = construct(IndexedFacts, retriever=construct(Bm25Retriever, index=write_index(tmp_path)))
    system: Msrag = construct(Msrag, reader=reader, knowledge=facts, sources=("generated", "none"))
    return system


def of_runs(sampled: Msrag, folder: Path, encoder_folder: str, runs: int):
    return studied(Study(encoder=encoder_folder, runs=runs), sampled, SAMPLED, settings(folder))


def test_figures_are_means_over_runs_with_other_samples(sampled: Msrag, tmp_path: Path, encoder_folder: str) -> None:
    findings = of_runs(sampled, tmp_path, encoder_folder, 3)
    assert rows_of(findings.tables, "table 2")["No-RAG"][0] == 50.0  # lake twice of three times, sea once
    runs = rows_of(findings.tables, "runs")["No-RAG"]
    assert runs[:3] == [100.0, 50.0, 0.0]
    assert runs[3:5] == [50.0, 50.0]  # mean, standard deviation
    assert [answer.text for answer in findings.variants["No-RAG"]] == ["lake", "sea"]  # of the first run
    asked = [chat.sample for chat in SampledLm.chats if MEMORY in chat.messages[-1].content]
    assert asked == [0, 0, 1, 1, 2, 2]
    assert sampled.reader.sample == 0
    assert findings.settings["runs"] == 3
    one = of_runs(sampled, tmp_path, encoder_folder, 1)
    assert rows_of(one.tables, "table 2")["No-RAG"][0] == 100.0
    assert not [table for table in one.tables if table.name == "runs"]


def test_an_interrupted_run_goes_on_and_asks_no_stored_answer_again(
    sampled: Msrag, tmp_path: Path, encoder_folder: str
) -> None:
    SampledLm.stops_at = 2
    with pytest.raises(KeyboardInterrupt):
        of_runs(sampled, tmp_path, encoder_folder, 3)
    assert sampled.reader.sample == 0  # not that of the run that stopped
    before = len(SampledLm.chats)
    assert before == 8  # two runs of two questions from two sources
    findings = of_runs(sampled, tmp_path, encoder_folder, 3)
    assert len(SampledLm.chats) == before + 4
    assert rows_of(findings.tables, "runs")["No-RAG"][:3] == [100.0, 50.0, 0.0]


def test_parts_sample_with_a_temperature_alone(tmp_path: Path) -> None:
    llm, bm25 = SampledLm(), Bm25Retriever(write_index(tmp_path))
    rewriter = PromptRewriter(llm, "sub_questions", 3, temperature=1.0)
    web = WebContext(bm25, rewriter, ("sub_questions",), temperature=1.0)
    known = GeneratedContext(llm, temperature=0.5)
    assert sampling_parts([LlmReader(llm), web, known]) == [known, rewriter]  # the web has no summarizer
    summarized = WebContext(bm25, summarizer=llm, temperature=1.0)
    assert sampling_parts([LlmReader(llm, temperature=1.0), summarized, IndexedFacts(bm25)])[1:] == [summarized]
