"""`infer.py expand` on a small BM25 index with a real classifier of chains: the file, resuming, and training on it."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from datamodules.drrag import DrRagData
from datamodules.examples.chains import ChainSampling
from datamodules.examples.splits import QuestionSource
from datamodules.formats.expansions import Expansion, read_expansions
from harness.commands import expand as command
from harness.retrievers.bm25 import Bm25Retriever
from harness.runtime.provenance import construct
from harness.selection.beam import BeamOptions
from harness.strategies.drrag_beam import DrRagBeam
from models.drrag.triple_classifier import KIND, TripleClassifier, text_format_of
from models.serving_manifest import write_manifest
from tests.helpers.river_corpus import PASSAGES, QUESTIONS, write_index, write_questions
from tests.helpers.tiny_runs import set_up
from trainers.drrag import DrRagTrainer


@pytest.fixture
def strategy(tmp_path: Path, checkpoints: dict[str, Path]) -> DrRagBeam:
    """A beam that the command line could have built, with an untrained classifier."""
    torch.manual_seed(0)
    network = TripleClassifier.build(str(checkpoints["bert"]), 96)
    serving = tmp_path / "serving"
    serving.mkdir()
    network.save(serving)
    write_manifest(serving, KIND, text_format_of(3), 96, threshold=0.5, attention="auto", most_documents=3)
    retriever = construct(Bm25Retriever, index=write_index(tmp_path))
    beam = BeamOptions(width=2, depth=3, most_hops=3)
    return construct(DrRagBeam, retriever=retriever, serving=serving, beam=beam, device="cpu")


def test_the_file_has_the_extended_chains_and_a_training_takes_its_negatives_from_it(
    strategy: DrRagBeam, tmp_path: Path, checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    questions, out = write_questions(tmp_path), tmp_path / "mined/beam.jsonl"
    command.expand(strategy, str(questions), out, candidates=2)
    found = read_expansions([str(out)])
    assert list(found) == ["q1", "q2", "q3"]
    extended = sum(map(len, found.values()))
    assert f"{out}: {extended} chains of 3 questions." in capsys.readouterr().err
    for expansions in found.values():
        chains = [tuple(p.id for p in each.chain) for each in expansions]
        assert chains[0] == ()
        assert len(set(chains)) == len(chains) <= 1 + 2 + 2
        assert all(len(each.candidates) <= 2 and not {*each.chain} & {*each.candidates} for each in expansions)
    assert strategy.expansions(["alba river"], 2) == [found["q1"]]
    (all_of_them,) = strategy.expansions(["alba river"], 99)
    assert all_of_them[0].candidates[:2] == found["q1"][0].candidates  # the best scored ones

    (tmp_path / "validation").mkdir()
    held_out = write_questions(tmp_path / "validation", QUESTIONS[:1])
    data = DrRagData(
        [QuestionSource("hotpotqa", str(questions))], [QuestionSource("hotpotqa", str(held_out))],
        expansions=[str(out)], chains=ChainSampling(most_documents=3, candidates=1, mined_share=1.0),
    )  # fmt: skip
    assert str(out) in data.files
    set_up(data, DrRagTrainer(str(checkpoints["bert"]), max_tokens=96))
    for asked, examples in ((["q1"], data.validation_triples), (["q2", "q3"], data._epoch(0).examples)):
        first_hops = {e.texts[1] for e in examples if len(e.texts) == 2 and not e.positive}
        met = {p for id_ in asked for p in found[id_][0].candidates}
        assert first_hops
        assert first_hops <= met


def test_an_interrupted_run_goes_on(strategy: DrRagBeam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions, out = str(write_questions(tmp_path)), tmp_path / "beam.jsonl"
    asked: list[str] = []
    expand_all = DrRagBeam.expansions

    def counted(stop_at: str, self: DrRagBeam, texts: Sequence[str], candidates: int) -> list[list[Expansion]]:
        if stop_at in texts:
            raise KeyboardInterrupt
        asked.extend(texts)
        return expand_all(self, texts, candidates)

    monkeypatch.setattr(command, "QUESTIONS_AT_ONCE", 1)
    monkeypatch.setattr(DrRagBeam, "expansions", lambda *given: counted("calder river", *given))
    with pytest.raises(KeyboardInterrupt):
        command.expand(strategy, questions, out)
    assert not out.exists()
    monkeypatch.setattr(DrRagBeam, "expansions", lambda *given: counted("", *given))
    command.expand(strategy, questions, out)
    assert asked == ["alba river", "calder river", "elbe fulda mountain"]  # none is asked twice
    whole = out.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("beam.jsonl")) == ["beam.jsonl"]
    command.expand(strategy, questions, out)
    assert out.read_bytes() == whole
    command.expand(strategy, questions, out, limit=1)
    assert read_expansions([str(out)]).keys() == {"q1"}
    assert PASSAGES["Alba"] in read_expansions([str(out)])["q1"][0].candidates
