"""The model card of a serving folder."""

from collections.abc import Mapping
from typing import Any

from models.drrag.triple_tokenizer import TEXT_FORMAT

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

Load it with `models.drrag.triple_classifier.TripleClassifier.load(folder)`, or `classifier/` alone with transformers'
`AutoModelForSequenceClassification`.
"""


RERAG_CARD = """---
license: apache-2.0
library_name: transformers
tags: [retrieval-augmented-generation, re-rag, reranking, question-answering]
---

# RE-RAG: {parts}

- Input: format `{text_format}` (an encoder-only estimator: question and passage as a sentence pair), at most {max_tokens}
  tokens; the passage is truncated, never the question.
- Relevance score: logit("true") - logit("false"), or the single logit of an encoder-only estimator.
- Calibration on validation: {calibration}; unanswerable below P = {threshold} for every context{weights}.
- Validation: {validation}.
- Data: {data}.

Load it with `models.rerag.model.ReRagModel.load(folder)`; each part also loads alone with transformers' Auto classes.
"""


T5_CARD = """---
license: apache-2.0
library_name: transformers
pipeline_tag: text2text-generation
tags: [t5, span-corruption]
---

# T5 trained on a corpus by span corruption

A starting point: it fills gaps in text, and a task is still to be learnt.  Name `t5/` as what a trainer starts from.

- Started from `{pretrained}`; learning rate {learning_rate:g}, schedule {schedule}.
- Validation (passages held out by hash): {validation}.
- Data: {data}.
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
        validation=_figures(validation),
        data=_files(facts),
    )


def rerag_card(
    hparams: Mapping[str, Any], validation: Mapping[str, float], learnt: Mapping[str, Any], facts: Mapping[str, Any]
) -> str:
    """Markdown of a RE-RAG folder.

    Args:
        hparams: The trainer's parameters.
        validation: Its metrics.
        learnt: Calibration, refusal threshold and temperature, as far as there are.
        facts: What the export stores beside the weights.
    """
    calibration, temperature = learnt.get("calibration"), learnt.get("relevance_temperature")
    parts = [part for part in ("estimator", "generator") if hparams[part]]
    return RERAG_CARD.format(
        parts=" and ".join(f"{part} (`{part}/`, from `{hparams[part]}`)" for part in parts),
        text_format=hparams["text_format"],
        max_tokens=hparams["max_tokens"],
        calibration="P = sigmoid({scale:.4g} score + {offset:.4g})".format(**calibration) if calibration else "none",
        threshold=learnt.get("refusal_threshold"),
        weights=f"; contexts weigh softmax(score / {temperature:.4g}) (`thorough`)" if temperature else "",
        validation=_figures(validation),
        data=_files(facts),
    )


def t5_card(hparams: Mapping[str, Any], validation: Mapping[str, float], facts: Mapping[str, Any]) -> str:
    """Markdown of a T5 trained by span corruption.  Arguments as `model_card`."""
    return T5_CARD.format(
        pretrained=hparams["pretrained"],
        learning_rate=hparams["learning_rate"],
        schedule=hparams["schedule"],
        validation=_figures(validation),
        data=_files(facts),
    )


def _figures(validation: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in validation.items()) or "none yet"


def _files(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{path} (sha256 {digest[:12]})" for path, digest in facts.get("data", {}).items()) or "unnamed"
