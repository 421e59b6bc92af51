"""Code on model cards: how transformers and sentence-transformers use the exported folders.

Tests run it word for word.
"""

from collections.abc import Sequence

from models.dmqr.choice import PART as PART_OF_CHOOSER
from models.dmqr.choice import StrategyChooser
from models.dmqr.rewriter import ADAPTER, Rewriter
from models.dmqr.rewriter import PART as PART_OF_REWRITER
from models.dmqr.word_selector import PART as PART_OF_SELECTOR
from models.dmqr.word_selector import WordSelector
from models.drrag.triple_classifier import PART, TripleClassifier
from models.rerag.context_tokenizer import ContextFormat
from models.rerag.estimator import RelevanceEstimator
from models.rerag.generator import Generator
from models.rerag.model import ESTIMATOR, GENERATOR

PROMPTS: dict[ContextFormat, str] = {  # one text per (title, text), as `models.rerag.context_tokenizer` writes it
    "fid": 'f"question: {question} title: {title} context: {text}"',
    "re_rag_train": 'f"question: {question}context: {title}.{text}"',
    "re_rag_release": 'f"question: {question}context: {title}. {text}"',
}
QUESTION = 'question = "Where was the director of Jaws born?"'
PASSAGES = """passages = [
    ("Jaws (film)", "Jaws is a 1975 thriller directed by Steven Spielberg."),
    ("Steven Spielberg", "Steven Spielberg was born in Cincinnati, Ohio."),
    ("Cincinnati", "Cincinnati is a city in Ohio."),
]"""
IMPORTS = """import torch
from transformers import {kind}, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{part}")
network = {kind}.from_pretrained("{part}").eval()"""
CLEAN = (
    "In this folder.  Texts are in Unicode's NFKC form with single blanks between words, and contain no special tokens."
)
CROSS_ENCODER = """```python
from sentence_transformers import CrossEncoder

model = CrossEncoder("{part}")
scores = model.predict([(question, text) for text in texts])  # {score}, nats
ranking = model.rank(question, texts)
```"""


def classifier_usage(classifier: TripleClassifier) -> str:
    """Markdown with the calls that score a question with pairs of documents."""
    padding = "padding=True"
    if classifier.sparse:
        length = classifier.padded_length(classifier.encode.max_tokens)
        padding = f'padding="max_length", max_length={length}'
    separator = classifier.encode.tokenizer.sep_token
    return f"""{CLEAN}
The tokenizer cuts a pair after {classifier.encode.max_tokens} tokens, at its end: shorten both documents of a longer \
pair first.

```python
{IMPORTS.format(kind="AutoModelForSequenceClassification", part=PART)}

{QUESTION}
{PASSAGES}
documents = [f"{{title}}. {{text}}" if title else text for title, text in passages]
texts = [f"{{first}} {separator} {{second}}" for first in documents for second in documents if first != second]
batch = tokenizer([question] * len(texts), texts, truncation=True, {padding}, return_tensors="pt")
with torch.inference_mode():
    log_odds = network(**batch).logits[:, 0]
positive = log_odds.sigmoid() >= {classifier.threshold!r}
```

{CROSS_ENCODER.format(part=PART, score="log-odds")}"""


def estimator_usage(estimator: RelevanceEstimator) -> str:
    """Markdown with the calls that score a question with passages."""
    if estimator.generative:
        return f"""{CLEAN}  The score is the difference of two logits of the first decoder step.

```python
{IMPORTS.format(kind="AutoModelForSeq2SeqLM", part=ESTIMATOR)}

{QUESTION}
{PASSAGES}
texts = [{PROMPTS[estimator.encode.format]} for title, text in passages]
batch = tokenizer(texts, truncation=True, padding=True, return_tensors="pt")
start = torch.full((len(texts), 1), network.config.decoder_start_token_id)
with torch.inference_mode():
    logits = network(**batch, decoder_input_ids=start).logits[:, 0]
relevance = logits[:, {estimator.true_id}] - logits[:, {estimator.false_id}]  # "{estimator.label_words[0]}" and \
"{estimator.label_words[1]}"
```"""
    return f"""{CLEAN}

```python
{IMPORTS.format(kind="AutoModelForSequenceClassification", part=ESTIMATOR)}

{QUESTION}
{PASSAGES}
texts = [f"{{title}}. {{text}}" if title else text for title, text in passages]
batch = tokenizer([question] * len(texts), texts, truncation="only_second", padding=True, return_tensors="pt")
with torch.inference_mode():
    relevance = network(**batch).logits[:, 0]
```

{CROSS_ENCODER.format(part=ESTIMATOR, score="relevance")}"""


def generator_usage(generator: Generator, max_answer_tokens: int) -> str:
    """Markdown with the calls that read passages."""
    texts = """documents = [f"document {i}: {title}. {text}" for i, (title, text) in enumerate(passages, start=1)]
texts = [f'question: {question} {" ".join(documents)}']"""
    if not generator.encode.packed:
        texts = f"texts = [{PROMPTS[generator.encode.format]} for title, text in passages]"
    return f"""The generator's answer to every text:

```python
{IMPORTS.format(kind="AutoModelForSeq2SeqLM", part=GENERATOR)}

{QUESTION}
{PASSAGES}
{texts}
batch = tokenizer(texts, truncation=True, padding=True, return_tensors="pt")
with torch.inference_mode():
    ids = network.generate(**batch, max_new_tokens={max_answer_tokens})
answers = tokenizer.batch_decode(ids, skip_special_tokens=True)
```"""


def rerag_usage(estimator: RelevanceEstimator | None, generator: Generator | None, max_answer_tokens: int) -> str:
    """Markdown with the calls of the parts that there are."""
    parts = [estimator_usage(estimator)] if estimator is not None else []
    parts += [generator_usage(generator, max_answer_tokens)] if generator is not None else []
    return "\n\n".join(parts)


def rewriter_usage(rewriter: Rewriter, strategies: Sequence[str]) -> str:
    """Markdown with the calls that rewrite a question by the first of these strategies."""
    title = rewriter.strategies[strategies[0]].title
    kind = "AutoModelForSeq2SeqLM" if rewriter.format == "seq2seq" else "AutoModelForCausalLM"
    inputs = {
        "seq2seq": 'tokenizer(text, truncation=True, return_tensors="pt")',
        "chat": (
            'tokenizer.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True, '
            'return_tensors="pt")'
        ),
        "plain": 'tokenizer(f"{text}\\n", return_tensors="pt")',
    }[rewriter.format]
    loading = IMPORTS.format(kind=kind, part=PART_OF_REWRITER)
    if rewriter.adapters is not None:
        loading = loading.replace("import torch\n", "import torch\nfrom peft import PeftModel\n", 1)
        loading += f'\nnetwork = PeftModel.from_pretrained(network, "{ADAPTER}/{strategies[0]}").eval()'
    start = "" if rewriter.format == "seq2seq" else '[batch["input_ids"].shape[1] :]'
    options = f", no_repeat_ngram_size={rewriter.no_repeat_ngram}" if rewriter.no_repeat_ngram else ""
    return f"""{CLEAN}

```python
{loading}

{QUESTION}
text = f"strategy: {title} question: {{question}}"
batch = {inputs}
with torch.inference_mode():
    ids = network.generate(**batch, max_new_tokens={rewriter.max_rewrite_tokens}, do_sample=False{options})
query = tokenizer.decode(ids[0]{start}, skip_special_tokens=True)
```"""


def selector_usage(selector: WordSelector) -> str:
    """Markdown with the calls that score the words of a question and a passage."""
    return f"""{CLEAN}  A word's score is that of its first token; words are the longest runs of letters and digits.

```python
{IMPORTS.format(kind="AutoModelForTokenClassification", part=PART_OF_SELECTOR)}

{QUESTION}
text = "Jaws (film). Jaws is a 1975 thriller directed by Steven Spielberg."
batch = tokenizer(question, text, truncation="only_second", return_offsets_mapping=True, return_tensors="pt")
spans = batch.pop("offset_mapping")[0].tolist()
with torch.inference_mode():
    probabilities = network(**batch).logits[0].sigmoid().tolist()
parts = batch.sequence_ids(0)  # 0: the question, 1: the passage
stays = [(question[start:end], stay) for (start, end), (stay, _), part in zip(spans, probabilities, parts) if part == 0]
joins = [(text[start:end], join) for (start, end), (_, join), part in zip(spans, probabilities, parts) if part == 1]
```"""


def chooser_usage(chooser: StrategyChooser) -> str:
    """Markdown with the calls that choose strategies for a question."""
    return f"""{CLEAN}

```python
{IMPORTS.format(kind="AutoModelForSequenceClassification", part=PART_OF_CHOOSER)}

{QUESTION}
batch = tokenizer(question, return_tensors="pt")
with torch.inference_mode():
    probabilities = network(**batch).logits[0].sigmoid().tolist()
chosen = [network.config.id2label[label] for label, p in enumerate(probabilities) if p >= {chooser.threshold!r}]
```"""


def t5_usage(part: str) -> str:
    """Markdown with the calls that fill gaps."""
    return f"""```python
{IMPORTS.format(kind="AutoModelForSeq2SeqLM", part=part)}

batch = tokenizer("Jaws is a film of <extra_id_0> by Steven <extra_id_1>.", return_tensors="pt")
with torch.inference_mode():
    ids = network.generate(**batch, max_new_tokens=20)
filled = tokenizer.decode(ids[0])
```"""
