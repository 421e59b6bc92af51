"""What the tests of RE-RAG's trainer share."""

import pytest

from tests.helpers.rerag_data import ReRagBench


@pytest.fixture
def rerag(tmp_path, checkpoints) -> ReRagBench:
    """Makes trainers and their data outside Lightning's Trainer."""
    return ReRagBench(tmp_path, checkpoints)
