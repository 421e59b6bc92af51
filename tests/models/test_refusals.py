"""Models, tokenizers and options that do not fit: what is asked of them is refused in one line that says why."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
import yaml
from safetensors.torch import load_file, save_file
from tokenizers import processors
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

from common.errors import ArtifactError, DataError, MissingInputError, UserError
from common.records import Passage
from models.bigbird.attention import fuse, resolve_kind
from models.causal_lm import CausalLanguageModel
from models.context_tokenizer import ContextEncoder
from models.cross_encoder import TRUE_FALSE, RelevanceEstimator, load_scorer
from models.devices import compute_dtype, resolve_device
from models.dmqr.rewrite_tokenizer import RewriteEncoder, RewriteTask
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL, Pool
from models.dmqr.word_selector import WordSelector
from models.drrag.triple_classifier import TripleClassifier
from models.lora import Lora, add_adapter
from models.prompt_tokenizer import PromptEncoder
from models.quantization import check_base_bits
from models.rerag.parts import load_generator
from tests.conftest import save_t5, save_t5_tokenizer
from tests.helpers.mt5 import mt5_tokenizer, save_mt5
from tests.helpers.rerag_world import write_serving


class Folders:
    """Folders of models by their names."""

    def __init__(self, place: Path, request: pytest.FixtureRequest) -> None:
        self.place, self.made = place, request.getfixturevalue

    def __getattr__(self, name: str) -> str:
        return str(self.made(name) if name.endswith("_lm") else self.made("checkpoints")[name])

    def changed_t5(self, **config: Any) -> str:
        """A T5 whose configuration is changed; None takes a field out."""
        save_t5(self.place / "t5")
        file = self.place / "t5/config.json"
        written = json.loads(file.read_text()) | config
        file.write_text(json.dumps({key: value for key, value in written.items() if value is not None}))
        return str(self.place / "t5")

    def untied_t5_without_embeddings(self) -> str:
        """A T5 whose output layer is its own, in a file that has no embedding."""
        folder = Path(self.changed_t5(tie_word_embeddings=False))
        weights = load_file(folder / "model.safetensors")
        save_file({"lm_head.weight": weights.pop("shared.weight"), **weights}, folder / "model.safetensors", PT)
        return str(folder)

    def mt5(self, more: int = 0) -> str:
        """An mT5, whose vocabulary has "false" in two pieces; its tokenizer with so many tokens more."""
        save_mt5(self.place / "mt5")
        tokenizer = mt5_tokenizer()
        tokenizer.add_tokens([f"new{number}" for number in range(more)])
        tokenizer.save_pretrained(self.place / "mt5")
        return str(self.place / "mt5")

    def endless_tokenizer(self) -> Any:
        """A T5's tokenizer that does not end a text."""
        save_t5_tokenizer(self.place)
        tokenizer = AutoTokenizer.from_pretrained(self.place)
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B")
        return tokenizer

    def endless_lm(self) -> None:
        """A causal LM without an end token."""
        network, tokenizer = AutoModelForCausalLM.from_pretrained(self.chat_lm), tokenizer_of(self.chat_lm)
        network.config.eos_token_id = tokenizer.eos_token = None
        network.generation_config = transformers.GenerationConfig()
        CausalLanguageModel(network, tokenizer)

    def template(self, text: str) -> Any:
        """A chat model's tokenizer with another template."""
        tokenizer = tokenizer_of(self.chat_lm)
        tokenizer.chat_template = text
        return tokenizer

    def pool(self, text: str = "", **found: object) -> Pool:
        """A file with strategies of a user's own, or with a text."""
        (self.place / "pool.yaml").write_text(text or yaml.safe_dump(found))
        return Pool.load(self.place / "pool.yaml")

    def strategy(self, **changed: object) -> Pool:
        """A file whose one strategy is changed."""
        return self.pool(strategies=[OWN | changed])

    def demonstration(self, **changed: object) -> Pool:
        """A file whose one demonstration is changed; None takes a field out."""
        made = {"question": "q", "rewrites": {"kwr": "x"}, "reason": "r", **changed}
        return self.pool(demonstrations=[{key: value for key, value in made.items() if value is not None}])

    def labelled_bert(self, labels: int) -> str:
        """A BERT with a head of so many labels."""
        folder = self.place / "labelled"
        AutoModelForSequenceClassification.from_pretrained(self.bert, num_labels=labels).save_pretrained(folder)
        tokenizer_of(self.bert).save_pretrained(folder)
        return str(folder)

    def unknown_precision(self) -> object:
        """The variable that switches bf16 off holds another word."""
        self.made("monkeypatch").setenv("LIGHTNING_RAG_PRECISION", "bf8")
        return compute_dtype("auto", torch.device("cpu"))

    def said(self, folder: str, *words: str) -> RelevanceEstimator:
        """An estimator that says these words of relevance."""
        return RelevanceEstimator.build(folder, 64, label_words=words or TRUE_FALSE)

    def prompt(self, most: int, task: str) -> PromptEncoder:
        """The prompts of a causal LM."""
        return PromptEncoder(tokenizer_of(self.plain_lm), most, task, [0])

    def rewriter(self, name: str = "t5", most: int = 40, **options: Any) -> RewriterModel:
        """A generative rewriter."""
        return RewriterModel.build(getattr(self, name), most, 29, POOL, **options)

    def reader(self) -> str:
        """A serving folder without an estimator."""
        return str(write_serving(Path(self.t5), self.place / "reader", estimator=False))


tokenizer_of = AutoTokenizer.from_pretrained
PT = {"format": "pt"}
OWN = {"name": "hyde", "title": "Pseudo-Document", "description": "Write a passage.", "guideline": "for all."}
ROWS = [("Which stone ?", [Passage.of("lima", "opal"), Passage.of("", "jade")])]
Ask = Callable[[Folders], object]
REFUSED: dict[type[Exception], list[tuple[Ask, str]]] = {  # what is asked, and a word of the line
    UserError: [
        (lambda at: WordSelector.build(at.t5), "encoder"),
        (lambda at: WordSelector.build(at.bert, 129), "128 positions"),
        (lambda at: RelevanceEstimator.build(at.bert, 129), "128 positions"),
        (lambda at: at.rewriter("bert"), "'bert'"),
        (lambda at: at.rewriter("chat_lm", dropout=0.1), "dropout"),
        (lambda at: at.rewriter("plain_lm", 100), "128 tokens"),
        (lambda at: at.rewriter("plain_lm", no_repeat_ngram=2), "no_repeat_ngram"),
        *((lambda at, targets=targets: add_adapter(at.rewriter().network, "base", Lora(4, targets=targets)), word)
          for targets, word in ((["no"], "no layers of base"), (["q", "shared"], "shared of base"),
                                (["q", "embed_tokens"], "embed_tokens"),
                                (["q", "encoder.embed_tokens"], "encoder.embed_tokens"))),
        *((lambda at, name=name: add_adapter(at.rewriter().network, "base", Lora(4), name), f"'{name}'")
          for name in ("a.b", "a/b", "", "keys")),
        (lambda at: RewriteEncoder(tokenizer_of(at.bert), "seq2seq", 32, [1]), "does not end a text"),
        (lambda at: RewriteEncoder(at.template("{{ raise_exception('no') }}"), "chat", 32, [1]), "message: no"),
        (lambda at: RewriteEncoder(tokenizer_of(at.t5), "seq2seq", 4, [1])([RewriteTask("who is", "K")]), "max_tokens"),
        (lambda at: at.prompt(8, "relevance"), "no room"),
        (lambda at: check_base_bits(4, None), "model.base_bits"),
        (lambda at: fuse(AutoModel.from_pretrained(at.big_bird, attention_type="block_sparse")), "original_full"),
        (lambda at: resolve_kind("flash", 5), "block_sparse"),
        (lambda at: TripleClassifier.build(at.bert, 64, layers=3), "1..2"),
        (lambda at: TripleClassifier.build(at.big_bird, 64, layers=1), "layers"),
        (lambda at: RelevanceEstimator.build(at.bert, 96, layers=99), "layers 99"),
        (lambda at: RelevanceEstimator.build(at.t5, 96, layers=1), "layers 1"),
        (lambda at: RelevanceEstimator.build(at.labelled_bert(3), 64), "3 labels"),
        (lambda at: load_scorer(at.labelled_bert(3)), "3 labels"),
        (lambda at: load_scorer(at.t5), "T5ForConditionalGeneration"),
        (lambda at: load_scorer(at.bert), "BertModel"),
        (lambda at: at.said(at.mt5()), "'false' is ['▁fal', 'se']"),
        (lambda at: at.said(at.mt5()), 'here "yes" and "no"'),
        (lambda at: at.said(at.mt5(), "yes", "yes"), "the same"),
        (lambda at: at.said(at.mt5(), "yes", "nein"), "'nein'"),
        (lambda at: at.said(at.plain_lm, "opal green", "jade"), "opal green"),
        (lambda at: load_generator(at.bert), "'bert'"),
        (lambda at: load_generator(at.changed_t5(decoder_start_token_id=None)), "decoder_start_token_id"),
        (lambda at: load_generator(at.changed_t5(model_type="umt5")), "UMT5"),
        (lambda at: load_generator(at.mt5(20)), "its tokenizer has"),
        (lambda at: CausalLanguageModel.build(at.t5), "not a causal LM"),
        (lambda at: at.endless_lm(), "eos_token_id"),
        (lambda at: ContextEncoder(tokenizer_of(at.t5), 64, "sentence_pair"), "sentence_pair"),
        (lambda at: ContextEncoder(tokenizer_of(at.bert), 64, "fid"), "fid"),
        (lambda at: ContextEncoder(at.endless_tokenizer()), "</s>"),
        (lambda at: resolve_device("cuda", 0), "0 GPUs"),
        (lambda at: resolve_device("cuda:8", 8), "8 GPUs"),
        (lambda at: resolve_device("gpu", 8), "'gpu'"),
        (lambda at: resolve_device("cuda:-1", 8), "'cuda:-1'"),
        (lambda at: at.unknown_precision(), "LIGHTNING_RAG_PRECISION"),
        (lambda at: Pool().chosen(["kw"]), "'kw'"),
        (lambda at: Pool().chosen([]), "empty"),
        (lambda at: Pool().chosen(["kwr", "kwr"]), "twice"),
    ],
    ValueError: [(lambda at: at.prompt(64, "answer")(ROWS), "unpack")],
    ArtifactError: [
        (lambda at: load_generator(at.untied_t5_without_embeddings()), "shared.weight"),
        (lambda at: load_scorer(at.reader()), "estimator"),
    ],
    MissingInputError: [
        (lambda at: load_scorer("no/where"), "no/where"),
        (lambda at: load_scorer(at.place), "serving.json"),
        (lambda at: Pool.load(at.place / "none.yaml"), "none.yaml"),
    ],
    DataError: [
        (lambda at: at.pool(strategies=[{"name": "x"}]), "3 required"),
        (lambda at: at.strategy(titel="x"), "titel"),
        (lambda at: at.strategy(title="Keyword rewriting"), "kwr"),
        (lambda at: at.strategy(title="Reason"), "reason"),
        (lambda at: at.strategy(title="A: B"), "colon"),
        (lambda at: at.strategy(title="2. step"), "list"),
        (lambda at: at.strategy(guideline=3), "guideline"),
        (lambda at: at.strategy(description="a\nb"), "description"),
        (lambda at: at.strategy(several="no"), "several"),
        (lambda at: at.demonstration(rewrites={"kw": "x"}), "'kw'"),
        (lambda at: at.demonstration(selected=["gqr"]), "'gqr'"),
        (lambda at: at.demonstration(rewrites={"kwr": "x\ny"}), "one line"),
        (lambda at: at.demonstration(reason=None), "'reason'"),
        (lambda at: at.pool(demonstrations=3), "pool.yaml"),
        (lambda at: at.pool("a: ["), "pool.yaml"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("error", "ask", "word"),
    [pytest.param(error, *row, id=f"{row[1]}") for error, rows in REFUSED.items() for row in rows],
)
def test_it_is_refused(error, ask, word, tmp_path, request) -> None:
    with pytest.raises(error) as caught:
        ask(Folders(tmp_path, request))
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)
