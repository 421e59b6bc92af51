"""MSRAG's study through the command line.

Rows, figures by hand, sources, the fitted selection, StrategyQA, resuming.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from tests.helpers.commands import command, done, refused
from tests.helpers.rerag_world import write_serving
from tests.helpers.river_corpus import write_index, write_questions
from tests.helpers.scripted_lm import ScriptedLm
from tests.helpers.studied import counted, rows_of, studied
from tests.helpers.table_rewriter import CountingRetriever, TableRewriter

# web: a sub-question of the first finds Brune, which ends in the ocean; the last is found nowhere
GOLD = {"alba river": "brune", "elbe mountain": "mountain", "calder river": "dorn", "zzz": "lake"}
QUESTIONS = [Question(str(number), text, (gold,)) for number, (text, gold) in enumerate(GOLD.items(), start=1)]
TABLE = {text: {"decomposition": [text]} for text in GOLD} | {"alba river": {"decomposition": ["brune ends"]}}


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
    # of two answers the web's, without it that from memory; the last one from memory
    assert [three[f"{row}, most relevant context"][0] for row in ("w/o GPT", "w/o Web")] == [75.0, 100.0]
    assert rows_of(findings.tables, "segmentation")["web alone"][0] == 50.0
    assert [answer.text for answer in findings.answers] == [answer.text for answer in system.answer(QUESTIONS)]
    gold = [name for name in findings.variants if "oracle" in name]
    assert gold
    assert all("uses the gold answer" in name for name in gold)
    own = next(table for table in findings.tables if table.name == "table 1")
    assert (own.paper["FLARE"][0].value, findings.paper) == (14.9, "MSRAG")
    calls = {
        name: [answer.costs.get("retriever_calls", 0) for answer in own]
        for name, own in {**findings.variants, "own": findings.answers}.items()
    }
    both = [one + other for one, other in zip(calls["web alone"], calls["GPT-Retrieval"], strict=True)]
    assert calls["own"] == both


@pytest.mark.parametrize("in_order", [True, False])
def test_every_row_equals_a_system_alone(bm25: Bm25Retriever, encoder_folder: str, in_order: bool) -> None:
    searched, reader, lm = CountingRetriever(bm25), WordReader("lake"), ScriptedLm({"": ["the sea"]})
    web, facts = WebContext(searched, TableRewriter(TABLE), summarizer=lm), IndexedFacts(bm25)
    whole, once = WebContext(bm25, summarizer=lm), WebContext(bm25)
    without = {"w/o Web": ("generated", "none"), "w/o GPT": ("web", "none"), "w/o no-retrieval": ("web", "generated")}
    single = {"No-RAG": ("none",), "GPT-Retrieval": ("generated",), "web alone": ("web",)}
    alone = {row: Msrag(reader, None, web, facts, sources) for row, sources in single.items()}
    alone["SR-RAG"] = Msrag(reader, None, once, sources=("web",))
    for selector in EstimatedRelevance(), Oracle(encoder_folder):
        alone[f"MSRAG, {selector.name}"] = Msrag(reader, selector, web, facts)
        alone[f"no segmentation, {selector.name}"] = Msrag(reader, selector, whole, facts)
        alone |= {f"{row}, {selector.name}": Msrag(reader, selector, web, facts, own) for row, own in without.items()}
    rows = Study(encoder=encoder_folder).rows_of(Msrag(reader, web=web, knowledge=facts))
    assert {row for (row,) in rows} == {*alone}
    found = ask_rows(dict(rows if in_order else reversed(rows.items())), QUESTIONS, Memo())
    assert [query for queries, _ in searched.asked for query in queries].count("brune ends") == 1
    for (row,), answers in found.items():
        assert [*map(counted, answers)] == [*map(counted, alone[row].answer(QUESTIONS))], row


def test_questions_without_a_gold_answer_have_no_score(system: Msrag, tmp_path: Path, encoder_folder: str) -> None:
    bare = [replace(each, answers=(), support=("x",)) for each in QUESTIONS]
    findings = studied(Study(encoder=encoder_folder), system, [*QUESTIONS[:3], bare[3]], settings(tmp_path))
    gold = next(row for row in findings.variants if row.startswith("MSRAG, oracle"))
    assert rows_of(findings.tables, "table 1")[gold][0] == pytest.approx(200 / 3)  # of three
    assert f"{gold}: 1 questions have no gold answer, and no score" in findings.facts
    findings = studied(Study(segmentation=False, encoder=encoder_folder), system, bare, settings(tmp_path))
    assert not [row for row in findings.variants if "oracle" in row or row == "SR-RAG"]
    assert not [table for table in findings.tables if table.name == "segmentation"]
    assert findings.answers[0].text == "brune"  # it is read all the same


def test_yes_and_no_are_scored_by_the_first_word(tmp_path: Path, encoder_folder: str) -> None:
    system = Msrag(WordReader("No, never"), sources=("none",))
    questions = [Question(str(n), "?", (gold,)) for n, gold in enumerate(("no", "yes", "no"))]
    findings = studied(Study(encoder=encoder_folder), system, questions, settings(tmp_path, "strategyqa", "strategyqa"))
    found = rows_of(findings.tables, "table 1")["No-RAG"]
    assert (found[0], found[2]) == (0, pytest.approx(200 / 3))
    own = next(table for table in findings.tables if table.name == "table 1")
    assert [None if cell is None else cell.value for cell in own.paper["SR-RAG"]] == [None, None, 65.4]
    unknown = Question("1", "a?")
    assert (is_yes_no([unknown]), is_yes_no([unknown, questions[0]])) == (False, True)


def part(path: str, **options: Any) -> dict[str, Any]:
    return {"class_path": f"harness.{path}", "init_args": options}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path], encoder_folder: str) -> Path:
    folder = tmp_path_factory.mktemp("msrag-study")
    write_questions(folder)
    index = part("retrievers.bm25.Bm25Retriever", index=str(write_index(folder)))
    reader = part("readers.t5.ContextReader", serving=str(write_serving(checkpoints["t5"], folder / "serving")))
    web = part("context_sources.web.WebContext", retriever=index)
    facts = part("context_sources.facts.IndexedFacts", retriever=index)
    system = part("systems.msrag.Msrag", reader=reader, web=web, knowledge=facts)
    (folder / "msrag.yaml").write_text(json.dumps({"system": system}))
    return folder


def test_the_command_writes_the_report_and_ask_shows_all_answers(place: Path, encoder_folder: str) -> None:
    questions = ("--questions", "questions.json")
    for line, said in (
        (("evaluate", *questions, "--out", "report", "--study.encoder", encoder_folder), "which uses the GOLD answer"),
        (("ask", "--question", "alba river"), "Selector: most relevant context"),
    ):
        ended = done(place, "infer.py", *line, "--config", "msrag.yaml", *(["--resamples", "50"] * (line[0] != "ask")))
        assert said in ended.out
    record = json.loads((place / "report/questions.jsonl").read_text().splitlines()[0])
    assert [each["source"] for each in record["notes"]["sources"]] == ["web", "generated", "none"]
    for message, word, *more in (
        ("sources contains 'gpt'", "evaluate", "--out", "x", "--system.init_args.sources", "[web,gpt]"),
        ("study.runs", "evaluate", "--out", "x", "--study.runs", "3"),  # no part samples
        ("study.runs", "evaluate", "--out", "x", "--study.runs", "0"),
        ("msrag.yaml exists and is not a fitted selector", "tune", "--out", "msrag.yaml"),
        ("tuning.penalty", "tune", "--out", "x", "--tuning.penalty", "0"),
        ("cannot be learned", "tune", "--out", "x", "--tuning.encoder", encoder_folder),  # all answers are wrong
    ):
        refused(command(place, "infer.py", word, "--config", "msrag.yaml", *questions, *more), 2, message)
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


SAMPLED = [Question("1", "alba river", ("lake",), kind="river"), Question("2", "elbe mountain", ("sea",), kind="peak")]
MEMORY = "from your own knowledge"  # words of the prompt
BY_SAMPLE = {"alba river": ("lake", "lake", "sea"), "elbe mountain": ("sea", "dorn", "dorn")}


class SampledLm(ScriptedLm):
    """Replies from memory by the number of the sample; it stops once at a given sample."""

    name = "sampled"

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.stops_at: int | None = None

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat."""
        if any(chat.sample == self.stops_at for chat in chats):
            self.stops_at = None
            raise KeyboardInterrupt
        return super().reply(chats)

    @staticmethod
    def _answer(chat: Chat) -> str:
        text = chat.messages[-1].content
        asked = next(question for question in BY_SAMPLE if question in text)
        return f"Answer: {BY_SAMPLE[asked][chat.sample] if MEMORY in text else 'nothing'}"


def test_figures_are_means_over_runs_with_other_samples(tmp_path: Path, encoder_folder: str) -> None:
    """An interrupted run goes on."""

    def of_runs(runs: int) -> Any:
        return studied(Study(encoder=encoder_folder, runs=runs), sampled, SAMPLED, settings(tmp_path))

    llm = construct(SampledLm)
    reader = construct(LlmReader, llm=llm, temperature=0.7)
    facts = construct(IndexedFacts, retriever=construct(Bm25Retriever, index=write_index(tmp_path)))
    sampled = construct(Msrag, reader=reader, knowledge=facts, sources=("generated", "none"))
    llm.stops_at = 2
    with pytest.raises(KeyboardInterrupt):
        of_runs(3)
    assert sampled.reader.sample == 0  # not that of the run that stopped
    assert len([chat for call in llm.asked for chat in call]) == 8  # two runs of two questions from two sources
    findings = of_runs(3)
    asked = [chat for call in llm.asked for chat in call]
    assert len(asked) == 8 + 4  # no stored answer is asked for again
    assert [chat.sample for chat in asked if MEMORY in chat.messages[-1].content] == [0, 0, 1, 1, 2, 2]
    assert rows_of(findings.tables, "table 2")["No-RAG"][0] == 50.0  # lake twice of three times, sea once
    # of each run, mean, standard deviation
    assert rows_of(findings.tables, "runs")["No-RAG"][:5] == [100.0, 50.0, 0.0, 50.0, 50.0]
    assert [answer.text for answer in findings.variants["No-RAG"]] == ["lake", "sea"]  # of the first run
    assert (sampled.reader.sample, findings.settings["runs"]) == (0, 3)
    one = of_runs(1)
    assert rows_of(one.tables, "table 2")["No-RAG"][0] == 100.0
    assert not [table for table in one.tables if table.name == "runs"]


def test_parts_sample_with_a_temperature_alone(bm25: Bm25Retriever) -> None:
    llm = SampledLm()
    rewriter = PromptRewriter(llm, "sub_questions", 3, temperature=1.0)
    web = WebContext(bm25, rewriter, ("sub_questions",), temperature=1.0)
    known = GeneratedContext(llm, temperature=0.5)
    assert sampling_parts([LlmReader(llm), web, known]) == [known, rewriter]  # the web has no summarizer
    summarized = WebContext(bm25, summarizer=llm, temperature=1.0)
    assert sampling_parts([LlmReader(llm, temperature=1.0), summarized, IndexedFacts(bm25)])[1:] == [summarized]
