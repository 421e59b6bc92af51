"""ONNX export of a serving folder's encoder: any batch size and length, verified against the PyTorch model.

OUT/model.onnx    the encoder; its inputs are what the tokenizer beside it gives
OUT/onnx/*.onnx   in its place, with `int8`: linear layers in 8 bits, for processors with AVX-512 VNNI and for others,
                  and config.json, under the names that sentence-transformers gives such files
OUT/serving.json  kind "<kind>_onnx", inputs and outputs, what was chosen on validation, the files' SHA-256
OUT/README.md     the card's metadata, what a score means, and a snippet for ONNX Runtime

Shape legend: P texts, pairs or triples, T tokens, L labels.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from common.errors import ArtifactError, UserError
from common.files import read_json, whole_folder
from common.packages import require
from common.progress import Progress
from common.records import Passage
from common.warning_filters import unwanted_hidden
from models.context_tokenizer import text_format
from models.cross_encoder import ESTIMATOR, FORMATS, checked_parts, load_scorer
from models.cross_encoder import KIND as RERAG
from models.dmqr.word_selector import KIND as WORDS
from models.dmqr.word_selector import LABELS, WordSelector
from models.drrag.triple_classifier import KIND as TRIPLES
from models.drrag.triple_classifier import TripleClassifier
from models.onnx_network import FP32, INT8
from models.pair_export import pair_tokenizer
from models.serving_manifest import CARD, CURE, MANIFEST, card_metadata, manifest_sha256, read_manifest, write_manifest

OUTPUT, LOGITS = "log_odds", "logits"  # of fp32, and of int8: as transformers calls it
EXPORTED = (
    "DR-RAG's classifier (of BigBird up to 1,024 tokens), RE-RAG's encoder-only estimator and DMQR-RAG's extractive "
    "rewriter"
)
MAX_FULL_TOKENS = 1024  # block-sparse attention, beyond, cannot be traced
PROBES = (
    ("who directed it", ("A film", "A film was directed by someone."), ("Someone", "Born in 1960.")),
    ("where", ("", "short"), ("Long", "many words follow here " * 40)),
    ("which of the two is older", ("One", "founded in 1900"), ("Two", "founded in 1950")),
)
TRIPLE_PROBES = [(question, Passage.of(*d1), Passage.of(*d2)) for question, d1, d2 in PROBES]
PAIR_PROBES = [(question, passage) for question, _, passage in TRIPLE_PROBES]
COPIED = (  # from the serving folder's manifest
    *("threshold", "calibration", "refusal_threshold", "refusal_contexts"),
    *("validation", "data", "versions", "commit"),
)


@dataclass(frozen=True)
class Encoder:
    """An encoder of a serving folder.

    Args:
        served: The model as it is served, in fp32 on the CPU, with `network` and `encode`.
        scores: Its scores, from the inputs in order.
        inputs: Of the probes: each (P, T) int64, by the name that the tokenizer gives it.
        shape: Of the scores.
        meaning: Of a score.
        texts: What the tokenizer is given, as Python writes it.
    """

    served: Any
    scores: Callable[..., Tensor]
    inputs: dict[str, Tensor]
    shape: tuple[str | int, ...]
    meaning: str
    texts: str


def _of_triples(serving: Path) -> Encoder:
    served = TripleClassifier.load(serving, "cpu", "full", "fp32")
    if served.network.config.model_type == "big_bird" and served.encode.max_tokens > MAX_FULL_TOKENS:
        raise _refused(serving, "a BigBird of longer triples")
    ids_PT, attention_PT = served.encode.pad([served.encode(*triple) for triple in TRIPLE_PROBES])
    return Encoder(
        served, served, {"input_ids": ids_PT, "attention_mask": attention_PT}, ("P",),
        "log-odds (nats) that the two passages together answer the question; its sigmoid is P(positive)",
        '["where was she born"], ["Jaws. A film of 1975. [SEP] Someone. Born in 1960."]',
    )  # fmt: skip


def _of_pairs(serving: Path) -> Encoder:
    parts = checked_parts(serving, read_manifest(serving, RERAG, tuple(FORMATS), {"parts": dict}, check_files=False))
    if parts.get(ESTIMATOR, {}).get("text_format") != text_format("sentence_pair"):  # that of encoders alone
        raise _refused(serving, "a generative estimator" if ESTIMATOR in parts else "no estimator")
    served = load_scorer(serving, "cpu", "fp32")
    ids_PT, attention_PT = served.encode.pad(served.encode([(asked, [passage]) for asked, passage in PAIR_PROBES]))
    return Encoder(
        served, lambda *inputs: served(*inputs).score_P, {"input_ids": ids_PT, "attention_mask": attention_PT},
        ("P",),
        "relevance of the passage for the question, log-odds in nats; calibrated, P(relevant) is "
        "sigmoid(scale * score + offset), with `calibration` of serving.json",
        '["where was she born"], ["Someone. Born in Ohio in 1960."]',
    )  # fmt: skip


def _of_words(serving: Path) -> Encoder:
    served = WordSelector.load(serving, "cpu", "fp32")
    ids_PT, types_PT, attention_PT = served.encode.pad(served.encode(PAIR_PROBES))
    types = {"token_type_ids": types_PT} if served.segments else {}
    return Encoder(
        served, lambda ids, attention, types=None: served(ids, types, attention),
        {"input_ids": ids_PT, "attention_mask": attention_PT} | types,
        ("P", "T", len(LABELS)),
        "log-odds (nats) of each token: label 0, that a word of the question stays in the query, label 1, that a word "
        "of the passage joins it. A word has the scores of its first token; those of other tokens mean nothing",
        '["where was she born"], ["Someone. Born in Ohio in 1960."]',
    )  # fmt: skip


ENCODERS: dict[str, Callable[[Path], Encoder]] = {  # by the kind of the serving folder
    TRIPLES: _of_triples, RERAG: _of_pairs, WORDS: _of_words,
}  # fmt: skip


class _Scores(nn.Module):
    """An encoder's scores, with the names of its inputs."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.served, self.scores = encoder.served, encoder.scores

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        types = () if token_type_ids is None else (token_type_ids,)
        return self.scores(input_ids, attention_mask, *types)


def export_onnx(serving: Path, out: Path, tolerance_nats: float = 1e-4, int8: bool = False) -> float:
    """Write `model.onnx`, or its two forms in 8 bits, tokenizer, card and manifest.

    Args:
        serving: Folder that training exported.
        out: Folder to write; an existing one is replaced: `infer.py export` checks that it is an earlier export.
        tolerance_nats: Maximum difference in log-odds on the probes, in fp32.
        int8: Whether linear layers and embeddings are written in 8 bits, with activations as they come (`dynamic`).

    Returns:
        The maximum difference, nats, in fp32.

    Raises:
        UserError: If the ONNX packages are not installed, the folder holds none of `ENCODERS`, or its network cannot be
            traced.
        ArtifactError: If the difference exceeds the tolerance; nothing is written.
    """
    require("onnx", "an export to ONNX")
    manifest = read_json(serving / MANIFEST, CURE)
    kind = str(manifest.get("kind"))
    if kind not in ENCODERS:
        raise _refused(serving, f"a {kind}")
    encoder, output = ENCODERS[kind](serving), LOGITS if int8 else OUTPUT
    if int8 and encoder.shape == ("P",):  # transformers has a column for the one label
        scores = encoder.scores
        encoder = replace(encoder, scores=lambda *inputs: scores(*inputs)[:, None], shape=("P", 1))
    with Progress(f"exporting and checking {out}"), unwanted_hidden(), whole_folder(out) as folder:
        _write(encoder, output, folder / FP32, serving)
        difference = _difference(encoder, folder / FP32)
        if not difference <= tolerance_nats:
            raise ArtifactError(
                f"{out}: ONNX differs by {difference:.1e} nats, allowed {tolerance_nats:.1e}: not written."
            )
        told = {FP32: difference}
        if int8:
            told = _quantize(encoder, folder)
            encoder.served.network.config.save_pretrained(folder)
        encode = encoder.served.encode
        types = "token_type_ids" in encoder.inputs
        pair_tokenizer(encode.tokenizer, encode.max_tokens, types, separator_inside=False).save_pretrained(folder)
        (folder / CARD).write_text(card_metadata(serving) + _card(encoder, kind, output, told), encoding="utf-8")
        write_manifest(
            folder, f"{kind}_onnx", manifest["text_format"], encode.max_tokens,
            inputs={name: ["P", "T"] for name in encoder.inputs},
            outputs={output: list(encoder.shape)}, serving_sha256=manifest_sha256(serving),
            **{key: manifest[key] for key in COPIED if key in manifest},
        )  # fmt: skip
    for file, apart in told.items():
        print(f"{out}: {file}, maximum difference {apart:.1e} nats")
    return difference


def _quantize(encoder: Encoder, folder: Path) -> dict[str, float]:
    """Replace the fp32 file of a folder by those in 8 bits; the largest difference (nats) of each on the probes."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(folder / FP32)
    del model.graph.value_info[:]  # shapes that torch wrote: the quantizer infers others, and fails on the difference
    (folder / FP32).unlink()
    kinds = zip(INT8.values(), ((QuantType.QInt8, False), (QuantType.QUInt8, True)), strict=True)
    for file, (kind, reduced) in kinds:  # 7 bits where sums of two products of 8 bits overflow
        (folder / file).parent.mkdir(exist_ok=True)
        quantize_dynamic(model, folder / file, weight_type=kind, reduce_range=reduced)
    return {file: _difference(encoder, folder / file) for file in INT8.values()}


def _refused(serving: Path, held: str) -> UserError:
    return UserError(f"--form onnx is for {EXPORTED}; {serving} holds {held}.")


def _write(encoder: Encoder, output: str, file: Path, serving: Path) -> None:
    """Trace the encoder.  Raises UserError if torch cannot."""
    batch = torch.export.Dim("batch", min=1)
    tokens = torch.export.Dim("tokens", min=2, max=encoder.served.encode.max_tokens)
    try:
        torch.onnx.export(
            _Scores(encoder).eval(), (), file, kwargs=encoder.inputs, dynamo=True, external_data=False, verbose=False,
            input_names=list(encoder.inputs), output_names=[output],
            dynamic_shapes={name: {0: batch, 1: tokens} for name in encoder.inputs},
        )  # fmt: skip
    except torch.onnx.OnnxExporterError as error:
        raise _refused(serving, f"a {encoder.served.network.config.model_type}, which torch cannot trace") from error


def _difference(encoder: Encoder, file: Path) -> float:
    """Largest difference (nats) between ONNX Runtime and PyTorch on the probes."""
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    attention_PT = encoder.inputs["attention_mask"]
    differences = []
    for rows in (slice(0, 3), slice(0, 1)):  # the second has another batch size and length than the traced input
        width = int(attention_PT[rows].sum(1).max())
        given = {name: each[rows, :width] for name, each in encoder.inputs.items()}
        (by_onnx,) = session.run(None, {name: each.numpy() for name, each in given.items()})
        with torch.inference_mode():
            apart = np.abs(encoder.scores(*given.values()).numpy() - by_onnx)
        read = given["attention_mask"].numpy() > 0  # what stands at padding means nothing
        differences.append(float((apart[read] if encoder.shape[1:2] == ("T",) else apart).max()))
    return max(differences)


def _card(encoder: Encoder, kind: str, output: str, told: dict[str, float]) -> str:
    shape = ", ".join(map(str, encoder.shape))
    apart = "; ".join(f"{name} {difference:.1e} nats" for name, difference in told.items())
    return f"""# {" and ".join(told)}, from a {kind} of Lightning RAG

- Inputs, int64 (P, T): {", ".join(f"`{name}`" for name in encoder.inputs)}, as the tokenizer in this folder gives them
  for any number P of inputs of T <= {encoder.served.encode.max_tokens} tokens, padded on the right.  Texts are in
  Unicode's NFKC form with single blanks between words, and contain no special tokens but those shown here.
- Output, float32 ({shape}): `{output}`, {encoder.meaning}.
- Largest difference to PyTorch on a probe set: {apart}.

```python
import onnxruntime
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
session = onnxruntime.InferenceSession("{next(iter(told))}")
batch = tokenizer({encoder.texts}, padding=True, truncation=True, return_tensors="np")
({output},) = session.run(None, dict(batch))
```
"""
