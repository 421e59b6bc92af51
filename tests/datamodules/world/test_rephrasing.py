"""Questions of the synthetic world of several kinds and for several sources, and rephrased ones."""

import hashlib
import json
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from common.records import Question
from datamodules.formats.reading import read_passages, read_questions
from datamodules.formats.rewrites import read_rewrites
from datamodules.world import facts, frames, rephrasing_phrases
from datamodules.world.facts import RELATIONS
from datamodules.world.mixed import SOURCES, mixed_questions
from datamodules.world.phrases import SPLITS, Phrases, Relation
from datamodules.world.questions import contains
from datamodules.world.rephrasing import rephrase
from datamodules.world.rewriting import APPEARED
from datamodules.world.several_sources import SHARES
from datamodules.world.world import World, generate
from datamodules.world.writing import write_world
from models.dmqr.strategies import POOL
from tests.helpers.layout_rows import as_lines
from tests.helpers.small_world import REPHRASED, SMALL

KINDS = ("noisy", "overlong", "underspecified")


def digest(path: Path) -> str:
    """sha256 of a file, or of the names and contents of a folder's files."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    named = b"".join(file.name.encode() + file.read_bytes() for file in files)
    return hashlib.sha256(named if path.is_dir() else path.read_bytes()).hexdigest()


def pinned(size: str) -> dict[str, str]:
    return json.loads(Path(__file__).with_name("digests.json").read_text())[size]


def test_files_that_existed_before_keep_their_bytes(folder) -> None:
    assert {name: digest(folder / name) for name in pinned("small")} == pinned("small")
    new = {f"{kind}_{split}.{end}" for kind, end in (("rephrased", "json"), ("rewrites", "jsonl")) for split in SPLITS}
    assert {path.name for path in folder.iterdir()} - pinned("small").keys() == {*new, "world.json"}


def test_rows_have_the_gold_of_their_source_within_the_corpus(folder, world) -> None:
    corpus = {p.id for p in read_passages("jsonl", [str(folder / "corpus.jsonl")])}
    record = json.loads((folder / "world.json").read_text())["rephrased_questions"]
    for split in SPLITS:
        rows = json.loads((folder / f"rephrased_{split}.json").read_text())
        questions = list(read_questions("hotpotqa", str(folder / f"rephrased_{split}.json")))
        multi = {q.id: q for q in read_questions("hotpotqa", str(folder / f"{split}.json"))}
        single = {q.id: q for q in read_questions("fid", str(folder / f"fid_{split}.json"))}
        assert len({row["source_id"] for row in rows}) == len(rows)
        pairs = read_rewrites("rewrites", str(folder / f"rewrites_{split}.jsonl"))  # a rewrite by every strategy
        assert [(each.question, each.strategy) for each in pairs] == [
            (q.text, name) for q in questions for name in POOL
        ]
        assert {kind: sum(q.kind == kind for q in questions) for kind in KINDS} == record[split]
        for row, question in zip(rows, questions, strict=True):
            source = {**multi, **single}[row["source_id"]]
            assert question.answers == source.answers
            assert set(question.support) == set(source.support) <= corpus
            assert {p.id for p in question.passages} <= corpus
            assert len(question.passages) == 10
            assert not question.gold.titles
            assert question.text not in (source.text, row["clean_question"])


def templates(value: object) -> list[Phrases]:
    """All phrase sets inside a module's value."""
    if isinstance(value, Phrases):
        return [value]
    if isinstance(value, Relation):
        return [value.statements, value.noun_phrases, value.asks]
    return [found for item in value.values() for found in templates(item)] if isinstance(value, dict) else []


def test_no_template_and_no_noise_word_serves_two_splits() -> None:
    def by_split(sets: list[Phrases]) -> list[set[str]]:
        return [{template for one in sets for template in one.of(split)} - {"{l}", "{f}"} for split in SPLITS]

    modules = (facts, frames, rephrasing_phrases)
    stated, framed, noise = ([t for value in vars(each).values() for t in templates(value)] for each in modules)
    assert len(stated + framed) > 90
    assert len(noise) > 15
    assert all(one.train and one.validation and one.test for one in stated + framed)
    answers = [APPEARED, *(relation.statements for relation in RELATIONS.values())]  # pseudo-answers
    names = ("CHAT_OPENINGS", "CHAT_ENDINGS", "INSERTED", "RELATIVES", "TIMES")
    added = by_split([getattr(rephrasing_phrases, name) for name in names])
    words = [{word for phrase in phrases for word in phrase.split()} for phrases in added]
    for word, split in zip(words, SPLITS, strict=True):
        word |= set(rephrasing_phrases.SPELLINGS[split].values())
    for used in (by_split(stated + framed), by_split(noise), by_split(answers), words):
        assert all(used)
        assert not (used[0] & used[1] | used[0] & used[2] | used[1] & used[2])


def test_no_rewrite_reveals_the_answer_or_a_bridge_entity(world) -> None:
    for one in chain(*rephrase(world, REPHRASED).values()):
        generated = one.base.generated
        hidden = [] if generated.answer in ("yes", "no") else [generated.answer]
        if not generated.kind.startswith("comparison"):
            hidden += [step.entity.name for step in generated.steps[1:]]
        shown = hidden if generated.kind != "comparison_name" else []  # one of the two names in the question
        for text in one.rewrites.values():
            assert not any(contains(text, each) for each in shown)


CONFIG = replace(SMALL, rephrased=300, singles=600, msrag=80)
COUNT = 12
MIXED = {"single", "multi-hop", "noisy", "web-only", "manuals"}


@pytest.fixture(scope="module")
def several_world() -> World:
    return generate(CONFIG)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world for several sources, with questions about manuals that nobody has typeset."""
    out = tmp_path_factory.mktemp("world") / "out"
    write_world(CONFIG, out)
    for split in ("test", "validation"):
        rows = []
        for n in range(20):
            metadata = {"type": "table", "gold_segments": [{"document": "a.pdf", "evidence": f"It weighs {n} kg."}]}
            row = {"id": f"{split}_library_{n}", "question": f"Weight {n} of {split}?", "metadata": metadata}
            rows.append(row | {"golden_answers": [f"{n} kg"]})
        (out / f"library_{split}.jsonl").write_text(as_lines(rows))
    return out


@pytest.fixture(scope="module")
def questions(several: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Question]]:
    """As a reader of the layout has them."""
    read = {}
    for split, rows in mixed_questions(several, COUNT, 3).items():
        file = tmp_path_factory.mktemp("mixed") / f"mixed_{split}.jsonl"
        file.write_text(as_lines(rows))
        read[split] = list(read_questions("flashrag", str(file)))
    return read


def test_equal_numbers_of_each_kind_in_a_random_order(questions) -> None:
    for split, count in ("test", COUNT), ("validation", COUNT // 2):
        kinds = [question.kind for question in questions[split]]
        assert Counter(kinds) == dict.fromkeys(MIXED, count)
        assert len(dict.fromkeys(kinds[:10])) > 2
        assert len({question.id for question in questions[split]}) == len(kinds)
    assert not {each.text for each in questions["test"]} & {each.text for each in questions["validation"]}


def test_questions_are_those_of_the_other_files_with_their_gold(several, questions) -> None:
    corpus = {p.id for p in read_passages("jsonl", [str(several / "corpus.jsonl")])}
    web = {p.id for p in read_passages("jsonl", [str(several / "web_corpus.jsonl")])}
    rows = mixed_questions(several, COUNT, 3)
    for split, asked in questions.items():
        known = {
            kind: {each.id: each for each in read_questions(layout, str(several / name.format(split=split)))}
            for kind, (layout, name) in SOURCES.items()
        }
        for question, row in zip(asked, rows[split], strict=True):
            source = known[question.kind][row["metadata"]["source_id"]]
            assert (question.text, question.answers) == (source.text, source.answers)
            assert question.gold.segments == source.gold.segments
            assert set(question.support) == set(source.support) == {each.id for each in question.passages}
            assert set(question.support) <= (web if question.kind == "web-only" else corpus)
            assert bool(question.support) != bool(question.gold.segments)
            assert row["metadata"]["source_type"] == source.kind != "overlong"
            if question.kind in ("single", "multi-hop"):
                assert (len(question.support) == 1) == (question.kind == "single")


STATING = {"web": ("web",), "knowledge": ("knowledge",), "both": ("web", "knowledge"), "neither": ()}


def rows(folder: Path, split: str) -> list[dict]:
    return [json.loads(line) for line in (folder / f"msrag_{split}.jsonl").read_text().splitlines()]


def test_only_new_files_are_written(several) -> None:
    new = {f"{name}.jsonl" for name in ("msrag_web", "msrag_knowledge", "msrag_validation", "msrag_test")}
    found = {
        each.name for each in several.iterdir() if not each.name.startswith(("rephrased_", "rewrites_", "library_"))
    }
    assert found == {*pinned("small"), *new, "world.json"}
    kept = {name: value for name, value in pinned("small").items() if not name.startswith("fid_")}  # more of these here
    assert {name: digest(several / name) for name in kept} == kept


def test_shares_are_disclosed_and_are_the_kinds_of_the_questions(several) -> None:
    record = json.loads((several / "world.json").read_text())["msrag"]
    for split in ("validation", "test"):
        questions = list(read_questions("flashrag", str(several / f"msrag_{split}.jsonl")))
        assert Counter(question.kind for question in questions) == record["questions"][split]
        wanted = {share: round(40 * part) for share, part in SHARES.items()}
        assert all(record["questions"][split][share] <= wanted[share] for share in SHARES)
        assert record["questions"][split] == wanted or split == "validation"  # of which so small a world has too few
        assert all(question.answers and not question.passages for question in questions)
    assert record["passages"].keys() == {"web", "knowledge"}


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_source_states_the_answer_where_the_share_says_so_and_nowhere_else(several, several_world, split) -> None:
    names = ("web", "knowledge")
    corpora = {name: list(read_passages("jsonl", [str(several / f"msrag_{name}.jsonl")])) for name in names}
    base = {f"{split}_single_{n:05d}": one.generated for n, one in enumerate(several_world.singles[split])}
    for row in rows(several, split):
        one = base[row["metadata"]["source_id"]]
        assert (row["question"], row["golden_answers"]) == (one.question, [one.answer])
        for name, passages in corpora.items():
            subject = one.steps[0].entity.name
            if name in STATING[row["metadata"]["type"]]:
                assert any(contains(p.title, subject) and contains(p.text, one.answer) for p in passages)
            else:
                texts = [f"{p.title} {p.text}" for p in passages]
                assert not any(contains(text, one.answer) and contains(text, subject) for text in texts)


def test_no_question_and_no_passage_of_one_split_is_in_the_other(several, several_world) -> None:
    texts = {split: {row["question"] for row in rows(several, split)} for split in ("validation", "test")}
    assert not texts["validation"] & texts["test"]
    assert len(texts["test"]) == 40
    for split, other in (("validation", "test"), ("test", "validation")):
        own, names = ({entity.name for entity in several_world.entities[each]} for each in (split, other))
        assert not any(name in text for text in texts[split] for name in names - own if " " in name)
