"""The model card of a serving folder."""

from collections.abc import Mapping
from typing import Any

from models.triples import TEXT_FORMAT

CARD = """---
license: apache-2.0
library_name: transformers
pipeline_tag: text-classification
tags: [retrieval-augmented-generation, dr-rag, reranking]
---

# DR-RAG classifier C(q, d1, d2)

Says whether two documents together are what answers a question (DR-RAG, Eq. 2).  Label 1 is "positive"; the score is
the logit of label 1 minus the logit of label 0, and a pair counts as positive from probability {threshold:.4f} on.

- Input: `{text_format}`, at most {max_tokens} tokens; passages are truncated, never the question.
- Started from `{pretrained}`; attention `{attention}`.
- Validation (a part of the training files held out by hash, or the file the config names): {validation}.
- Data: {data}.

Load it with `models.classifier.TripleClassifier.load(folder)`, or `classifier/` alone with transformers'
`AutoModelForSequenceClassification`.
"""


def model_card(hparams: Mapping[str, Any], validation: Mapping[str, float], facts: Mapping[str, Any]) -> str:
    """Markdown with the facts a user of the folder needs.

    Args:
        hparams: The trainer's parameters.
        validation: Metrics the threshold was chosen by.
        facts: What the export stores beside the weights; `data` maps files to sha256.
    """
    return CARD.format(
        threshold=validation.get("threshold", 0.5),
        text_format=TEXT_FORMAT,
        max_tokens=hparams["max_tokens"],
        pretrained=hparams["pretrained"],
        attention=hparams["attention"],
        validation=", ".join(f"{name} {value:.4g}" for name, value in validation.items()) or "none yet",
        data=", ".join(f"{path} (sha256 {digest[:12]})" for path, digest in facts.get("data", {}).items()) or "unnamed",
    )
