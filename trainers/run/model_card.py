"""Model card of a serving folder: a Jinja template beside the trainer, under the metadata that the hub reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCardData
from huggingface_hub.repocard import metadata_load
from jinja2 import Environment, StrictUndefined
from yaml import YAMLError

from common.files import read_json, sha256
from common.progress import say
from common.shown_text import markdown, markdown_code
from datamodules.examples.data_files import DataFile
from models.pretrained import resolve
from models.serving_manifest import CARD, CURE, MANIFEST, is_local, without_place


@dataclass(frozen=True)
class Card:
    """The entries of a model card that only the owner of a model knows.

    Args:
        license: License of the model as the Hugging Face hub names it, e.g. apache-2.0; when null those that the models
            state that training started from.
        language: Languages of the model (ISO 639-1), e.g. [en]; those that the data files' entries name when null.
    """

    license: str | None = None
    language: list[str] | None = None


@dataclass(frozen=True)
class Origin:
    """A model that training started from, as its folder states it.

    Args:
        weights: The sha256 of its files of weights, by their names.
        licenses: Its licenses as the hub names them; empty if it states none.
        base_models: Hub ids of what it was made from itself.
    """

    weights: Mapping[str, str]
    licenses: tuple[str, ...] = ()
    base_models: tuple[str, ...] = ()

    def __str__(self) -> str:
        digests = ", ".join(f"{markdown(name)} sha256 {digest}" for name, digest in self.weights.items())
        return f"{digests}; license {markdown(', '.join(self.licenses)) or 'not stated in its folder'}"


def origin_of(model: str, checkpoint: str | None = None) -> Origin:
    """The facts on a model in the card or the config.json of its folder, or of the serving folder around it.

    Args:
        model: Folder or hub id of a model on this machine.
        checkpoint: The file of a run whose weights replaced its own.

    Raises:
        MissingInputError: If it is not on this machine.
    """
    folder = resolve(model)
    files = [path for pattern in ("*.safetensors", "*.bin") for path in sorted(folder.glob(pattern))]
    weights = {path.name: sha256(path) for path in ([Path(checkpoint)] if checkpoint else files)}
    stated = dict(read_json(folder / "config.json", CURE)) if (folder / "config.json").is_file() else {}
    stated = {"license": stated.get("license")} | _front_matter(folder)
    return Origin(weights, _texts(stated.get("license")), _texts(stated.get("base_model")))


def _front_matter(folder: Path) -> dict[str, Any]:
    """That of a model's card; empty if it has none."""
    card = folder / CARD
    if not card.is_file() and (folder.parent / MANIFEST).is_file():
        card = folder.parent / CARD
    try:
        return (metadata_load(card) or {}) if card.is_file() else {}
    except (ValueError, YAMLError):
        say(f"{card}: its front matter cannot be read, so the card of this run names no license of it.")
        return {}


def _texts(stated: object) -> tuple[str, ...]:
    return tuple(map(str, stated)) if isinstance(stated, list) else (str(stated),) if stated else ()


def hub_datasets(sources: Sequence[DataFile]) -> list[str]:
    """Hub ids of data sets: of sources that name theirs, or are read from the hub (hf:<id>[:<config>]:<split>)."""
    named = [s.path.split(":")[1] if s.path.startswith("hf:") else s.dataset for s in sources]
    return [name for name in dict.fromkeys(named) if name]


def validation_results(metrics: Mapping[str, float], sources: Sequence[DataFile]) -> list[EvalResult]:
    """The model-index of a reranker: its metrics on validation; those that are no finite number are left out."""
    files = ", ".join(dict.fromkeys(without_place(source.path) for source in sources)) or "unnamed"
    data_set = (hub_datasets(sources) or ["own"])[0]
    return [
        EvalResult("text-ranking", data_set, files, name, round(value, 6), dataset_split="validation")
        for name, value in metrics.items()
        if isfinite(value)
    ]


def model_card(
    template: Path,
    card: Card,
    origins: Mapping[str, Origin],
    values: Mapping[str, Any],
    sources: Sequence[DataFile],
    provenance: Mapping[str, Any],
    results: Sequence[EvalResult] = (),
    library: str = "transformers",
    name: str = "model",
) -> str:
    """Fill a template; files and folders of this machine are named without their place.

    Names from data stand as text, see `common.shown_text`: in the template by the filter `markdown`.

    Args:
        template: Markdown whose front matter begins with `{{ card_data }}`.
        card: The owner's words.
        origins: The models that training started from, by their names among `values`.
        values: What the template names besides them, `data` and `origins`.
        sources: Files that the model was trained on.
        provenance: Stored beside the weights; `data` maps files to sha256.
        results: For the model-index.
        library: That loads it.
        name: Of the model, in the model-index.

    Raises:
        jinja2.UndefinedError: If the template names a value that is not there.
    """
    models = {name: str(values[name]) for name in origins}
    licenses: Any = list(dict.fromkeys(each for origin in origins.values() for each in origin.licenses))
    if len(licenses) == 1:  # else a list, which the hub allows and its class does not say
        (licenses,) = licenses
    made_of = [origins[name].base_models if is_local(model) else (model,) for name, model in models.items()]
    index: dict[str, Any] = {"model_name": name, "eval_results": list(results)} if results else {}
    data = ModelCardData(
        license=card.license or licenses or None,
        library_name=library,
        language=card.language or sorted({source.language for source in sources if source.language}) or None,
        base_model=[*dict.fromkeys(base for bases in made_of for base in bases)] or None,
        datasets=hub_datasets(sources) or None,
        **index,
    )
    local = {name: markdown_code(without_place(model) if is_local(model) else model) for name, model in models.items()}
    read = provenance.get("data", {}).items()
    named = [path if path.startswith("hf:") else f"{Path(path).name} (sha256 {digest})" for path, digest in read]
    files = ", ".join(map(markdown, named)) or "unnamed"
    cards = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    cards.filters["markdown"] = markdown
    filled = cards.from_string(template.read_text(encoding="utf-8"))
    return filled.render(card_data=data.to_yaml(), data=files, origins=origins, **{**values, **local})
