"""Sealed JSON files, which hold the SHA-256 of their own content, and type checks of their fields.

Standard library only.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any

from common.errors import ArtifactError
from common.files import write_text

SEAL = "seal"
_TYPE_NAMES = {str: "a text", int: "a whole number", float: "a number", dict: "an object", NoneType: "null"}


def fingerprint(value: object) -> str:
    """sha256 of a JSON value in canonical form (sorted keys, no blanks)."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def write_sealed(path: Path, value: Mapping[str, Any]) -> None:
    """Write an object as indented JSON with its fingerprint under the key `seal`.  Errors as `write_text`."""
    value = json.loads(json.dumps(value))  # as it will be read: texts as keys, lists for tuples
    write_text(path, _text({**value, SEAL: fingerprint(value)}))


def unsealed(path: Path, value: Mapping[str, Any], cure: str) -> dict[str, Any]:
    """The content of a sealed file without its seal, which is checked.

    Args:
        path: The file.
        value: The object in it.
        cure: What to type when it is corrupt; appended to the error message.

    Raises:
        ArtifactError: If the file has no seal, or is not byte for byte what `write_sealed` writes for this content.
    """
    content = {key: each for key, each in value.items() if key != SEAL}
    # The text too: 1e-05 and 1E-05 are one number and one bit apart.
    if value.get(SEAL) != fingerprint(content) or path.read_bytes() != _text(value).encode():
        raise ArtifactError(f"{path} is corrupt or was edited: its sha256 (seal) does not match. {cure}")
    return content


def check_fields(where: str, value: Mapping[str, Any], fields: Mapping[str, Any], cure: str) -> None:
    """Check that an object has the required fields, with values of the right type.

    Args:
        where: Name of the object in the message, e.g. the file.
        value: The object.
        fields: By name a type, a tuple of types, a list of allowed values, or for an object the same mapping again.
            `float` accepts whole numbers; `bool` is not a number.
        cure: What to type when a field is wrong; appended to the error message.

    Raises:
        ArtifactError: If a field is missing or wrong; names the first one.
    """
    for name, wanted in fields.items():
        if name not in value:
            raise ArtifactError(f"{where} has no {name!r}. {cure}")
        found = value[name]
        if isinstance(wanted, list):
            if found not in wanted:
                raise ArtifactError(f"{where}: {name} must be one of {wanted}, got {found!r}. {cure}")
            continue
        types = (dict,) if isinstance(wanted, Mapping) else wanted if isinstance(wanted, tuple) else (wanted,)
        accepted = (*types, int) if float in types else types
        if not isinstance(found, accepted) or isinstance(found, bool):
            allowed = " or ".join(_TYPE_NAMES[each] for each in types)
            raise ArtifactError(f"{where}: {name} must be {allowed}, got {found!r}. {cure}")
        if isinstance(wanted, Mapping):
            check_fields(f"{where}: {name}", found, wanted, cure)
