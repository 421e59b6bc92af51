"""The real files that the layouts are of: how many questions, passages and gold ones they hold."""

import gzip
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from datamodules.formats.reading import read_passages, read_questions

DATA = os.environ.get("LIGHTNING_RAG_DATA")
pytestmark = pytest.mark.skipif(DATA is None, reason="needs the real data: set LIGHTNING_RAG_DATA to its folder")

FRESH = {"never-changing", "slow-changing", "fast-changing", "false-premise"}


def test_the_pool_of_hotpotqa_distractor() -> None:
    """21,734 distinct raw pairs of title and text, of which 8 differ from another in nothing but a no-break space."""
    sources = [f"{DATA}/hotpotqa/hotpot_distractor_{part}.json.gz" for part in ("train", "dev")]
    raw = {
        (title, "".join(sentences))
        for file in sources
        for row in json.loads(gzip.decompress(Path(file).read_bytes()))
        for title, sentences in row["context"]
    }
    assert len(raw) == 21_734
    assert len({(title, text.replace("\u00a0", " ")) for title, text in raw}) == 21_726
    pool = list(read_passages("hotpotqa", sources))
    assert len(pool) == len({passage.id for passage in pool}) == 21_726


@pytest.mark.parametrize(
    ("layout", "file", "questions", "with_all_gold", "kinds"),
    [
        ("hotpotqa", "hotpotqa/hotpot_distractor_dev.json.gz", 600, 600, {"bridge", "comparison"}),
        ("hotpotqa", "hotpotqa/hotpot_fullwiki_dev.json.gz", 294, 88, {"bridge", "comparison"}),
        ("hotpotqa", "hotpotqa/hotpot_questions_dev.json.gz", 1832, 0, {"bridge", "comparison"}),
        ("twowiki", "2wikimultihopqa/2wiki_train.json.gz", 798, 798, {"bridge_comparison", "compositional",
            "comparison", "inference"}),
        ("musique", "musique/musique_ans_dev.jsonl.gz", 100, 100, {"2hop", "3hop1", "3hop2", "4hop1", "4hop2",
            "4hop3"}),
        ("musique", "musique/musique_full_sample.jsonl.gz", 74, 35 + 11, {"2hop", "3hop1", "3hop2", "4hop1", "4hop2",
            "4hop3"}),
        ("musique", "musique/musique_questions_dev.jsonl.gz", 562, 0, None),
        ("corpus_questions", "musique/musique_corpus_questions_dev.jsonl.gz", 131, 0, {"2hop", "3hop", "4hop"}),
        ("ircot", "hotpotqa/hotpot_ircot_dev.jsonl.gz", 116, 116, {""}),
        ("fid", "nq/nq-open-20_total_documents_dev.jsonl.gz", 92, 0, {""}),
        ("fid", "triviaqa/triviaqa_retrieved.json.gz", 638, None, {""}),
        ("ambignq", "ambignq/train_light.json.gz", 10_036, 0, {"singleAnswer", "multipleQAs"}),
        ("ambignq", "ambignq/dev_light.json.gz", 1_557, 0, {"singleAnswer", "multipleQAs"}),
        ("freshqa", "freshqa/freshqa.csv:TEST", 330, 0, FRESH),
        ("freshqa", "freshqa/freshqa.csv:DEV", 68, 0, FRESH),
        ("freshqa", "freshqa/freshqa.csv", 398, 0, FRESH),
        ("strategyqa", "strategyqa/dev.json.gz", 115, 0, {""}),
        ("strategyqa", "strategyqa/train.json.gz", 1_855, 0, {""}),
    ],
)  # fmt: skip
def test_real_files(layout, file, questions, with_all_gold, kinds) -> None:
    found = list(read_questions(layout, f"{DATA}/{file}"))
    assert len(found) == len({question.id for question in found}) == questions
    assert all(question.answers or question.source.withheld for question in found)
    assert kinds is None or {question.kind for question in found} == kinds
    if with_all_gold is not None:
        whole = [q for q in found if len(q.support) >= 2 and not q.gold.titles]
        assert len(whole) == with_all_gold
    for question in found:
        assert set(question.support) <= {passage.id for passage in question.passages}
        assert len(question.passages) == len({passage.id for passage in question.passages})


def test_masqa() -> None:
    """Counted by hand in the raw files."""
    found = {
        name: list(read_questions("masqa", f"{DATA}/masqa/{name}.csv"))
        for name in ("book_questions", "financial_questions", "ti_questions", "ti_questions_qac")
    }
    kinds = {name: Counter(question.kind for question in each) for name, each in found.items()}
    assert kinds["book_questions"] == {"choice": 3, "true or false": 1, "cloze": 2, "calculation": 1, "short answer": 3}
    assert kinds["financial_questions"] == {"choice": 3, "true or false": 1, "cloze": 2, "short answer": 4}
    assert kinds["ti_questions"] == {"choice": 2, "true or false": 2, "cloze": 1, "short answer": 5, "": 1}
    with_context = found.pop("ti_questions_qac")
    assert not any(question.gold.segments for each in found.values() for question in each)
    golds = [gold for question in with_context for gold in question.gold.segments]
    assert [gold.document for gold in golds] == [
        f"{name}.pdf" for name in ("afe7906", "amc131m02", "dac532a3w", "awrl1432", "tps272c45", "tps8804", "opt3004",
            "amc131m02")
    ]  # fmt: skip
    assert golds[0].evidence == ("每个 DDC 通道 16 个 NCO",)
    assert golds[5].headings == ("1 Layout Guidelines", "2 CO Amplifier Layout")
    choices = [question.answers for question in found["ti_questions"][:2]]
    assert choices == [("D", "16", "D: 16"), ("D", "时序误差", "D: 时序误差")]
    assert with_context[0].answers == ("B",)  # "B: 16", though 16 is D: the file contradicts itself
    assert [question.id for question in with_context if not question.answers] == [with_context[-1].id]
    assert found["book_questions"][0].answers[:2] == (
        "C", "专用模拟集成电路如音频放大器、显示驱动电路等，通常只在特定的产品中使用。"
    )  # fmt: skip


def test_the_share_of_retrieved_questions_with_an_answer() -> None:
    """The data's own description: a passage holds the answer in about two thirds (NQ) or less than three quarters."""
    for file, share in (("nq/nq_retrieved_train.json.gz", 2 / 3), ("triviaqa/triviaqa_retrieved.json.gz", 0.72)):
        found = list(read_questions("fid", f"{DATA}/{file}"))
        assert sum(bool(question.support) for question in found) / len(found) == pytest.approx(share, abs=0.05)


def test_lost_in_the_middle_has_its_gold_first_and_scores_of_all_others() -> None:
    for part, questions in (("dev", 92), ("train", 252)):
        found = list(read_questions("fid", f"{DATA}/nq/nq-open-20_total_documents_{part}.jsonl.gz"))
        assert len(found) == questions
        for question in found:
            assert part == "train" or len(question.passages) == 20
            assert part == "train" or question.support == (question.passages[0].id,)
            gold, *others = question.scores
            assert gold is None
            assert others == sorted(others, reverse=True)  # Contriever's order
            assert question.given_scores == ()
            assert question.ranking == question.passages
    assert not any(q.scores for q in read_questions("fid", f"{DATA}/triviaqa/triviaqa_retrieved.json.gz"))


def test_real_corpora() -> None:
    for file, passages in (("2wikimultihopqa/2wiki_corpus.json.gz", 6_119), ("musique/musique_corpus.jsonl.gz", 5_966)):
        assert len(list(read_passages("jsonl", [f"{DATA}/{file}"]))) == passages


def test_the_answers_of_ambignq_and_freshqa() -> None:
    """Counted in the raw files: of the dev part 777 + 131 questions have several meanings; 97 premises are false."""
    found = list(read_questions("ambignq", f"{DATA}/ambignq/dev_light.json.gz"))
    assert sum(question.kind == "multipleQAs" for question in found) == 777 + 131
    assert {q.id: q.answers for q in found}["-807825952267713091"] == ("Tony Goldwyn", "Goldwyn")
    fresh = list(read_questions("freshqa", f"{DATA}/freshqa/freshqa.csv"))
    assert sum(question.kind == "false-premise" for question in fresh) == 97
    repeated_once = ("1996", "10-Dec-96", "12/10/1996", "10/12/1996")
    assert {q.id: q.answers for q in fresh}["599"] == repeated_once
