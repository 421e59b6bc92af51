"""Models, tokenizers and options that do not fit: what is asked of them is refused in one line that says why."""

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from tokenizers import processors
from transformers import AutoModelForCausalLM, AutoTokenizer, BigBirdModel, GenerationConfig

from common.errors import ArtifactError, UserError
from models.bigbird.attention import fuse
from models.causal_lm import CausalLanguageModel
from models.context_tokenizer import ContextEncoder
from models.cross_encoder import RelevanceEstimator
from models.dmqr.rewrite_tokenizer import RewriteEncoder
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.dmqr.word_selector import WordSelector
from models.drrag.triple_classifier import TripleClassifier
from models.lora import Lora, add_adapter
from models.quantization import check_base_bits
from models.rerag.parts import load_generator
from tests.conftest import save_t5, save_t5_tokenizer
from tests.helpers.mt5 import mt5_tokenizer, save_mt5


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
        written = {**json.loads(file.read_text()), **config}
        file.write_text(json.dumps({key: value for key, value in written.items() if value is not None}))
        return str(self.place / "t5")

    def untied_t5_without_embeddings(self) -> str:
        """A T5 whose output layer is its own, in a file that has no embedding."""
        folder = Path(self.changed_t5(tie_word_embeddings=False))
        weights = load_file(folder / "model.safetensors")
        save_file({"lm_head.weight": weights.pop("shared.weight"), **weights}, folder / "model.safetensors", PT)
        return str(folder)

    def mt5_of_more_tokens(self) -> str:
        """An mT5 whose tokenizer has tokens that its network lacks."""
        save_mt5(self.place / "mt5")
        tokenizer = mt5_tokenizer()
        tokenizer.add_tokens([f"new{number}" for number in range(20)])
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
        network.generation_config = GenerationConfig()
        CausalLanguageModel(network, tokenizer)

    def template(self, text: str) -> Any:
        """A chat model's tokenizer with another template."""
        tokenizer = tokenizer_of(self.chat_lm)
        tokenizer.chat_template = text
        return tokenizer


tokenizer_of = AutoTokenizer.from_pretrained
PT = {"format": "pt"}
WITHOUT_START, OF_UMT5 = {"decoder_start_token_id": None}, {"model_type": "umt5"}


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda at: WordSelector.build(at.t5), "not an encoder"),
        (lambda at: WordSelector.build(at.bert, 129), "beyond the 128 positions"),
        (lambda at: RewriterModel.build(at.bert, 40, 20, POOL), "is a 'bert', which generates no text"),
        (lambda at: RewriterModel.build(at.chat_lm, 40, 20, POOL, dropout=0.1), "dropout is for a T5"),
        (lambda at: RewriterModel.build(at.plain_lm, 100, 29, POOL), r"exceed the 128 tokens that .* reads and writes"),
        (lambda at: add_adapter(RewriterModel.build(at.t5, 40, 20, POOL).network, "base", Lora(4, targets=["no"])),
            r"lora.targets \['no'\] are no layers of base: omit them, or name some of"),
        *((lambda at, target=target: add_adapter(RewriterModel.build(at.t5, 40, 20, POOL).network, "base", Lora(4,
            targets=["q", target])), f"lora.targets .*: {target} of base looks words up")
            for target in ("shared", "embed_tokens", "encoder.embed_tokens")),
        (lambda at: load_generator(at.untied_t5_without_embeddings()), "lacks 1 weights .* such as shared.weight"),
        *((lambda at, name=name: add_adapter(RewriterModel.build(at.t5, 40, 8, POOL).network, "base", Lora(4), name),
            f"an adapter cannot be named '{name}'") for name in ("a.b", "a/b", "", "keys")),
        (lambda at: RewriteEncoder(tokenizer_of(at.bert), "seq2seq", 32, [1]), "does not end a text with its end"),
        (lambda at: RewriteEncoder(at.template("{{ raise_exception('no') }}"), "chat", 32, [1]),
            "refuses a user's message: no"),
        (lambda at: check_base_bits(4, None), r"model\.base_bits 4 needs LoRA, .* give model\.lora\.rank"),
        (lambda at: fuse(BigBirdModel.from_pretrained(at.big_bird, attention_type="block_sparse")),
            "only original_full"),
        (lambda at: TripleClassifier.build(at.bert, 64, layers=3), r"1\.\.2"),
        (lambda at: TripleClassifier.build(at.big_bird, 64, layers=1), "layers is for BERT"),
        (lambda at: RelevanceEstimator.build(at.bert, 96, layers=99), "layers 99 does not fit"),
        (lambda at: RelevanceEstimator.build(at.t5, 96, layers=1), "layers 1 does not fit"),
        (lambda at: load_generator(at.bert), "is a 'bert', not an encoder-decoder: name a T5-family model"),
        (lambda at: load_generator(at.changed_t5(**WITHOUT_START)), "has no decoder_start_token_id"),
        (lambda at: load_generator(at.changed_t5(**OF_UMT5)), r"is a UMT5, .* name an mT5"),
        (lambda at: load_generator(at.mt5_of_more_tokens()), r"its tokenizer has \d+ tokens, its network embeddings"),
        (lambda at: CausalLanguageModel.build(at.t5), "not a causal LM: name one"),
        (lambda at: at.endless_lm(), "no reply would end: add eos_token_id"),
        (lambda at: ContextEncoder(tokenizer_of(at.t5), 64, "sentence_pair"), "sentence_pair does not fit"),
        (lambda at: ContextEncoder(tokenizer_of(at.bert), 64, "fid"), "fid does not fit"),
        (lambda at: ContextEncoder(at.endless_tokenizer()), "does not end a text with </s>"),
    ],
)  # fmt: skip
def test_it_is_refused(ask, message, tmp_path, request) -> None:
    with pytest.raises((UserError, ArtifactError), match=message) as caught:
        ask(Folders(tmp_path, request))
    assert "\n" not in str(caught.value)
