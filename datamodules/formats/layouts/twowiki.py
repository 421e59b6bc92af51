"""Layout of 2WikiMultiHopQA (Ho et al., 2020; the `data_ids` release): HotpotQA's fields and evidence triples;
paragraphs are optional."""

from common.records import Question
from datamodules.formats.layouts.hotpotqa import CONSISTENT_FIELDS, REQUIRED_FIELDS, multi_hop_question
from datamodules.formats.row_fields import Row

__all__ = ["CONSISTENT_FIELDS", "REQUIRED_FIELDS", "SIGNATURE_FIELDS", "question"]

SIGNATURE_FIELDS = ("question", "supporting_facts", "evidences")


def question(row: Row) -> Question:
    """A question of 2WikiMultiHopQA, whose sentences do not start with a space.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    return multi_hop_question(row, between_sentences=" ")
