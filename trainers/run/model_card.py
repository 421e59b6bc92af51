"""Model cards: the README.md of a serving folder."""

from collections.abc import Mapping
from typing import Any

DRRAG_CARD = """---
license: apache-2.0
library_name: transformers
pipeline_tag: text-classification
tags: [retrieval-augmented-generation, dr-rag, reranking]
---

# DR-RAG classifier C(q, d1, d2)

Predicts whether two documents together answer a question (DR-RAG, Eq. 2).  Label 1 is "positive"; the score is the logit
of label 1 minus the logit of label 0.  A pair is positive if its probability is at least {threshold:.4f}.

- Input: `{text_format}`, at most {max_tokens} tokens; passages are truncated, never the question.
- Initialized from `{pretrained}`; attention `{attention}`.
- Validation (a part of the training files held out by hash, or the file that the config names): {validation}.
- Data: {data}.

Load it with `models.drrag.triple_classifier.TripleClassifier.load(folder)`, or `classifier/` alone with transformers'
`AutoModelForSequenceClassification`.
"""


RERAG_CARD = """---
license: apache-2.0
library_name: transformers
tags: [retrieval-augmented-generation, re-rag, reranking, question-answering]
---

# RE-RAG: {models}

- Input: format `{text_format}` (an encoder-only estimator: question and passage as a sentence pair), at most {max_tokens}
  tokens; the passage is truncated, never the question.
- Relevance score: logit("true") - logit("false"), or the single logit of an encoder-only estimator.
- Calibration on validation: {calibration}; a question is unanswerable if P is below {threshold} for every context{weights}.
- Validation: {validation}.
- Data: {data}.

Load it with `models.rerag.model.ReRagModel.load(folder)`; each model also loads alone with transformers' Auto classes.
"""


T5_CARD = """---
license: apache-2.0
library_name: transformers
pipeline_tag: text2text-generation
tags: [t5, span-corruption]
---

# T5 trained on a corpus by span corruption

A checkpoint to fine-tune: it fills gaps in text and has learned no other task.  Name `t5/` as a trainer's starting point.

- Initialized from `{pretrained}`; learning rate {learning_rate:g}, schedule {schedule}.
- Validation (passages held out by hash): {validation}.
- Data: {data}.
"""


def model_card(
    template: str, values: Mapping[str, Any], metrics: Mapping[str, float], provenance: Mapping[str, Any]
) -> str:
    """Fill a template.

    Args:
        template: One of the cards above.
        values: What it names: the trainer's parameters and results.
        metrics: Of the validation.
        provenance: Stored beside the weights; `data` maps files to sha256.
    """
    figures = ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
    files = ", ".join(f"{path} (sha256 {digest[:12]})" for path, digest in provenance.get("data", {}).items())
    return template.format(**{**values, "validation": figures or "none yet", "data": files or "unnamed"})
