"""DR-RAG's data module: a step is divided whole."""

import json
from functools import partial
from pathlib import Path

import pytest

from common.errors import DataError
from datamodules.drrag import DrRagData
from datamodules.examples.data_files import QuestionDataFile
from tests.conftest import hotpot_rows
from tests.helpers.tiny_runs import divided_steps, set_up
from trainers.drrag import DrRagTrainer


def load(checkpoints: dict[str, Path], file: Path, rank: int = 0, ranks: int = 1, accumulate: int = 1) -> DrRagData:
    """A data module on a rank."""
    module = DrRagTrainer(str(checkpoints["bert"]), max_tokens=96).load()
    data = DrRagData([QuestionDataFile(str(file), "hotpotqa")], validation_fraction=0.3, tokens_per_step=900)
    return set_up(data, module, rank, ranks, accumulate)


def test_a_step_is_divided_among_ranks_and_accumulated_batches(checkpoints: dict[str, Path], hotpot_file: Path) -> None:
    data = load(checkpoints, hotpot_file)
    examples = data._epoch(0).examples
    seen: list[int] = []
    for whole, batches in divided_steps(partial(load, checkpoints, hotpot_file), ranks=2, accumulate=3):
        for batch in batches:
            assert batch.step_triples == len(whole.rows_P)
            assert batch.labels_P.tolist() == [float(examples[row].positive) for row in batch.rows_P.tolist()]
        real = [row for batch in batches if batch.weights_P.any() for row in batch.rows_P.tolist()]
        assert sorted(real) == sorted(whole.rows_P.tolist())
        seen += real
    assert sorted(seen) == list(range(len(examples)))
    assert data.units_per_step == pytest.approx(len(examples) / data.steps_per_epoch)


@pytest.mark.parametrize("part", ["train", "validation"])
def test_the_file_that_lacks_negatives_is_named(
    part: str, checkpoints: dict[str, Path], hotpot_file: Path, tmp_path: Path
) -> None:
    lacking = tmp_path / "lacking.json"
    gold_only = [
        {**row, "context": [each for each in row["context"] if each[0] in dict(row["supporting_facts"])]}
        for row in hotpot_rows(12, seed=1)
    ]
    single_gold = [{**row, "supporting_facts": row["supporting_facts"][:1]} for row in hotpot_rows(12, seed=1)]
    lacking.write_text(json.dumps(single_gold if part == "train" else gold_only))
    files = {name: [QuestionDataFile(str(hotpot_file), "hotpotqa")] for name in ("train", "validation")}
    files[part] = [QuestionDataFile(str(lacking), "hotpotqa")]
    data = DrRagData(**files, tokens_per_step=900)
    with pytest.raises(DataError, match=rf"validation triples, from {lacking}: a question needs"):
        set_up(data, DrRagTrainer(str(checkpoints["bert"]), max_tokens=96).load())
