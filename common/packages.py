"""Optional packages: the extras of pyproject.toml."""

from collections.abc import Collection
from importlib.util import find_spec

from common.errors import UserError

EXTRAS = {  # extra -> its modules
    "documents": ("pypdfium2", "PIL", "lxml", "docx", "markdown_it"),
    "library": ("reportlab",),
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "qdrant": ("qdrant_client",),
    "quantized": ("bitsandbytes",),
    "serve": ("fastapi", "uvicorn", "prometheus_client", "mcp"),
    "tensorboard": ("tensorboard",),
    "web": ("trafilatura",),
}


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
    missing = [module for module in modules or EXTRAS[extra] if find_spec(module) is None]
    if missing:
        either = f", or {instead}" if instead else ""
        raise UserError(f"{needing} needs {', '.join(missing)}, not installed: pip install '.[{extra}]'{either}.")
