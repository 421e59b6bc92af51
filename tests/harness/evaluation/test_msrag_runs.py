"""MSRAG's study over several runs of sampling: means, deviations, other samples in each run, resuming, refusals.

Tables by kind of question.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from common.chat import Chat, Reply
from common.records import Question
from harness.choice.agreement import Agreement
from harness.evaluation.msrag.asking import sampling_parts
from harness.evaluation.msrag.study import Study
from harness.readers.llm import LlmReader
from harness.retrievers.bm25 import Bm25Retriever
from harness.rewriters.prompted import PromptRewriter
from harness.runtime.provenance import construct
from harness.sources.facts import IndexedFacts
from harness.sources.generated import GeneratedContext
from harness.sources.web import WebContext
from harness.strategies.msrag import Msrag
from tests.harness.evaluation.test_msrag_study import cells, evaluate, place, settings
from tests.helpers.commands import refused
from tests.helpers.river_corpus import write_index
from tests.helpers.studied import studied

__all__ = ["place"]  # a fixture
QUESTIONS = [
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
def strategy(tmp_path: Path, encoder_folder: str) -> Msrag:
    SampledLm.chats, SampledLm.stops_at = [], None
    reader = construct(LlmReader, llm=construct(SampledLm), temperature=0.7)
    facts = construct(IndexedFacts, retriever=construct(Bm25Retriever, index=write_index(tmp_path)))
    selector = construct(Agreement, encoder=encoder_folder, device="cpu")
    system: Msrag = construct(Msrag, reader=reader, selector=selector, knowledge=facts, sources=("generated", "none"))
    return system


def measured(strategy: Msrag, folder: Path, encoder_folder: str, runs: int):
    return studied(Study(encoder=encoder_folder, runs=runs), strategy, QUESTIONS, settings(folder))


def test_figures_are_means_over_runs_with_other_samples(strategy: Msrag, tmp_path: Path, encoder_folder: str) -> None:
    findings = measured(strategy, tmp_path, encoder_folder, 3)
    assert cells(findings, "table 2")["No-RAG"][0] == 50.0  # lake twice of three times, sea once
    runs = cells(findings, "runs")["No-RAG"]
    assert runs[:3] == [100.0, 50.0, 0.0]
    assert runs[3:5] == [50.0, 50.0]  # mean, standard deviation
    assert [answer.text for answer in findings.variants["No-RAG"]] == ["lake", "sea"]  # of the first run
    asked = [chat.sample for chat in SampledLm.chats if MEMORY in chat.messages[-1].content]
    assert asked == [0, 0, 1, 1, 2, 2]
    assert strategy.reader.sample == 0
    assert findings.settings["runs"] == 3
    assert "Mean of 3 runs" in findings.notes


def test_one_run_has_no_table_of_runs(strategy: Msrag, tmp_path: Path, encoder_folder: str) -> None:
    findings = measured(strategy, tmp_path, encoder_folder, 1)
    assert cells(findings, "table 2")["No-RAG"][0] == 100.0
    assert not [table for table in findings.tables if table.name == "runs"]
    assert "Mean of" not in findings.notes


def test_an_interrupted_run_goes_on_and_asks_no_stored_answer_again(
    strategy: Msrag, tmp_path: Path, encoder_folder: str
) -> None:
    SampledLm.stops_at = 2
    with pytest.raises(KeyboardInterrupt):
        measured(strategy, tmp_path, encoder_folder, 3)
    assert strategy.reader.sample == 0  # not that of the run that stopped
    before = len(SampledLm.chats)
    assert before == 8  # two runs of two questions from two sources
    findings = measured(strategy, tmp_path, encoder_folder, 3)
    assert len(SampledLm.chats) == before + 4
    assert cells(findings, "runs")["No-RAG"][:3] == [100.0, 50.0, 0.0]


def test_parts_sample_with_a_temperature_alone(tmp_path: Path) -> None:
    llm, bm25 = SampledLm(), Bm25Retriever(write_index(tmp_path))
    rewriter = PromptRewriter(llm, "sub_questions", 3, temperature=1.0)
    web = WebContext(bm25, rewriter, ("sub_questions",), temperature=1.0)
    known = GeneratedContext(llm, temperature=0.5)
    assert sampling_parts([LlmReader(llm), web, known]) == [known, rewriter]  # the web has no summarizer
    summarized = WebContext(bm25, summarizer=llm, temperature=1.0)
    assert sampling_parts([LlmReader(llm, temperature=1.0), summarized, IndexedFacts(bm25)])[1:] == [summarized]


def test_several_equal_runs_are_refused(place: Path) -> None:
    line = refused(evaluate(place, "x", "--study.runs", "3"), 2)
    assert "study.runs is 3, and no part of the system samples" in line
    assert "study.runs: " in refused(evaluate(place, "x", "--study.runs", "0"), 2)
    assert not (place / "x").exists()
