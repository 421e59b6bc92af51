"""DMQR-RAG's pool: prompts as the paper prints them, a strict parser, and a user's own strategies."""

import time
from pathlib import Path
from string import Template

import yaml
from hypothesis import given
from hypothesis import strategies as st

from common.records import clean
from models.dmqr.rewrite_outputs import REASON, parse_output, queries_of
from models.dmqr.strategies import DEMONSTRATIONS, PAPER, POOL, Demonstration, Pool

OWN = {"name": "hyde", "title": "Pseudo-Document", "description": "Write a passage.", "guideline": "for all."}
FOUR = Pool().chosen(PAPER)
ALL = list(POOL.values())


def test_the_paper_s_prompt_for_four_rewrites() -> None:
    """Table 5 sentence by sentence; only the task's sentence and the output format, which Table 1 has, differ."""
    prompt = Pool(demonstrations=DEMONSTRATIONS[:1]).rewriting_prompt(PAPER)
    for part in (
        "### Instruction ###\nYou will receive a user's question that requires retrieving relevant content through "
        "internet search to provide an answer. There are now the following 4 rewriting methods, General Search "
        "Rewriting, Keyword Rewriting, Pseudo-Answer Rewriting, Core Content Extraction.",
        "### General Search Rewriting ###\nRewrite the question into a general query for internet search.",
        "### Keyword Rewriting ###\nExtract all keywords from the question and separate them with commas, preserving "
        "the amount of information as in the original question.",
        "### Pseudo-Answer Rewriting ###\nGenerate an answer for the question, and use the answer to match the real "
        "answers from the search engine.",
        "### Core Content Extraction ###\nReduce the amount of information in the original question, only extracting "
        "the most core content. The rewritten query should be more brief than Keyword Rewriting.",
        "### Example ###\nQuestion: Which city was the site where the armistice agreement officially ending World War "
        "I was signed?\n"
        "Output:\nGeneral Search Rewriting: City where World War I armistice agreement was signed\n"
        "Keyword Rewriting: World War I, Armistice, Signing Location\n"
        "Pseudo-Answer Rewriting: The armistice that ended World War I was signed in the city of Compiègne.\n"
        "Core Content Extraction: World War I armistice signing city\n\n"
        "Begin! Only output the final result without any additional content. Do not generate any other unrelated "
        "content.\nQuestion: ${question}\nOutput:",
    ):
        assert part in prompt
    assert REASON not in prompt.lower()


def test_the_printed_prompt_is_table_5_word_for_word() -> None:
    parts = Pool.of_paper().printed_prompt().split("\n\n")
    assert parts[0].endswith(
        "There are now the following four rewriting methods, General Search Rewriting, Keyword Rewriting, "
        "Pseudo-Answer Rewriting, Core Content Extraction. Please apply four rewriting methods to rewrite the question."
    )
    heads = [part.splitlines()[0] for part in parts]
    names = ("Instruction", *(each.title for each in FOUR), "Example")  # no output format
    assert heads[:-1] == [f"### {name} ###" for name in names]
    assert parts[5].count("Question:") == 1
    ours = Pool(demonstrations=DEMONSTRATIONS[:1]).rewriting_prompt(PAPER).split("\n\n")
    assert [part for part in ours if not part.startswith("### Output Format")][1:] == parts[1:]
    assert "${history}" in Pool.of_paper().printed_prompt(dialogue=True)


def test_what_the_prompts_show_parses() -> None:
    for names in (PAPER, tuple(POOL)):
        chosen = Pool().chosen(names)
        for prompt in (Pool().rewriting_prompt(names), Pool().selection_prompt(names)):
            assert Template(prompt).is_valid()
            for output in prompt.partition("### Example ###")[2].partition("Begin!")[0].split("Output:\n")[1:]:
                parsed = parse_output(output.partition("\n\nQuestion:")[0], chosen)
                assert parsed.queries
                assert not parsed.malformed
    decomposed = parse_output(Pool().rewriting_prompt(["decomposition"]).partition("Output:\n")[2].splitlines()[0], ALL)
    assert len(decomposed.queries["decomposition"]) == 2


ANY = st.characters(codec="utf-8", exclude_characters=";:*", exclude_categories=["Cs", "Cc", "Zl", "Zp"])
words = st.text(ANY, max_size=30)


@given(st.dictionaries(st.sampled_from(PAPER), words), words, st.sampled_from(["", "- ", "2. ", "* ", "3) "]))
def test_lines_in_the_form_that_was_asked_for_parse_whatever_they_hold(rewrites, reason, mark) -> None:
    lines = [f"{mark}{POOL[name].title}: {text}" for name, text in rewrites.items()]
    parsed = parse_output("\n".join([*lines, f"{REASON}: {reason}"]), FOUR)
    expected = {name: (clean(text),) for name, text in rewrites.items() if queries_of(text, False)}
    assert parsed.queries == expected
    assert parsed.reason == clean(reason)
    assert len(parsed.malformed) == len(rewrites) - len(expected) + (not clean(reason))


@given(st.text(max_size=300))
def test_any_text_is_parsed_into_the_strategies_asked_for(text) -> None:
    parsed = parse_output(text, ALL)
    assert set(parsed.queries) <= set(POOL)
    assert all(queries and all(query == clean(query) != "" for query in queries) for queries in parsed.queries.values())
    lines = [line for line in text.splitlines() if line.strip()]
    assert len(parsed.queries) + len(parsed.malformed) + bool(parsed.reason) == len(lines)


def test_a_hostile_line_takes_no_time() -> None:
    began = time.perf_counter()
    for line in (" " * 20_000 + "x", "1" * 20_000, "*" * 20_000, "- " * 10_000, "a " * 10_000):
        assert not parse_output(line, FOUR).queries
    assert time.perf_counter() - began < 2


def test_a_line_that_is_wrong_is_malformed_and_the_first_of_two_counts() -> None:
    wrong = (
        "Sure, here you are!",
        "keyword rewriting: other",
        "General Search Rewriting:",
        "Stepback Rewriting: films",
    )
    right = ("**Keyword Rewriting:** jaws, director", "2. **Core Content Extraction**: jaws")
    parsed = parse_output("\n".join([wrong[0], right[0], *wrong[1:], right[1]]), FOUR)
    assert parsed.queries == {"kwr": ("jaws, director",), "cce": ("jaws",)}
    assert parsed.malformed == wrong
    chinese = "1\uff0e Sub-Question Decomposition： 5 m²\uff1b 5 m2; \uff21 b"  # as models write among it
    assert parse_output(chinese, ALL).queries == {"decomposition": ("5 m²", "\uff21 b")}
    assert parse_output("Sub-Question Decomposition: a; b;a ; ; c", ALL).queries == {"decomposition": ("a", "b", "c")}


def write(folder: Path, **found: object) -> Path:
    file = folder / "pool.yaml"
    file.write_text(yaml.safe_dump(found))
    return file


def test_a_user_s_own_strategy_joins_the_pool(tmp_path) -> None:
    pool = Pool.load(write(tmp_path, strategies=[OWN]))
    assert list(pool.strategies) == [*POOL, "hyde"]
    prompt = pool.rewriting_prompt(["hyde", "kwr"])
    assert "### Pseudo-Document ###\nWrite a passage." in prompt
    assert "### Example ###" not in prompt  # no demonstration has it
    assert parse_output("pseudo-document: A passage.", pool.chosen(["hyde"])).queries == {"hyde": ("A passage.",)}
    shown = {"question": "q?", "rewrites": {"hyde": "p", "kwr": "k: $5"}, "reason": "r"}
    pool = Pool.load(write(tmp_path, strategies=[{**OWN, "several": True}], demonstrations=[shown]))
    assert pool.demonstrations == (Demonstration("q?", {"hyde": "p", "kwr": "k: $5"}, ("hyde", "kwr"), "r"),)
    selection = Template(pool.selection_prompt(["hyde", "kwr"])).substitute(question="x")
    assert "Pseudo-Document: p\nKeyword Rewriting: k: $5\n" in selection


def test_the_pool_that_the_docs_show_loads(tmp_path) -> None:
    page = (Path(__file__).parents[3] / "docs/train_rewriter.md").read_text()
    (tmp_path / "pool.yaml").write_text(page.partition("```yaml\n")[2].partition("```")[0])
    pool = Pool.load(tmp_path / "pool.yaml")
    assert list(pool.strategies) == [*POOL, "stepback"]
    assert "Step-Back Question: Which positions has Knox" in pool.selection_prompt(["stepback", "kwr"])
