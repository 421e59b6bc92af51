"""2WikiMultiHopQA (Ho et al., 2020; the `data_ids` release): HotpotQA's keys and evidence triples, with its paragraphs
or questions only."""

from common.records import Question
from datamodules.formats.layouts.hotpotqa import REQUIRED, SETTLED, multi_hop_question
from datamodules.formats.row_fields import Row

__all__ = ["REQUIRED", "SETTLED", "SIGNS", "question"]

SIGNS = ("question", "supporting_facts", "evidences")


def question(row: Row) -> Question:
    """A question of 2WikiMultiHopQA; its sentences bear no leading blank.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    return multi_hop_question(row, between_sentences=" ")
