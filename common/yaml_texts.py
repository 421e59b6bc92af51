"""Reads YAML texts of users. A key that occurs twice in a mapping is refused; PyYAML would take the last one."""

from pathlib import Path
from typing import Any

import yaml
from jsonargparse import get_loader, set_loader
from jsonargparse._util import config_load_stack

from common.errors import UserError

MERGE = "tag:yaml.org,2002:merge"  # of `<<`, which may stand several times


class _Loader(yaml.SafeLoader):
    """Refuses a name that stands twice in one mapping; `where` is the file, which errors name."""

    where = ""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """See PyYAML."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for name in [key for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != MERGE]:
            line, key = name.start_mark.line + 1, (name.tag, name.value)
            if key in lines:
                place = f"{self.where}, line {line}: " if self.where else ""
                first = f" (first in line {lines[key]})" if lines[key] < line else ""
                raise UserError(f"{place}{name.value!r} stands twice in one mapping{first}: keep one of them.")
            lines[key] = line
        return node


def load_yaml(text: str, where: str = "") -> Any:
    """What a YAML text holds.

    Args:
        text: The text.
        where: The file, which errors name; none for a text that is typed.

    Raises:
        UserError: If a name stands twice in one mapping; it has the lines.
        yaml.YAMLError: If it is no YAML text.
    """
    loader = _Loader(text)
    loader.where = where
    return loader.get_single_data()


def use_in_parsers() -> None:
    """Have jsonargparse's parsers refuse such a name in configs, in files that these name, and in typed values."""
    load = get_loader("yaml")
    if load.__module__ == __name__:
        return

    def checked(text: str) -> Any:
        file, shown = config_load_stack.get()[-1] if config_load_stack.get() else ("", "")
        of_file = file and Path(file).is_file() and Path(file).read_text(encoding="utf-8") == text
        if of_file or text.lstrip()[:1] in ("{", "["):  # other texts may be a question
            load_yaml(text, shown if of_file else "")
        return load(text)

    set_loader("yaml", checked, (yaml.YAMLError,))
