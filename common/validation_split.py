"""The hash split: which questions a training without validation files holds out."""

import hashlib

from common.records import Question, nfkc


def validation_share(question: Question) -> float:
    """Hash of the question's text as a number in [0, 1); questions below the validation fraction are held out."""
    digest = hashlib.sha256(nfkc(question.text).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
