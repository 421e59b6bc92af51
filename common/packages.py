"""Optional packages: the extras of pyproject.toml."""

from collections.abc import Collection
from importlib.util import find_spec

from common.errors import UserError

EXTRAS = {  # extra -> its modules, each with what pip installs for it
    "documents": {
        "pypdfium2": "pypdfium2>=5.15,<6", "PIL": "pillow>=12,<14", "lxml": "lxml>=6.1,<7",
        "docx": "python-docx>=1.2,<2", "markdown_it": "markdown-it-py>=4.2,<5",
    },
    "library": {"reportlab": "reportlab>=5,<6"},
    "onnx": {"onnx": "onnx>=1.23,<2", "onnxscript": "onnxscript>=0.7.2,<1", "onnxruntime": "onnxruntime>=1.31,<2"},
    "qdrant": {"qdrant_client": "qdrant-client>=1.16,<2"},
    "quantized": {"bitsandbytes": "bitsandbytes>=0.50.2,<0.51"},
    "serve": {
        "fastapi": "fastapi>=0.165,<1", "uvicorn": "uvicorn>=0.54,<1",
        "prometheus_client": "prometheus-client>=0.26,<1", "mcp": "mcp>=2.3,<3",
    },
    "tensorboard": {"tensorboard": "tensorboard>=2.21,<3"},
    "web": {"trafilatura": "trafilatura>=2.3.1,<3"},
}  # fmt: skip


def require(extra: str, needing: str, instead: str = "", modules: Collection[str] | None = None) -> None:
    """Check that the packages of an extra are installed; nothing is imported.

    Args:
        extra: One of EXTRAS.
        needing: What needs them; the error begins with it.
        instead: What else the user can do, such as "set read_pages to false".
        modules: Those that are needed; all of the extra when None.

    Raises:
        UserError: If one is missing; it names all that are, and the extra.
    """
    known = EXTRAS[extra]
    missing = [known[module] for module in modules or known if find_spec(module) is None]
    if missing:
        names = ", ".join(spec.partition(">")[0] for spec in missing)
        typed = " ".join(f"'{spec}'" for spec in missing)
        either = f", or {instead}" if instead else ""
        raise UserError(
            f"{needing} needs {names}, not installed here: pip install {typed} (the extra {extra}){either}."
        )
