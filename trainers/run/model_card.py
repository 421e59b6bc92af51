"""Model cards: the README.md of a serving folder, with the metadata that the Hugging Face hub reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from datamodules.examples.splits import Source


@dataclass(frozen=True)
class Card:
    """Template of a model card.

    Args:
        tags: For the hub.
        starts: Parameters of the trainer that name the models it started from.
        body: Markdown with fields in braces.
    """

    tags: tuple[str, ...]
    starts: tuple[str, ...]
    body: str


DRRAG_CARD = Card(
    ("retrieval-augmented-generation", "dr-rag", "reranking"),
    ("pretrained",),
    """# DR-RAG classifier C(q, d1, d2)

Predicts whether two documents together answer a question (DR-RAG, Eq. 2).  The score is the log-odds of "positive", \
in nats.
A pair is positive if its probability is at least {threshold:.4f}.

- Input: `{text_format}`, at most {max_tokens} tokens.
- Initialized from `{pretrained}`; attention `{attention}`.
- Validation (a part of the training files held out by hash, or the file that the config names): {validation}.
- Data: {data}.

## Usage

{usage}

`models.drrag.triple_classifier.TripleClassifier.load(folder)` of Lightning RAG gives the same scores, cleans the \
texts, and shortens
both documents of a long pair evenly.
""",
)

RERAG_CARD = Card(
    ("retrieval-augmented-generation", "re-rag", "reranking", "question-answering"),
    ("estimator", "generator"),
    """# RE-RAG: {models}

- Input: format `{text_format}` (an encoder-only estimator: question and passage as a sentence pair), at most \
{max_tokens}
  tokens; the passage is truncated, never the question.
- Relevance score: logit("{true_word}") - logit("{false_word}"), or the single logit of an encoder-only estimator.
- Calibration on validation: {calibration}; {refusal}{weights}.
- Validation: {validation}.
- Data: {data}.

## Usage

{usage}

`models.rerag.model.ReRagModel.load(folder)` of Lightning RAG loads all parts with the calibration.
""",
)

_REWRITER = """# DMQR-RAG query rewriter: {strategies}

Rewrites a question into search queries, by the strategy that the input names, with the earlier turns of a dialogue if \
there are any.

- Input: format `{text_format}`, at most {max_tokens} tokens; the oldest words of the history are left out first, the \
question never.
- Output: at most {max_rewrite_tokens} tokens; several queries of a decomposition are separated by semicolons.
- Trained: {trained}, from `{pretrained}`, TRAINED_ON.
- Validation (dialogues held out by hash, or the file that the config names; SCORES): {validation}.
- Data: {data}.

## Usage

{usage}

`models.dmqr.rewriter.Rewriter.load(folder)` of Lightning RAG writes the same queries and adds the history.
"""


def _rewriter_card(trained_on: str, scores: str) -> Card:
    tags = "retrieval-augmented-generation", "dmqr-rag", "query-rewriting"
    return Card(tags, ("pretrained",), _REWRITER.replace("TRAINED_ON", trained_on).replace("SCORES", scores))


DMQR_CARD = _rewriter_card("on given rewrites", "exact match and token F1 in percent")
DMQR_DPO_CARD = _rewriter_card(
    "on the rewards of sampled rewrites, by direct preference optimization",
    "rewards in the units of the preferences, KL in nats",
)

_WORDS = """# DMQR-RAG extractive rewriter

Decides which words of a question stay in a search query, and which words of a passage that the question has found \
join it.

- Input: `{text_format}`, at most {max_tokens} tokens; the passage is truncated, never the question.
- Output: two logits per token, log-odds in nats: 0 "stays" (words of the question), 1 "joins" (words of the passage).
- Trained: all weights, from `{pretrained}`, on TRAINED_ON.
- Validation (questions held out by hash, or the file that the config names): {validation}.
- Data: {data}.

## Usage

{usage}

`harness.rewriters.extractive.ExtractiveRewriter` of Lightning RAG makes queries of them.
"""


def _words_card(trained_on: str) -> Card:
    tags = "retrieval-augmented-generation", "dmqr-rag", "query-rewriting"
    return Card(tags, ("pretrained",), _WORDS.replace("TRAINED_ON", trained_on))


WORDS_CARD = _words_card("how retrieval changes with and without each word")

CHOICE_CARD = Card(
    ("retrieval-augmented-generation", "dmqr-rag", "query-rewriting"),
    ("pretrained",),
    """# DMQR-RAG adaptive choice: {names}

Predicts for a question by which rewriting strategies a rewrite will add relevant passages to what the question finds.

- Input: `{text_format}`, at most {max_tokens} tokens; the oldest words of earlier turns are left out first, the \
question never.
- Output: one logit per strategy, log-odds in nats.  A strategy is chosen if its probability is at least \
{threshold:.4f}: the highest
  threshold that keeps {kept_gain:.0%} of the validation questions' best gains.
- Trained: from `{pretrained}`, on how retrieval changed with each strategy's rewrite.  It holds for that rewriter and \
that retriever.
- Validation (questions held out by hash, or the folder that the config names): {validation}.
- Data: {data}.

## Usage

{usage}

`harness.rewriters.adaptive.AdaptiveRewriter` of Lightning RAG asks a rewriter for the chosen strategies only.
""",
)

T5_CARD = Card(
    ("t5", "span-corruption"),
    ("pretrained",),
    """# T5 trained on a corpus by span corruption

A checkpoint to fine-tune: it fills gaps in text and has learned no other task.  Name `t5/` as a trainer's starting \
point.

- Initialized from `{pretrained}`; learning rate {learning_rate:g}, schedule {schedule}.
- Validation (passages held out by hash): {validation}.
- Data: {data}.

## Usage

{usage}
""",
)


def refusal_sentence(fitted: Mapping[str, Any]) -> str:
    """How RE-RAG's refusal threshold was chosen, from what its validation fitted."""
    if fitted.get("refusal_threshold") is None:
        return "no refusal threshold (validation had questions of one kind only)"
    cost = fitted.get("refusal_cost")
    chosen = "by F1" if cost is None else f"by lowest cost, where a wrong refusal costs {cost:g} wrong answers"
    return (
        f"a question is unanswerable if P is below {fitted['refusal_threshold']:g} for each of its best "
        f"{fitted.get('refusal_contexts')} contexts (chosen {chosen})"
    )


def hub_ids(names: Sequence[str]) -> list[str]:
    """The names of models that are hub ids: a folder on this machine is none."""
    return [name for name in dict.fromkeys(names) if not Path(name).expanduser().is_dir()]


def hub_datasets(sources: Sequence[Source]) -> list[str]:
    """Hub ids of data sets: of sources that name theirs, or are read from the hub (hf:<id>[:<config>]:<split>)."""
    named = [s.path.split(":")[1] if s.path.startswith("hf:") else s.dataset for s in sources]
    return [name for name in dict.fromkeys(named) if name]


def model_card(
    card: Card,
    task: str,
    values: Mapping[str, Any],
    sources: Sequence[Source],
    metrics: Mapping[str, float],
    provenance: Mapping[str, Any],
) -> str:
    """Fill a template and put the hub's metadata before it.

    Args:
        card: One of the cards above.
        task: The hub's name of the task (`pipeline_tag`).
        values: What the template names: the trainer's parameters and results.
        sources: Files that the model was trained on.
        metrics: Of the validation.
        provenance: Stored beside the weights; `data` maps files to sha256.
    """
    header = {
        "license": "apache-2.0",
        "library_name": "transformers",
        "pipeline_tag": task,
        "language": sorted({source.language for source in sources}),
        "base_model": hub_ids([values[name] for name in card.starts if values[name]]),
        "datasets": hub_datasets(sources),
        "tags": list(card.tags),
    }
    front = yaml.safe_dump({key: value for key, value in header.items() if value}, sort_keys=False, allow_unicode=True)
    figures = ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
    files = ", ".join(f"{path} (sha256 {digest[:12]})" for path, digest in provenance.get("data", {}).items())
    body = card.body.format(**{**values, "validation": figures or "none yet", "data": files or "unnamed"})
    return f"---\n{front}---\n\n{body}"
