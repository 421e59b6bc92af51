"""`infer.py export`: convert a serving folder's model into another form and verify it."""

from pathlib import Path
from typing import Literal

from common.errors import UserError
from common.outputs import OutputFolder, listed_files
from common.ranges import NonNegativeFloat
from models.serving_manifest import CARD, MANIFEST


def _own_files(folder: Path) -> list[str] | None:
    listed = listed_files(MANIFEST, lambda manifest: str(manifest.get("kind")).endswith(("_onnx", "_merged")))(folder)
    return listed and [*listed, CARD]


EXPORT = OutputFolder("`infer.py export`", "an export", _own_files)


def export(
    serving: Path,
    out: Path | None = None,
    form: Literal["onnx", "onnx-int8", "merged"] = "onnx",
    tolerance: NonNegativeFloat | None = None,
    push: str | None = None,
    part: str | None = None,
    public: bool = False,
    dry_run: bool = False,
) -> None:
    """Export the model of a serving folder in another form, with tokenizer and manifest; or push it to the hub.

    Args:
        serving: Folder that training exported; without --out also an earlier export, to push it.
        out: Folder to write; an earlier export there is replaced, anything else is refused. Omitted: nothing is
            converted, and `push` takes the serving folder as it is.
        form: `onnx`: an encoder (of triples, of pairs, of words or of questions), with dynamic batch size and length.
            `onnx-int8`: the same in 8 bits, in two files: for processors with AVX-512 VNNI, and for others.
            `merged`: adapters of a rewriter, an estimator or a generator, each merged into its base: whole models for
            transformers and vLLM; a causal estimator also for sentence-transformers' CrossEncoder.
        tolerance: Maximum difference on probes, in nats: of log-odds between ONNX and PyTorch (1e-4 when omitted), or
            of a token's log-probability between adapter and merged model (1e-3 when omitted).
        push: OWNER/NAME of a new repository on the Hugging Face hub for one part: its files at the root, with its card.
            Private unless `public`; needs a token that may write (hf auth login, or HF_TOKEN).
        part: The part to push, where there are several, such as estimator.
        public: Whether everybody may read the repository.
        dry_run: Print the files to push with their sizes, and the card; nothing is sent.

    Raises:
        UserError: If neither `out` nor `push` is given, or options of a push without it.
    """
    if push is None and (out is None or part or public or dry_run):
        raise UserError(
            "give --out FOLDER to convert, or --push OWNER/NAME, which --part, --public and --dry_run need."
        )
    if out is not None:
        with EXPORT.locked(out):
            if form == "merged":
                from harness.serving.merged_export import export_merged

                export_merged(serving, out, tolerance)
            else:
                from harness.serving.onnx_export import export_onnx

                export_onnx(serving, out, 1e-4 if tolerance is None else tolerance, form == "onnx-int8")
    if push is not None:
        from harness.serving import hub

        hub.push(out or serving, push, part, public, dry_run)
