"""2WikiMultiHopQA (Ho et al., 2020; the `data_ids` release): HotpotQA's keys and evidence triples, with its paragraphs
or questions only."""

from common.records import Question
from datamodules.fields import Row
from datamodules.formats.hotpotqa import REQUIRED, SETTLED, multi_hop_question

__all__ = ["REQUIRED", "SETTLED", "SIGNS", "question"]

SIGNS = ("question", "supporting_facts", "evidences")


def question(row: Row) -> Question:
    """A question of 2WikiMultiHopQA; its sentences bear no leading blank.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    return multi_hop_question(row, between_sentences=" ")
