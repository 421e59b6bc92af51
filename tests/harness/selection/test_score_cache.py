"""Saved pair scores: two processes share a file, a killed one harms nobody, and files of another form are told."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.selection.score_cache import ScoreCache, Triple
from tests.helpers.river_corpus import PASSAGES, TableScorer

ROOT = Path(__file__).parents[3]
SCORE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from common.records import Passage
from harness.selection import score_cache
score_cache._PAIRS_PER_CHUNK = 8
class Scorer:
    def probabilities(self, triples):
        return [len(question) / 1000 for question, *_ in triples]
cache = score_cache.ScoreCache(Scorer(), Path(sys.argv[2]))
passages = [Passage.of(f"t{i}", f"text {i}") for i in range(9)]
sys.stdin.readline()
for question in sys.argv[3].split():
    cache.probabilities([(question, d1, d2) for d1 in passages for d2 in passages])
print(cache.memo.count)
"""


def triples(question: str, count: int) -> list[Triple]:
    pairs = itertools.permutations(PASSAGES.values(), 2)
    return [(question, d1, d2) for d1, d2 in itertools.islice(pairs, count)]


def test_two_processes_share_a_file(tmp_path: Path) -> None:
    file = tmp_path / "scores" / "scores-0.jsonl"
    asked = [[f"q{i}" + "x" * i for i in range(12)], [f"q{i}" + "x" * i for i in range(6, 18)]]
    processes = [
        subprocess.Popen([sys.executable, "-c", SCORE, str(ROOT), str(file), " ".join(questions)],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for questions in asked
    ]  # fmt: skip
    for each in processes:  # both have loaded the file, which does not exist yet
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    for each in processes:
        each.communicate(timeout=60)
        assert each.returncode == 0
    saved = {
        key: score for line in file.read_text().splitlines()[1:] for key, score in json.loads(line)[1]["values"].items()
    }
    assert len(saved) == 18 * 9 * 9
    assert len(set(saved.values())) == len({len(question) for questions in asked for question in questions})
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_scores_of_another_process_are_taken_over_but_never_change_a_score_in_use(tmp_path: Path) -> None:
    file = tmp_path / "scores.jsonl"
    one, other = ScoreCache(TableScorer(), file), ScoreCache(TableScorer(("Alba", "Brune")), file)
    alba, brune = PASSAGES["Alba"], PASSAGES["Brune"]
    both = [("q", alba, brune), ("q", brune, alba)]
    assert one.probabilities(both[:1]) == [0.1]
    assert other.probabilities([*both, ("r", brune, alba)]) == [0.9, 0.1, 0.1]  # had loaded no score
    assert one.probabilities([("s", alba, brune)]) == [0.1]
    asked = len(one.scorer.asked)
    assert one.probabilities([*both, ("r", brune, alba)]) == [0.1] * 3
    assert len(one.scorer.asked) == asked  # they came from the file
    assert ScoreCache(TableScorer(), file).memo.count == one.memo.count == 5


def test_a_line_torn_by_a_killed_process_does_not_spoil_the_file_of_a_running_one(tmp_path: Path) -> None:
    file = tmp_path / "scores.jsonl"
    running = ScoreCache(TableScorer(), file)
    running.probabilities(triples("q", 3))
    with file.open("ab") as killed:
        killed.write(b'{"seconds": 1.0, "pai')
    running.probabilities(triples("r", 3))
    again = ScoreCache(TableScorer(), file)
    assert again.memo.count == 6
    assert again.probabilities([*triples("q", 3), *triples("r", 3)]) == [0.1] * 6
    assert not again.scorer.asked


def test_scores_of_another_classifier_are_not_used(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    ScoreCache(TableScorer(), tmp_path / "scores-a.jsonl").probabilities(triples("q", 2))
    (tmp_path / "scores-a.jsonl").rename(tmp_path / "scores-b.jsonl")
    assert ScoreCache(TableScorer(), tmp_path / "scores-b.jsonl").memo.count == 0
    assert "scores-b.jsonl: saved by a run that differs in: scores. Starting over." in capsys.readouterr().err
