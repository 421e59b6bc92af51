"""The installed package: puts the project's folders (harness, models, ...) first on the import path.

    import lightning_rag
    from harness.systems.drrag import DrRag

The folders lie inside this package, not beside it: in site-packages their names would collide with those of other
packages. First on the path they are found before folders of the same names in the working folder. In a checkout they
lie beside it.
"""

import sys
from pathlib import Path

_INSTALLED = Path(__file__).parent / "source"
SOURCE = _INSTALLED if _INSTALLED.is_dir() else _INSTALLED.parents[1]
MODULES = ("common", "models", "datamodules", "trainers", "harness", "documents", "train", "infer")


def _put_first() -> None:
    """Put SOURCE first on the import path.

    Raises:
        ImportError: If a module of the same name was imported from elsewhere before.
    """
    for name in set(MODULES) & set(sys.modules):
        place = Path(getattr(sys.modules[name], "__file__", None) or "elsewhere").resolve()
        if not place.is_relative_to(SOURCE.resolve()):
            raise ImportError(f"import lightning_rag before the other module {name} ({place}): the names are the same.")
    if sys.path[:1] != [str(SOURCE)]:
        sys.path.insert(0, str(SOURCE))


_put_first()
