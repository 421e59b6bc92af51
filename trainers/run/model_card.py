"""Model card of a serving folder: a Jinja template beside the trainer, under the metadata that the hub reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCardData
from jinja2 import Environment, StrictUndefined

from common.shown_text import markdown, markdown_code
from datamodules.examples.data_files import DataFile


@dataclass(frozen=True)
class Card:
    """What only the owner of a model can say on its card.

    Args:
        license: License of the model as the Hugging Face hub names it, e.g. apache-2.0; none when null.
        language: Languages of the model (ISO 639-1), e.g. [en]; those that the data files' entries name when null.
    """

    license: str | None = None
    language: list[str] | None = None


def is_local(name: str) -> bool:
    """Whether the name of a model is a folder or a checkpoint on this machine, not a hub id."""
    return Path(name).expanduser().exists()


def without_place(name: str) -> str:
    """The name of a folder; of a run's serving folder or checkpoint with the run's name before it."""
    path = Path(name)
    return f"{path.parent.name}/{path.name}" if path.name == "serving" or path.suffix == ".ckpt" else path.name


def hub_datasets(sources: Sequence[DataFile]) -> list[str]:
    """Hub ids of data sets: of sources that name theirs, or are read from the hub (hf:<id>[:<config>]:<split>)."""
    named = [s.path.split(":")[1] if s.path.startswith("hf:") else s.dataset for s in sources]
    return [name for name in dict.fromkeys(named) if name]


def model_card(
    template: Path,
    card: Card,
    starts: Sequence[str],
    values: Mapping[str, Any],
    sources: Sequence[DataFile],
    provenance: Mapping[str, Any],
) -> str:
    """Fill a template; files and folders of this machine are named without their place.

    Names from data stand as text, see `common.shown_text`: in the template by the filter `markdown`.

    Args:
        template: Markdown whose front matter begins with `{{ card_data }}`.
        card: The owner's words.
        starts: Names among `values` of the models that training started from; null ones are left out.
        values: What the template names.
        sources: Files that the model was trained on.
        provenance: Stored beside the weights; `data` maps files to sha256.

    Raises:
        jinja2.UndefinedError: If the template names a value that is not there.
    """
    models = {name: str(values[name]) for name in starts if values[name]}
    data = ModelCardData(
        license=card.license,
        library_name="transformers",
        language=card.language or sorted({source.language for source in sources if source.language}) or None,
        base_model=[name for name in dict.fromkeys(models.values()) if not is_local(name)] or None,
        datasets=hub_datasets(sources) or None,
    )
    local = {name: markdown_code(without_place(model) if is_local(model) else model) for name, model in models.items()}
    files = ", ".join(
        markdown(path if path.startswith("hf:") else f"{Path(path).name} (sha256 {digest})")
        for path, digest in provenance.get("data", {}).items()
    )
    cards = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    cards.filters["markdown"] = markdown
    filled = cards.from_string(template.read_text(encoding="utf-8"))
    return filled.render(card_data=data.to_yaml(), data=files or "unnamed", **{**values, **local})
