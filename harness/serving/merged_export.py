"""Export of a serving folder's adapters, each merged into its base: whole models that transformers and vLLM load.

OUT/<part>/       config.json, model.safetensors, tokenizer.json; of a causal estimator also CrossEncoder's files
OUT/serving.json  kind "<kind>_merged", the files' SHA-256
OUT/README.md     the card's metadata, license included, and what the parts are

Shape legend: T tokens, V vocabulary.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import ModelCard
from jinja2 import Template
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from common.errors import ArtifactError, UserError
from common.files import read_json, whole_folder
from common.progress import Progress, say
from common.records import Passage
from harness.serving.hub import as_cross_encoder
from models.causal_cross_encoder import message_scores, message_tokenizer, write_modules
from models.cross_encoder import ESTIMATOR, FORMATS, load_estimator
from models.cross_encoder import KIND as RERAG
from models.dmqr.rewriter import KIND as REWRITER
from models.dmqr.rewriter import PART, RewriterModel, own_adapters, read_rewriter_manifest
from models.loading import load_network, save_network
from models.lora import AdapterUse, merged_weights
from models.prompt_tokenizer import PROMPT_FORMATS, PromptEncoder
from models.rerag.model import GENERATOR, ReRagModel
from models.serving_manifest import CARD, CURE, MANIFEST, card_metadata, write_manifest

PROBES = ("who directed it", "question: Where was the director of Jaws born?", "Steven Spielberg was born in Ohio.")
PAIRS = (("is it", "Tōkyō (1457)."), ("who", "42: is 1 of 3!"), ("Where was he born?", 'Jaws: A "film".'))
TOLERANCE_NATS = 1e-3  # of a token: merging adds in another order
CROSS_ENCODER_NATS = 1e-4  # of log-odds: a batch is padded


@dataclass(frozen=True)
class AdaptedPart:
    """A base with an adapter, which becomes a model of its own.

    Args:
        name: Of its folder.
        network: With the adapter among others, in fp32 on the CPU.
        tokenizer: Of the network.
        adapter: Its name in the network; None for the base alone.
    """

    name: str
    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    adapter: str | None


def _of_rewriter(serving: Path) -> Iterator[AdaptedPart | str]:
    """Each strategy's; a shared adapter is merged already."""
    names = own_adapters(read_rewriter_manifest(serving))
    if not names:
        yield PART
        return
    lm = RewriterModel.load(serving, "cpu", "fp32").lm
    yield from (AdaptedPart(name, lm.network, lm.tokenizer, name) for name in names)


def _of_rerag(serving: Path) -> Iterator[AdaptedPart | str]:
    """Estimator and generator, where they are causal LMs with an adapter each."""
    model = ReRagModel.load(serving, "cpu", precision="fp32")
    for name, part in ((ESTIMATOR, model.estimator), (GENERATOR, model.generator)):
        if part is None:
            continue
        if part.adapter is None:
            yield name
        else:
            yield AdaptedPart(name, part.network, part.encode.tokenizer, part.adapter.name)


# By the kind of the serving folder: its parts; the name alone of one that is whole already.
PARTS: dict[str, Callable[[Path], Iterator[AdaptedPart | str]]] = {REWRITER: _of_rewriter, RERAG: _of_rerag}


def export_merged(serving: Path, out: Path, tolerance_nats: float | None = None) -> dict[str, float]:
    """Write every part with its adapter merged in.

    Args:
        serving: Folder that training exported.
        out: Folder to write; an existing one is replaced: `infer.py export` checks that it is an earlier export.
        tolerance_nats: Maximum difference of a token's log-probability on the probes; 1e-3 when None.

    Returns:
        The maximum difference of each part, nats; 0 where nothing was to be merged.

    Raises:
        UserError: If the folder is of a kind without adapters.
        ArtifactError: If the difference exceeds the tolerance; nothing is written.
    """
    manifest = read_json(serving / MANIFEST, CURE)
    kind = str(manifest.get("kind"))
    if kind not in PARTS:
        raise UserError(f"--form merged is for {', '.join(PARTS)}, and {serving} holds a {kind}: it has no adapter.")
    most = TOLERANCE_NATS if tolerance_nats is None else tolerance_nats
    differences: dict[str, float] = {}
    with Progress(f"merging and checking {out}"), whole_folder(out) as folder:
        for part in PARTS[kind](serving):
            if isinstance(part, str):
                shutil.copytree(serving / part, folder / part)
                differences[part] = 0.0
                continue
            weights = merged_weights(part.network, part.adapter)
            save_network(part.network, folder / part.name, part.tokenizer, state_dict=weights)
            differences[part.name] = difference = _difference(part, folder / part.name)
            if not difference <= most:
                raise ArtifactError(
                    f"{out}: {part.name} differs by {difference:.1e} nats, allowed {most:.1e}: not written."
                )
        names = ", ".join(differences)
        text = f"Whole models, each with its adapter merged in: {names}. From a {kind} of Lightning RAG.\n"
        described, metadata = manifest.get("parts", {}).get(ESTIMATOR, {}), card_metadata(serving)
        if FORMATS.get(described.get("text_format", "")) in PROMPT_FORMATS:
            text += (usage := _as_cross_encoder(folder, described))
            if usage and metadata and names == ESTIMATOR:
                as_cross_encoder(data := ModelCard(metadata).data)
                metadata = f"---\n{data.to_yaml()}\n---\n\n"
        (folder / CARD).write_text(metadata + text, encoding="utf-8")
        copied = {key: manifest[key] for key in ("strategies", "base", "data", "versions", "commit") if key in manifest}
        write_manifest(folder, f"{kind}_merged", manifest["text_format"], manifest["max_tokens"], **copied)
    told = ", ".join(f"{name} ({difference:.1e} nats)" for name, difference in differences.items())
    print(f"{out}: {told}")
    return differences


def _as_cross_encoder(folder: Path, part: Mapping[str, Any]) -> str:
    """Give the merged causal estimator CrossEncoder's files, if these give its log-odds; returns its usage."""
    estimator = load_estimator(folder, {**part, "base": None}).eval()
    assert isinstance(estimator.encode, PromptEncoder)  # callers ask
    tokenizer, label_ids = message_tokenizer(estimator.encode), (estimator.true_id, estimator.false_id)
    known = {pair: (pair[0], Passage.of("", pair[1])) for pair in PAIRS}
    fit = [pair for pair, (asked, passage) in known.items() if not estimator.encode.inputs_cut_of([(asked, [passage])])]
    ours = estimator.scores([known[pair] for pair in fit])
    theirs = message_scores(estimator.network, tokenizer, fit, label_ids) if fit else []
    difference = max((abs(one - other) for one, other in zip(ours, theirs, strict=True)), default=inf)
    if not difference <= CROSS_ENCODER_NATS:
        say(
            f"{ESTIMATOR}: no modules.json for CrossEncoder, whose log-odds would differ by {difference:.1e} nats, "
            f"allowed {CROSS_ENCODER_NATS:.1e}: its positions or its tokenizer do not fit padded messages."
        )
        return ""
    write_modules(folder / ESTIMATOR, tokenizer, label_ids)
    plainly = AutoTokenizer.from_pretrained(folder / ESTIMATOR).backend_tokenizer.pre_tokenizer
    as_written = str(plainly) == str(tokenizer.backend_tokenizer.pre_tokenizer)
    true, false = tokenizer.convert_ids_to_tokens(list(label_ids))
    architecture = type(estimator.network).__name__.replace("ForCausalLM", "ForSequenceClassification")
    overrides: dict[str, Any] = {"architectures": [architecture], "classifier_from_token": [false, true]}
    overrides["method"] = "from_2_way_softmax"
    usage = Template(Path(__file__).with_name("merged_estimator_card.md").read_text(encoding="utf-8"))
    said = json.dumps(overrides, ensure_ascii=False)
    return "\n" + usage.render(max_tokens=estimator.encode.max_tokens, as_written=as_written, overrides=said)


@torch.inference_mode()
def _difference(part: AdaptedPart, folder: Path) -> float:
    """Largest difference of a token's log-probability between the adapter and the model in `folder`."""
    merged = load_network(type(part.network), folder, dtype=torch.float32).eval()
    differences = []
    for text in PROBES:
        ids = part.tokenizer(text, return_tensors="pt")["input_ids"]
        with AdapterUse(part.network, part.adapter).on():
            here_TV = _logp(part.network, ids)
        differences.append(float((here_TV - _logp(merged, ids)).abs().max()))
    return max(differences)


def _logp(network: PreTrainedModel, ids: Tensor) -> Tensor:
    inputs = {"input_ids": ids} | ({"decoder_input_ids": ids} if network.config.is_encoder_decoder else {})
    logp_TV: Tensor = network(**inputs).logits[0].log_softmax(dim=-1)
    return logp_TV
