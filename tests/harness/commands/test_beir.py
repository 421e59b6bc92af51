"""A folder of BEIR through index, fit and evaluate; runs of this program and of others, by ir-measures' figures."""

import itertools
import json
from pathlib import Path

import bm25s
import ir_measures
import numpy as np
import pytest

from common.records import Answer, Gold, Passage, Question, Ranked
from datamodules.examples.data_files import QuestionDataFile, paths_of
from harness.evaluation.trec import judgements, measure_names, ranking, trec_scores, write_trec
from harness.indexing.analyser import Analyser
from tests.conftest import hotpot_rows
from tests.helpers.commands import Ended, command, done, refused
from tests.helpers.forked import ROOT
from tests.helpers.reports import cells, questions, report
from trainers.run.environment import data_digests

BM25 = ("--config", "configs/infer/retrieve_read.yaml", "--index_root", "indexes/own", "--system.init_args.k", "10")
TEST = ("--questions", "beir:test", "--resamples", "20")


def write_beir(folder: Path) -> None:
    """HotpotQA's form as BEIR has it: grades 2 and 1 of both gold passages, 0 of another one, -1 of a further one."""
    (folder / "qrels").mkdir(parents=True)
    corpus, queries = dict[str, dict](), list[dict]()
    for seed, split in enumerate(("train", "test")):
        lines = ["query-id\tcorpus-id\tscore"]
        for row in hotpot_rows(24, seed):
            queries.append({"_id": row["_id"], "text": row["question"], "metadata": {}})
            grades, others = (
                {row["supporting_facts"][0][0]: 2, row["supporting_facts"][1][0]: 1},
                itertools.count(0, -1),
            )
            for title, sentences in row["context"]:
                id_ = f"{seed}/{title.replace(' ', '_')}"
                corpus[id_] = {"_id": id_, "title": f"{title} {split}", "text": "".join(sentences)}
                if (grade := grades[title] if title in grades else next(others)) > -2:
                    lines.append(f"{row['_id']}\t{id_}\t{grade}")
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus.values()))
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("beir")
    (folder / "configs").symlink_to(ROOT / "configs")
    write_beir(folder / "beir")
    lines = [line.split("\t") for line in (folder / "beir/qrels/test.tsv").read_text().splitlines()[1:]]
    (folder / "qrels.txt").write_text("".join(f"{query} 0 {document} {grade}\n" for query, document, grade in lines))
    asked = [json.loads(line) for line in (folder / "beir/queries.jsonl").read_text().splitlines()]
    (folder / "topics.tsv").write_text("qid\ttext\n" + "".join(f"{row['_id']}\t{row['text']}\n" for row in asked))
    done(folder, "infer.py", "index", "--corpus", "beir", "--kind", "bm25", "--out", "indexes/own/bm25")
    done(folder, "infer.py", "evaluate", *BM25, *TEST, "--out", "ours")
    return folder


def by_ir_measures(place: Path, run: Path, min_grade: int | None = None) -> dict[str, float]:
    """The figures that ir-measures gives for a run by the qrels as they were downloaded."""
    qrels = list(ir_measures.read_trec_qrels(str(place / "qrels.txt")))
    measures = [*map(ir_measures.parse_measure, measure_names(min_grade))]
    found = ir_measures.calc_aggregate(measures, qrels, list(ir_measures.read_trec_run(str(run))))
    return {str(measure): value for measure, value in found.items()}


def check_figures(place: Path, out: str, min_grade: int | None = None) -> dict[str, float]:
    """The report's figures are those of ir-measures for its run, to the digit."""
    expected = by_ir_measures(place, place / out / "run.trec", min_grade)
    assert 0 < min(expected.values()) <= max(expected.values()) <= 1
    shown = {row: value for (table, row, _), value in cells(place / out).items() if table == "evidence"}
    for name, value in expected.items():
        assert f"{shown[name] / 100:.4f}" == f"{value:.4f}"
        assert np.mean([each[name] for each in questions(place / out)]) == pytest.approx(value, abs=1e-12)
    return expected


def test_the_report_holds_a_run_and_its_figures(place: Path) -> None:
    check_figures(place, "ours")
    first = questions(place / "ours")[0]
    assert first["gold"][0]["corpus_id"].startswith("1/")
    assert first["evidence"][0]["corpus_id"] in (place / "ours/run.trec").read_text().splitlines()[0]
    assert report(place / "ours")["questions"]["layout"] == "beir"
    text = (place / "ours/report.md").read_text()
    assert "a negative grade: 24, read as 0, not relevant" in text
    qrels = {line.split()[0] for line in (place / "ours/qrels.trec").read_text().splitlines()}
    assert len(qrels) == 24


def test_two_files_and_a_threshold(place: Path) -> None:
    done(place, "infer.py", "evaluate", *BM25, *TEST, "--questions", "topics.tsv:qrels.txt", "--out", "pair")
    assert check_figures(place, "pair") == check_figures(place, "ours")
    done(place, "infer.py", "evaluate", *BM25, *TEST, "--min_grade", "2", "--out", "strict")
    found = check_figures(place, "strict", 2)
    assert found["nDCG@10"] == check_figures(place, "ours")["nDCG@10"]
    assert found["R(rel=2)@100"] != check_figures(place, "ours")["R@100"]
    assert {len(each["gold"]) for each in questions(place / "strict")} == {1}


def test_a_run_of_bm25s_scored_here_equals_ours(place: Path) -> None:
    corpus = [json.loads(line) for line in (place / "beir/corpus.jsonl").read_text().splitlines()]
    terms, engine = Analyser(), bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    engine.index([terms(f"{row['title']}\n{row['text']}") for row in corpus], show_progress=False)
    known, lines = set(engine.vocab_dict), list[str]()
    for asked in questions(place / "ours"):
        scores = engine.get_scores(terms.of_query(asked["question"], known))
        for rank, number in enumerate(np.argsort(-scores, kind="stable")[:10]):
            lines.append(f"{asked['id']} Q0 {corpus[number]['_id']} {rank} {scores[number]} bm25s\n")
    (place / "bm25s.trec").write_text("".join(lines))
    done(place, "infer.py", "evaluate", "--run", "bm25s.trec", *TEST, "--out", "theirs")
    assert check_figures(place, "theirs") == check_figures(place, "ours")
    (place / "both.yaml").write_text(f"systems: {{ours: '{' '.join(BM25)}', bm25s: --run bm25s.trec}}")
    done(place, "infer.py", "evaluate", "--config", "both.yaml", *TEST, "--out", "both")
    assert cells(place / "both")["differences", "bm25s", "nDCG@10, points"] == 0


def test_ties_and_contradicting_ranks(place: Path) -> None:
    """All scores of a query are equal but the last one's, which is the highest at the lowest rank."""
    ours = [line.split() for line in (place / "ours/run.trec").read_text().splitlines()]
    lines = [[query, "Q0", id_, rank, "2" if rank == "10" else "1.5", "x"] for query, _, id_, rank, *_ in ours]
    lines += [[lines[0][0], "Q0", "unknown", "11", "1", "x"], ["other", "Q0", "unknown", "1", "1", "x"]]
    (place / "tied.trec").write_text("\n".join(map(" ".join, lines[12:] + lines[:12])))
    done(place, "infer.py", "evaluate", "--run", "tied.trec", *TEST, "--out", "tied")
    check_figures(place, "tied")
    text = (place / "tied/report.md").read_text()
    assert "queries have equal scores, of which the rank decides" in text
    assert "ranks that contradict the scores, which decide" in text
    assert "1 of its queries are not asked, such as 'other'" in text
    assert "documents are not in beir/corpus.jsonl, such as 'unknown'" in text
    written = [line.split() for line in (place / "tied/run.trec").read_text().splitlines()]
    for _, rows in itertools.groupby(written, key=lambda row: row[0]):
        scores = np.array([row[4] for row in rows], np.float32)
        assert (np.diff(scores) < 0).all()
    assert [row[2] for row in written if row[0] == ours[0][0]][:3] == [lines[9][2], lines[0][2], lines[1][2]]


def test_a_reranker_is_trained_on_a_split(place: Path, checkpoints: dict[str, Path]) -> None:
    recipe = ("fit", "--config", "configs/train/own/reranker.yaml", "--name", "beir", "--trainer.precision", "32-true")
    tiny = ("--model.estimator", str(checkpoints["bert"]), "--model.max_tokens", "96", "--trainer.max_epochs", "1")
    data = ("--data.train", "[{path: beir:train, min_grade: 1}]", "--data.validation_fraction", "0.3")
    done(place, "train.py", *recipe, *tiny, *data, "--data.questions_per_step", "4")
    digests = json.loads((place / "checkpoints/beir/env.json").read_text())["data"]
    assert {*digests} == {"beir/queries.jsonl", "beir/qrels/train.tsv", "beir/corpus.jsonl"}
    options = ("serving", "checkpoints/beir/serving"), ("retriever", "configs/parts/bm25.yaml"), ("contexts", "10")
    typed = [word for name, value in options for word in (f"--system.init_args.{name}", value)]
    trained = ("--config", "configs/infer/rerag.yaml", "--index_root", "indexes/own", "--studies", "false", *typed)
    done(place, "infer.py", "evaluate", *trained, *TEST, "--out", "trained")
    check_figures(place, "trained")


def test_training_reads_grades_and_the_corpus_beside_them(place: Path, monkeypatch) -> None:
    monkeypatch.chdir(place)
    file = QuestionDataFile("beir:test", min_grade=2)
    assert paths_of([file]) == ["beir:test", "beir/corpus.jsonl"]
    first = next(file.questions())
    (gold,) = first.gold_passages
    assert gold.corpus_id == f"1/{gold.title.removesuffix(' test').replace(' ', '_')}"
    assert len(first.passages) == 4  # both grades, 0, and the negative one
    assert sorted(grade for _, grade in first.gold.grades) == [1, 2]
    (place / "topics2.tsv").write_text((place / "topics.tsv").read_text())
    before = data_digests(["topics2.tsv:qrels.txt"])
    (place / "topics2.tsv").write_text((place / "topics.tsv").read_text() + "more\ta question\n")
    assert data_digests(["topics2.tsv:qrels.txt"]) != before


QRELS, RUN = "1-0 0 d 1\n", "q1-0 Q0 1/d 1 2.5 x\n"
RUNS = [
    (RUN * 2, 65, "bad.trec, line 2: the document '1/d' is there twice for the query 'q1-0'"),
    (RUN.replace("2.5", "nan"), 65, "line 1: the score 'nan' is no finite number"),
    (RUN.replace("2.5", "-inf"), 65, "the score '-inf' is no finite number"),
    (RUN.replace("x\n", "\n"), 65, "line 1: 'q1-0 Q0 1/d 1 2.5' is not `query Q0 document rank score tag`"),
    (RUN.replace(" 1 ", " first "), 65, "is not `query Q0 document rank score tag`"),
    (RUN.replace("q1-0", "q0-0"), 65, "has none of the 24 questions, but others, such as 'q0-0'"),
    (RUN, 65, "none of its 1 documents is in beir/corpus.jsonl"),
    ("", 65, "bad.trec is empty"),
]
PAIRS = [
    ("q1-0 0 d\n", 65, "'q1-0 0 d' is no judgement"),
    ("q1-0 0 d high\n", 65, "bad.txt, line 1: 'q1-0 0 d high' is no judgement"),
    ("q1-0\td e\t1\n", 65, "line 1: the id 'd e' has a blank or is empty"),
    ("q9 0 d 1\n", 65, "none of its queries has a judgement in bad.txt, which judges others, such as 'q9'"),
    ("q1-0 0 d 1\n", 65, "None of the 1 judged passages, such as 'd', is in indexes/own/bm25"),
]  # fmt: skip
LINES = [
    (("--run", "no.trec", *BM25, *TEST), 2, "Give one of a system"),
    (TEST, 2, "Give one of a system"),
    ((*BM25, "--corpus", "beir", *TEST), 2, "--corpus FILE is of the documents of --run FILE: give both"),
    (
        ("--run", "no.trec", "--questions", "topics.tsv"),
        2,
        "--corpus FILE is of the documents of --run FILE: give both",
    ),
    (("--run", "no.trec", *TEST), 66, "no.trec cannot be read: No such file"),
    ((*BM25, "--questions", "beir:dev"), 66, "beir/qrels has no split 'dev'; it has: test, train"),
    ((*BM25, "--questions", "beir"), 2, "beir is a folder: of one of BEIR name the split too, as beir:test"),
]


def evaluated(place: Path, *typed: str) -> Ended:
    return command(place, "infer.py", "evaluate", *typed, "--out", "bad")


def test_what_is_wrong_is_one_line_and_nothing_is_written(place: Path) -> None:
    for content, code, part in RUNS:
        (place / "bad.trec").write_text(content)
        refused(evaluated(place, "--run", "bad.trec", *TEST), code, part)
    for content, code, part in PAIRS:
        (place / "bad.txt").write_text(content)
        refused(evaluated(place, *BM25, "--questions", "topics.tsv:bad.txt"), code, part)
    for typed, code, part in LINES:
        refused(evaluated(place, *typed), code, part)
    assert not [*place.glob("bad/*")]


def test_scores_fall_in_float32_and_ids_are_those_of_the_corpus(tmp_path: Path) -> None:
    texts = [
        Passage.of("", text, corpus_id=own) for text, own in (("one", "a"), ("two", "b"), ("three", "a"), ("four", ""))
    ]
    doubled = Passage(texts[1].id, "two", corpus_id="b", other_ids=("c",))
    values = (np.inf, 1.0, 0.5, 1 + 1e-12)
    evidence = tuple(map(Ranked, (texts[0], doubled, texts[2], texts[3]), values))
    asked = Question("q 1", "?", gold=Gold(grades=(("a", 1.0), ("c", 3.0), ("z", 0.0))), passages=tuple(texts))
    found = ranking(Answer("q 1", "", evidence), {texts[3].id: ["d"]})
    assert [*found] == ["a", "b", "c", "d"]
    assert (np.diff(np.array([*found.values()], np.float32)) < 0).all()
    assert judgements(asked, {}) == {"a": 1.0, "c": 3.0, "z": 0.0}
    (line,) = write_trec(tmp_path, [asked], [Answer("q 1", "", evidence)])
    assert line.startswith("run.trec is not written: the id 'q 1' has a blank")
    assert not [*tmp_path.iterdir()]
    scores = trec_scores([asked, Question("r", "?")], [Answer("q 1", "", evidence)] * 2)
    assert [scores["R@100"][0], scores["RR@10"][0]] == [1.0, 1.0]
    assert np.isnan(scores["nDCG@10"][1])
