"""Reads YAML texts of users. A key that occurs twice in a mapping is refused; PyYAML would take the last one."""

from pathlib import Path
from typing import Any

from common.errors import UserError

MERGE = "tag:yaml.org,2002:merge"  # of `<<`, which may stand several times


def load_yaml(text: str, where: str = "") -> Any:
    """What a YAML text holds.

    Args:
        text: The text.
        where: The file, which errors name; none for a text that is typed.

    Raises:
        UserError: If a name stands twice in one mapping; it has the lines.
        yaml.YAMLError: If it is no YAML text.
    """
    import yaml

    refuse_repeated(text, where)
    return yaml.safe_load(text)


def refuse_repeated(text: str, where: str = "") -> None:
    """Check a text as `load_yaml` does, without constructing its values."""
    import yaml

    root = yaml.compose(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    waiting = [root]
    seen: set[int] = set()  # what an alias names stands in the tree several times, perhaps within itself
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
            continue
        lines: dict[tuple[str, str], int] = {}
        for name, value in node.value:
            waiting += name, value
            if isinstance(name, yaml.ScalarNode) and name.tag != MERGE:
                line, key = name.start_mark.line + 1, (name.tag, name.value)
                if key in lines:
                    place = f"{where}, line {line}: " if where else ""
                    first = f" (first in line {lines[key]})" if lines[key] < line else ""
                    raise UserError(f"{place}{name.value!r} stands twice in one mapping{first}: keep one of them.")
                lines[key] = line


def use_in_parsers() -> None:
    """Have jsonargparse's parsers refuse such a name in configs, in files that these name, and in typed values."""
    import yaml
    from jsonargparse import get_loader, set_loader
    from jsonargparse._util import config_load_stack

    load = get_loader("yaml")
    if load.__module__ == __name__:
        return

    def checked(text: str) -> Any:
        file, shown = config_load_stack.get()[-1] if config_load_stack.get() else ("", "")
        if file and Path(file).is_file() and Path(file).read_text(encoding="utf-8") == text:
            refuse_repeated(text, shown)
        elif text.lstrip()[:1] in ("{", "["):  # other texts may be a question
            refuse_repeated(text)
        return load(text)

    set_loader("yaml", checked, (yaml.YAMLError,))
