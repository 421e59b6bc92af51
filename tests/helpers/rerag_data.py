"""Questions in FiD's layout on invented names, and RE-RAG's data of them outside Lightning's trainer."""

import json
import random
from pathlib import Path

from datamodules.examples.data_files import QuestionDataFile
from datamodules.rerag import ReRagData
from tests.conftest import NAMES
from tests.helpers.tiny_runs import set_up
from trainers.rerag import ReRagTrainer


def fid_rows(count: int, seed: int = 0) -> list[dict]:
    """Questions in FiD's layout with 3 to 6 contexts: the gold one says who the director of the asked name is."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        asked, answer, *others = rng.sample(NAMES, 7)
        contexts = [(asked, f"the director of {asked} is {answer} .", True)]
        for o in others[: rng.randint(2, 5)]:
            contexts.append((o, f"{o} was born in the city of {rng.choice(NAMES)} . " * rng.randint(1, 3), False))
        rng.shuffle(contexts)
        ctxs = [{"title": title, "text": text, "isgold": gold} for title, text, gold in contexts]
        question = f"who is the director of {asked}"
        rows.append({"id": f"{seed}-{number}", "question": question, "answers": [answer], "ctxs": ctxs})
    return rows


def context_data(file: Path, module: ReRagTrainer, ranks: int = 1, rank: int = 0, **options: object) -> ReRagData:
    """RE-RAG's data of a file in FiD's layout, set up for a module and one of some ranks, outside the trainer."""
    given = {"contexts": 5, "context_sampling": "sampled", "labels": "gold", "questions_per_step": 6}
    given |= {"tokens_per_bucket": 250, "validation_fraction": 0.3, **options}
    return set_up(ReRagData([QuestionDataFile(str(file), "fid")], **given), module, rank, ranks)


class ReRagBench:
    """Makes trainers that start from the tests' models, and their data of a file `fid.json`.

    Args:
        folder: Of the file.
        checkpoints: The models by their names.
    """

    def __init__(self, folder: Path, checkpoints: dict[str, Path]) -> None:
        self.file, self.checkpoints = folder / "fid.json", checkpoints

    def trainer(self, estimator: str | None = "t5", generator: str | None = "t5", **options: object) -> ReRagTrainer:
        """A trainer of these models, loaded."""
        starts = [name and str(self.checkpoints[name]) for name in (estimator, generator)]
        return ReRagTrainer(*starts, **{"max_tokens": 96, **options}).load()

    def data(self, module: ReRagTrainer, rows=12, ranks: int = 1, rank: int = 0, **options: object) -> ReRagData:
        """See `context_data`; of so many questions, or of these rows."""
        self.file.write_text(json.dumps(fid_rows(rows) if isinstance(rows, int) else rows))
        return context_data(self.file, module, ranks, rank, **options)
