"""Loads RE-RAG's parts to train or to serve them: a generator, and causal LMs with an adapter for each part."""

from collections.abc import Mapping, Sequence

from models.causal_lm import CausalLanguageModel
from models.causal_part import load_causal, reads_prompts
from models.context_tokenizer import ContextEncoder, ContextFormat, is_packed
from models.lora import Lora
from models.pretrained import load_seq2seq
from models.rerag.causal_generator import CausalGenerator
from models.rerag.generator import GENERATOR, Generator, T5Generator


def load_generator(
    pretrained: str,
    max_tokens: int = 256,
    text_format: ContextFormat = "fid",
    answer_prefix: str = "",
    dropout: float | None = None,
    gradient_checkpointing: bool = False,
) -> Generator:
    """Load a generator for training or serving.

    Args:
        pretrained: Folder or hub id of a T5-family model, or of a causal LM.
        max_tokens: Maximum input length, in tokens.
        text_format: Input format of a T5, see `models.context_tokenizer`. A causal LM has its own by its tokenizer,
            see `models.prompt_tokenizer`; `packed` also has it read all passages at once.
        answer_prefix: Text before every answer.
        dropout: Rate of all dropout layers of a T5; the checkpoint's when None.
        gradient_checkpointing: Recompute activations in the backward pass.

    Raises:
        MissingInputError: If the model is not on this machine.
        UserError: If it generates no text, or an option does not fit it.
    """
    if reads_prompts(pretrained):
        lm = load_causal(pretrained, GENERATOR, dropout, gradient_checkpointing)
        return CausalGenerator(lm, max_tokens, answer_prefix, is_packed(text_format))
    network, tokenizer = load_seq2seq(pretrained, GENERATOR, dropout, gradient_checkpointing)
    return T5Generator(network, ContextEncoder(tokenizer, max_tokens, text_format), answer_prefix)


def load_adapted_lms(
    sources: Mapping[str, str],
    lora: Lora,
    frozen: Sequence[str] = (),
    dropout: float | None = None,
    gradient_checkpointing: bool = False,
) -> dict[str, CausalLanguageModel]:
    """The causal LMs with new adapters to train, by part; parts that start from the same one share it.

    Args:
        sources: Part -> folder or hub id of its model.
        lora: The adapters; with rank None there are none.
        frozen: Parts that are not trained: they get no adapter, and alone are not loaded.
        dropout: Of a T5; None here.
        gradient_checkpointing: Recompute activations in the backward pass.

    Raises:
        MissingInputError: If a model is not on this machine.
        UserError: If an option does not fit a causal LM.
    """
    lms: dict[str, CausalLanguageModel] = {}
    for source in dict.fromkeys(sources.values()) if lora.rank is not None else ():
        parts = [name for name, own in sources.items() if own == source]
        if reads_prompts(source) and (adapters := [name for name in parts if name not in frozen]):
            lm = load_causal(source, parts[-1], dropout, gradient_checkpointing, lora, adapters)
            lms |= dict.fromkeys(parts, lm)
    return lms
