"""RE-RAG's tables where a language model reads, worked out by hand on invented pools."""

import pytest

from harness.evaluation.rerag.tables import ABLATION, Scoring, ablation_table, llm_table, read_settings
from tests.helpers.candidate_sets import FEW, POOLS, values

pytestmark = pytest.mark.numeric
FAST = Scoring("squad", FEW, ("fast",))


def test_table_6_by_hand() -> None:
    table = llm_table(POOLS, FAST, 12, "nq")
    assert table.columns == ("EM %, top-5", "EM %, top-10")  # no pool has more than three contexts
    # the retriever's weights are right about the last pool alone, the estimator's about the first two
    assert values(table, "LLM w/ retriever") == [25, 25]
    assert values(table, "LLM w/ RE") == [50, 50]
    assert values(table, "RE - retriever") == [25, 25]
    assert [cell.value for cell in table.paper["GPT w/ RE"]] == [48.8, 49.3]
    assert [cell.value for cell in table.paper["GPT w/ Retriever"]] == [41.7, 42.9]


def test_table_6_with_other_numbers_of_contexts() -> None:
    table = llm_table(POOLS, FAST, 1, "nq")
    assert table.columns == ("EM %, top-1",)
    assert values(table, "LLM w/ retriever") == [50]  # its first context knows in two pools
    assert values(table, "LLM w/ RE") == [50]
    assert table.paper == {}  # the paper has no such figure
    table = llm_table(POOLS, FAST, 7, "nq")
    assert table.columns == ("EM %, top-5", "EM %, top-7")
    assert [cell and cell.value for cell in table.paper["GPT w/ RE"]] == [48.8, None]


@pytest.mark.parametrize("marginals", [("fast",), ("thorough", "fast")])
def test_the_ablation_of_a_language_model_stands_alone(marginals: tuple) -> None:
    """The paper's rows are of trained generators; `fast` alone has half as many columns."""
    scoring = Scoring("squad", FEW, marginals)
    table = ablation_table(POOLS, read_settings(POOLS, 2, marginals), scoring, 2, "nq", by_llm=True)
    assert list(table.rows) == list(ABLATION)
    assert len(table.columns) == 2 * len(marginals)
    assert table.paper == {}
    assert "trained in all but" not in table.note
    assert "baseline_serving" not in table.note
