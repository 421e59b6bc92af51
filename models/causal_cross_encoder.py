"""A causal LM that judges passages, as a CrossEncoder of sentence-transformers (6.2), whose files vLLM reads too.

chat_template.jinja               our prompt, from messages of the roles `query` and `document`; with BOS
additional_chat_templates/        the model's own template, which this project goes on reading (`models.loading`)
modules.json, 1_LogitScore/       the score: logit of the true word minus logit of the false word

Shape legend: P pairs, T tokens, V vocabulary.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from common.files import write_json
from models.loading import TRAINED
from models.pair_export import IDENTITY, LIBRARY_FILE, TRANSFORMER, TRANSFORMER_FILE, prefix_every_part, rebuilt
from models.prompt_tokenizer import PromptEncoder

LOGIT_SCORE = "1_LogitScore"
# Where our parts of a prompt meet: the tokenizer splits there, and drops it.  No text has this noncharacter of Unicode.
_MEETING = "\ufdd0"
# Of a family whose tokenizer is tokenizer.json as it stands: for Qwen2's, AutoTokenizer would make its parts anew.
AS_IT_STANDS = {"tokenizer_type": "granite"}
_TEMPLATE = """\
{%- macro text(role) -%}
{%- set content = (messages | selectattr("role", "equalto", role) | first).content -%}
{{- content if content is string else content[0].text -}}
{%- endmacro -%}
"""


def message_tokenizer(encode: PromptEncoder) -> PreTrainedTokenizerBase:
    """A copy of a causal LM's tokenizer, whose default chat template writes the prompt of a question and a passage.

    A prompt that is too long loses its beginning: that of the passage, where ours loses the passage's end.
    """
    state = json.loads(encode.tokenizer.backend_tokenizer.to_str())
    state["truncation"] = state["padding"] = None
    prefix_every_part(state["pre_tokenizer"])
    split = {"type": "Split", "pattern": {"String": _MEETING}, "behavior": "Removed", "invert": False}
    inner = [state["pre_tokenizer"]] if state["pre_tokenizer"] else []
    state["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, *inner]}
    backend = Tokenizer.from_str(json.dumps(state))
    tokenizer = rebuilt(encode.tokenizer, backend, encode.max_tokens, padding_side="left", truncation_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(encode.pad_id)
    head, middle, tail = (json.dumps(part, ensure_ascii=False) for part in encode.texts)
    meeting = json.dumps(_MEETING)
    parts = (head, meeting, 'text("document")', meeting, middle, 'text("query")', tail)
    template = _TEMPLATE + "".join(f"{{{{- {part} -}}}}" for part in parts)
    tokenizer.chat_template = {"default": template, TRAINED: encode.tokenizer.chat_template or ""}
    return tokenizer


@torch.inference_mode()
def message_scores(
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    pairs: Sequence[tuple[str, str]],
    label_ids: Sequence[int],
) -> list[float]:
    """Log-odds of (question, text) pairs in one batch, nats, as CrossEncoder computes them from the files."""
    messages = [[{"role": "query", "content": asked}, {"role": "document", "content": text}] for asked, text in pairs]
    batch = tokenizer.apply_chat_template(messages, padding=True, return_dict=True, return_tensors="pt")
    logits_PV = network(**batch, use_cache=False, logits_to_keep=1).logits[:, -1]
    scores: list[float] = (logits_PV[:, label_ids[0]] - logits_PV[:, label_ids[1]]).tolist()
    return scores


def write_modules(folder: Path, tokenizer: PreTrainedTokenizerBase, label_ids: Sequence[int]) -> None:
    """Write the files of sentence-transformers beside a causal LM's.

    Args:
        folder: Of the model.
        tokenizer: From `message_tokenizer`.
        label_ids: Of the true and the false word.
    """
    tokenizer.save_pretrained(folder)
    forward = {"method": "forward", "method_output_name": "logits"}
    modalities = {"text": forward, "message": {**forward, "format": "structured"}}
    task = {"transformer_task": "text-generation", "modality_config": modalities, "module_output_name": "causal_logits"}
    write_json(folder / TRANSFORMER_FILE, {**task, "processor_kwargs": AS_IT_STANDS})
    score = "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"
    write_json(folder / "modules.json", [TRANSFORMER, {"idx": 1, "name": "1", "path": LOGIT_SCORE, "type": score}])
    write_json(folder / LIBRARY_FILE, {"model_type": "CrossEncoder", **IDENTITY})
    (folder / LOGIT_SCORE).mkdir()
    true_id, false_id = label_ids
    logits = {"true_token_id": true_id, "false_token_id": false_id, "module_input_name": "causal_logits"}
    write_json(folder / LOGIT_SCORE / "config.json", logits)
