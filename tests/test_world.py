"""The synthetic world: whole, repeatable, unambiguous, and not flattering."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from datamodules.files import digests
from datamodules.formats.reading import read_passages, read_questions
from datamodules.world import frames, phrases_people, phrases_trade, phrases_works
from datamodules.world.__main__ import main
from datamodules.world.facts import RELATIONS
from datamodules.world.phrases import SPLITS, Phrases, Relation
from datamodules.world.questions import MIX, contains
from datamodules.world.world import SPLIT_SHARES, Recipe, Shipped, World, grow
from datamodules.world.writing import write_world

SMALL = Recipe(seed=3, questions=400, singles=200, open_singles=100, web_questions=30, manuals=3)
PARTS = (*SPLITS, "web")


@pytest.fixture(scope="module")
def world() -> World:
    return grow(SMALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("world") / "out"
    write_world(SMALL, out)
    return out


def asked(world: World, split: str, kinds: tuple[str, ...] = ()) -> list:
    groups = (world.questions, world.singles, world.open_singles)
    every = [shipped.asked for group in groups for shipped in group[split]]
    return [one for one in every if not kinds or one.kind in kinds]


def templates(value: object) -> list[Phrases]:
    """All phrase sets inside a module's value."""
    if isinstance(value, Phrases):
        return [value]
    if isinstance(value, Relation):
        return [value.statements, value.noun_phrases, value.asks]
    return [found for item in value.values() for found in templates(item)] if isinstance(value, dict) else []


def test_same_seed_same_bytes_and_another_seed_other_names(folder: Path, tmp_path: Path) -> None:
    write_world(SMALL, tmp_path / "again")
    assert digests(tmp_path / "again") == digests(folder)
    record = json.loads((folder / "world.json").read_text())
    assert {**record["sha256"], "world.json": digests(folder)["world.json"]} == digests(folder)
    other = grow(Recipe(seed=4, questions=50, singles=10, web_questions=2, manuals=0))
    own = grow(Recipe(seed=3, questions=50, singles=10, web_questions=2, manuals=0))
    names = [{e.name for group in w.entities.values() for e in group} for w in (own, other)]
    assert len(names[0] & names[1]) < 0.01 * len(names[0])


def test_no_template_serves_two_splits() -> None:
    modules = (frames, phrases_people, phrases_works, phrases_trade)
    sets = [found for module in modules for value in vars(module).values() for found in templates(value)]
    assert len(sets) > 90
    used = [{template for one in sets for template in one.of(split)} for split in SPLITS]
    assert not (used[0] & used[1] | used[0] & used[2] | used[1] & used[2])
    assert all(one.train and one.validation and one.test for one in sets)


def test_relations_name_their_place_holders() -> None:
    for relation in RELATIONS.values():
        for split in SPLITS:
            assert all("{o}" in s for s in relation.statements.of(split))
            assert all(q.count("{x}") == 1 for q in (*relation.noun_phrases.of(split), *relation.asks.of(split)))


def test_written_sentences_and_questions_differ_between_splits_once_names_are_masked(world: World) -> None:
    """The same rule as above, read off the finished text."""
    names = {word for group in world.entities.values() for e in group for word in (*e.name.split(), e.region)}
    names |= {
        said for group in world.entities.values() for e in group for said in e.facts.values() if isinstance(said, str)
    }
    names |= {word for group in world.entities.values() for e in group for theme in e.theme for word in theme.split()}
    names |= {e.trade for group in world.entities.values() for e in group} | {"film director", "the", "a", "an"}
    lower = {name.casefold() for name in names if name}

    def mask(text: str) -> str:
        words = re.findall(r"[\w-]+", text.casefold().replace("film director", "novelist"))
        return " ".join("#" if word in lower or word.isdigit() else word for word in words)

    sentences, questions = [], []
    for split in SPLITS:
        clauses = [
            c for e in world.entities[split] for s in world.passages[e].sentences for c in re.split(r"; |, and ", s)
        ]
        sentences.append({mask(c) for c in clauses} - {"# bears # same name"})
        questions.append({mask(one.question) for one in asked(world, split)})
    for masked in (sentences, questions):
        bare = [{m for m in group if re.search("[a-z]", m)} for group in masked]
        assert not (bare[0] & bare[1] | bare[0] & bare[2] | bare[1] & bare[2])


def test_splits_share_no_answer_and_no_entity(world: World) -> None:
    answers = [{one.answer.casefold() for one in asked(world, split)} - {"yes", "no"} for split in PARTS]
    names = [{e.name.casefold() for e in world.entities[split]} for split in PARTS]
    for sets in (answers, names):
        assert sum(map(len, sets)) == len(set.union(*sets))
    for split in PARTS:
        for one in asked(world, split):
            assert {step.entity.split for step in one.steps} == {split}


def test_gold_passages_lie_in_the_corpus_or_only_in_the_web(folder: Path) -> None:
    corpus = {p.id for p in read_passages("jsonl", [str(folder / "corpus.jsonl")])}
    web = {p.id for p in read_passages("jsonl", [str(folder / "web_corpus.jsonl")])}
    record = json.loads((folder / "world.json").read_text())
    assert (len(corpus), len(web)) == (record["passages"]["corpus"], record["passages"]["web_corpus"])
    assert not corpus & web
    for name in SPLITS:
        for question in read_questions("hotpotqa", str(folder / f"{name}.json")):
            assert {p.id for p in question.passages} <= corpus
            assert not question.unshipped_support
    for question in read_questions("hotpotqa", str(folder / "test_web.json")):
        assert set(question.support) <= web


def test_layouts_agree(folder: Path) -> None:
    for name in (*SPLITS, "test_web"):
        hotpot = list(read_questions("hotpotqa", str(folder / f"{name}.json")))
        musique = list(read_questions("musique", str(folder / f"musique_{name}.jsonl")))
        assert [q.text for q in hotpot] == [q.text for q in musique]
        for one, other in zip(hotpot, musique, strict=True):
            assert one.passages == other.passages
            assert set(one.support) == set(other.support)
            assert one.answers == other.answers
            assert len(one.passages) == 10
    for row in map(json.loads, (folder / "musique_test.jsonl").read_text().splitlines()):
        for step in row["question_decomposition"]:
            paragraph = row["paragraphs"][step["paragraph_support_idx"]]
            assert paragraph["is_supporting"]
            assert contains(paragraph["paragraph_text"], step["answer"])
    fid = json.loads((folder / "fid_test.json").read_text())
    assert len(fid) == round(0.28 * SMALL.singles)
    assert len(list(read_questions("fid", str(folder / "fid_test.json")))) == len(fid)
    assert all(any(c["isgold"] and c["hasanswer"] for c in row["ctxs"]) for row in fid)


def single_hop(world: World) -> list[Shipped]:
    return [shipped for split in SPLITS for group in (world.singles, world.open_singles) for shipped in group[split]]


def test_parts_are_of_the_gold_passages_article_and_silent_on_what_is_asked(world: World) -> None:
    shipped = single_hop(world)
    parts = [(one, part) for one in shipped for part in one.parts]
    assert len(parts) > 0.9 * 2 * len(shipped)
    corpus = {passage.text for passage in world.passages.values()}
    for one, part in parts:
        (step,) = one.asked.steps
        assert part.title == world.passages[step.entity].title
        assert contains(part.text, step.entity.name)
        assert not contains(part.text, one.asked.answer)
        assert part.text not in corpus
        others = step.entity.facts.keys() - {step.relation}
        assert part.said_in.keys() & step.entity.facts.keys() <= others
        assert len(part.said_in.keys() & others) == len(others) - len(others) // 2


def test_fid_rows_are_in_the_order_of_words_shared_with_the_question(folder: Path) -> None:
    rows = json.loads((folder / "fid_train.json").read_text())
    places = Counter()
    for row in rows:
        (gold,) = (n for n, context in enumerate(row["ctxs"]) if context["isgold"])
        places[gold] += 1
        alike = [c for n, c in enumerate(row["ctxs"]) if c["title"] == row["ctxs"][gold]["title"] and n != gold]
        assert len(alike) <= 2
        assert not any(contains(c["text"], row["answers"][0]) or c["hasanswer"] for c in alike)
        assert len(row["ctxs"]) == 10
        words = set(re.findall(r"\w+", row["question"].lower()))
        shared = [len(words & set(re.findall(r"\w+", f"{c['title']} {c['text']}".lower()))) for c in row["ctxs"]]
        assert shared == sorted(shared, reverse=True)
    assert 0.2 * len(rows) < places[0] < 0.8 * len(rows)  # no better than a retriever


@pytest.mark.parametrize("split", SPLITS)
def test_every_other_open_question_has_no_context_with_its_answer(folder: Path, split: str) -> None:
    rows = json.loads((folder / f"fid_{split}_open.json").read_text())
    record = json.loads((folder / "world.json").read_text())
    assert len(rows) == record["open_single_hop_questions"][split] == round(SPLIT_SHARES[split] * SMALL.open_singles)
    for number, row in enumerate(rows):
        holding = [c for c in row["ctxs"] if contains(f"{c['title']}. {c['text']}", row["answers"][0])]
        assert [c for c in row["ctxs"] if contains(c["text"], row["answers"][0])] == [
            c for c in row["ctxs"] if c["hasanswer"]
        ]
        gold = [c for c in row["ctxs"] if c["isgold"]]
        if number % 2 == 0:
            assert len(gold) == 1
            assert gold[0] in holding
        else:
            assert not holding
            assert not gold
            assert len(row["ctxs"]) >= 5
    for question in list(read_questions("fid", str(folder / f"fid_{split}_open.json")))[1::2]:
        assert question.support == question.unshipped_support == ()
    closed = json.loads((folder / f"fid_{split}.json").read_text())
    assert not {row["question"] for row in rows} & {row["question"] for row in closed}


def test_singles_change_nothing_but_the_files_of_singles(folder: Path, tmp_path: Path) -> None:
    write_world(replace(SMALL, singles=50, open_singles=0), tmp_path / "fewer")
    here, there = ({n: d for n, d in digests(f).items() if n != "world.json"} for f in (folder, tmp_path / "fewer"))
    differing = {name for name in here if here[name] != there.get(name)}
    assert differing == {f"fid_{split}{kind}.json" for split in SPLITS for kind in ("", "_open")}
    assert set(there) == {name for name in here if not name.endswith("_open.json")}


def test_supporting_sentences_say_the_fact(folder: Path) -> None:
    for row in json.loads((folder / "test.json").read_text()):
        context = dict(row["context"])
        assert len(context) == len(row["context"])  # so that a title means one paragraph
        assert all(sentence.startswith(" ") for sentences in context.values() for sentence in sentences[1:])
        title, sentence = row["supporting_facts"][-1]
        if row["type"] != "comparison":
            assert contains(context[title][sentence], row["answer"])


def test_answers_stand_in_the_last_gold_passage_and_nowhere_on_the_way(world: World) -> None:
    for split in PARTS:
        for one in asked(world, split):
            if one.answer in ("yes", "no"):
                continue
            texts = [f"{world.passages[s.entity].title}. {world.passages[s.entity].text}" for s in one.steps]
            assert contains(texts[-1], one.answer)
            if one.kind != "comparison_name":
                assert not contains(one.question, one.answer)
                assert not any(contains(text, one.answer) for text in texts[:-1])


def test_chains_are_followed_through_facts_and_hide_their_bridges(world: World) -> None:
    for split in PARTS:
        for one in asked(world, split, ("single", "bridge", "bridge3", "bridge4")):
            assert len(one.steps) == {"single": 1, "bridge": 2, "bridge3": 3, "bridge4": 4}[one.kind]
            for step, following in zip(one.steps, one.steps[1:], strict=False):
                assert step.entity.facts[step.relation] is following.entity
                assert not any(contains(one.question, w) for w in following.entity.name.split() if w != "The")
                assert contains(world.passages[step.entity].text, following.entity.name)
            said = one.steps[-1].entity.facts[one.steps[-1].relation]
            assert (said if isinstance(said, str) else said.name) == one.answer


def test_comparisons_are_right(world: World) -> None:
    for one in asked(world, "train", ("comparison_name", "comparison_fact")):
        loser, winner = (int(step.answer) for step in one.steps)
        assert loser != winner
        earlier = re.search(r"earlier|older|first", one.question, re.IGNORECASE)
        later = re.search(r"later|newer|younger|last", one.question, re.IGNORECASE)
        if earlier or later:  # a slip of the finger may have hit the word
            assert (winner < loser) == bool(earlier)
    for one in asked(world, "test", ("comparison_same",)):
        first, second = (step.entity.facts[step.relation] for step in one.steps)
        assert (first is second) == (one.answer == "yes")


def test_every_mention_means_one_thing(world: World) -> None:
    everything = [e for group in world.entities.values() for e in group]
    by_name = Counter(e.name.casefold() for e in everything)
    identities = Counter((e.name, e.year, e.region) for e in everything)
    assert max(identities.values()) == 1
    assert max(by_name.values()) == 2  # look-alikes that share a whole name
    for split in PARTS:
        for one in asked(world, split):
            named = one.steps if one.kind.startswith("comparison") else one.steps[:1]
            for step in named:
                assert contains(one.question, step.entity.name)
                if by_name[step.entity.name.casefold()] > 1:
                    assert contains(one.question, str(step.entity.year)) or contains(one.question, step.entity.region)


@pytest.fixture(scope="module")
def full_size() -> World:
    return grow(Recipe(singles=0, open_singles=0, web_questions=2))


def test_a_reader_without_contexts_cannot_score(full_size: World) -> None:
    questions = [shipped.asked for shipped in full_size.questions["test"]]
    assert len(questions) >= 400
    share = Counter(one.kind for one in questions)
    guessable = 0.5 * (share["comparison_same"] + share["comparison_name"]) / len(questions)
    answers = Counter(one.answer for one in questions if one.answer not in ("yes", "no"))
    assert answers.most_common(1)[0][1] / len(questions) < 0.02
    assert guessable < 0.04
    said = Counter(one.answer for one in questions if one.kind == "comparison_same")
    assert abs(said["yes"] - said["no"]) <= 1


def test_the_mix_is_as_promised(full_size: World) -> None:
    assert sum(part for part, _ in MIX.values()) == pytest.approx(1)
    kinds = Counter(shipped.asked.kind for shipped in full_size.questions["test"])
    assert kinds == {kind: round(448 * share) for kind, (share, _) in MIX.items()}


def test_titles_repeat(world: World) -> None:
    titles = Counter(passage.title for passage in world.passages.values())
    assert sum(count > 1 for count in titles.values()) >= 3


def test_the_command_refuses_what_it_cannot_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    assert main(["--out", str(tmp_path), "--questions", "50"]) != 0
    assert "holds no world" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
    assert main(["--out", str(tmp_path / "new"), "--questions", "3"]) != 0
    assert "at least 50" in capsys.readouterr().err
    assert main(["--out", str(tmp_path / "new"), "--open-singles=-1"]) != 0
    assert "--open-singles -1: must not be negative" in capsys.readouterr().err
    assert main(["--out", str(tmp_path / "new"), "--questions", "50", "--singles", "20", "--web-questions", "4"]) == 0
    assert main(["--out", str(tmp_path / "new"), "--questions", "60", "--singles", "20", "--open-singles", "9"]) == 0
    recipe = json.loads((tmp_path / "new" / "world.json").read_text())["recipe"]
    assert (recipe["questions"], recipe["singles"], recipe["open_singles"]) == (60, 20, 9)
