"""Messages of the argument parser (jsonargparse 4.53) in plain words: the key, what was given, what is allowed.

The parser's message is a tree of lines: `Parser key "k":` and `Problem with given class_path 'C':` open a level, `-
...` are the failed alternatives of a union. Messages of another form stay as they are, in one line.
"""

import difflib
import importlib
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "NoneType": "null",
    "tuple": "a list",
    "list": "a list",
    "dict": "a mapping of keys to values",
    "Path": "a path",
    "timedelta": 'a duration such as "1:30:00" or "2 days, 0:00:00"',
    "Iterable": "a list",
    "Any": "anything",
}


@dataclass(frozen=True)
class Problem:
    """A parser's message in plain words.

    Args:
        text: One line, without a final full stop.
        classes: The keys with their classes that lead to the problem, e.g. ("strategy",
            "harness.strategies.drrag.DrRag"); the class is empty if it is the problem.
    """

    text: str
    classes: tuple[tuple[str, str], ...] = ()


def in_plain_words(message: str, options: Sequence[str] = ()) -> Problem:
    """The message of a parser in plain words.

    Args:
        message: As the parser gives it, with its line breaks.
        options: All options of the command, for suggestions.
    """
    problem = _read(dedent(message).strip(), "", (), options)
    return replace(problem, text=re.sub(r"\s+", " ", problem.text).rstrip("."))


def _read(text: str, key: str, classes: tuple[tuple[str, str], ...], options: Sequence[str]) -> Problem:
    """One level of the message; `key` is the full key so far."""

    def deeper(inner: str, part: str = "", *more: tuple[str, str]) -> Problem:
        return _read(
            dedent(inner.lstrip("\n")).strip(), ".".join(filter(None, (key, part))), (*classes, *more), options
        )

    for pattern, explain in _LEAVES:
        if match := re.fullmatch(pattern, text, re.DOTALL):
            found = Problem(explain(match, key, _parameters(classes) or options), classes)
            return replace(found, classes=(*classes, (key, ""))) if explain in (_kind, _no_class) else found
    if match := re.fullmatch(r'Parser key "([^"]+)":(.*)', text, re.DOTALL):
        return deeper(match[2], match[1])
    if match := re.fullmatch(r"Problem with given class_path '([^']+)':\n(.*)", text, re.DOTALL):
        if re.match(r"\s*(?:module '|No module named|Expected an instantiatable)", match[2]):
            return Problem(
                f"{key}: {match[1]} is not a class that can be used ({match[2].strip()})", (*classes, (key, ""))
            )
        return deeper(match[2], "", (key, match[1]))
    union = re.fullmatch(r"Does not validate .*?\nSubtypes: \[(.*?)\]\nErrors:\n(.*)\nGiven value type: .*?\nGiven "
                         r"value: (.*)",
                         text, re.DOTALL)  # fmt: skip
    alternatives = _items(dedent(union[2]) if union else text)
    for item in alternatives:
        if item.startswith(("Problem with", "Does not validate", "Import path", "Not a valid", "Does not implement")):
            return deeper(item)
    if union:
        given = re.sub(r"NestedArg\(key='.*?', val=(.*)\)", r"\1", union[3])
        if given.endswith((".yaml", ".yml", ".json")) and "a class of the kind" in _types(_split(union[1])):
            return Problem(f"{key}: {_file_fault(given)}", classes)
        return Problem(f"{key} is {_quoted(given)}; allowed: {_types(_split(union[1]))}", classes)
    typed = [item for item in alternatives if re.match(r"Expected an? (?!path but|dot import)", item)]
    if typed:
        return deeper(typed[0])
    return Problem(f"{key}: {'; '.join(alternatives) or text}" if key else text, classes)


def _items(text: str) -> list[str]:
    """The alternatives of a list `- ...`."""
    return [item.strip() for item in re.split(r"^- ", text, flags=re.MULTILINE)[1:]]


def _type(name: str) -> str:
    """A type as Python prints it, in plain words."""
    if match := re.fullmatch(r"(?:typing\.)?Literal\[(.*)\]", name):
        return ", ".join(value.strip().strip("'\"") for value in match[1].split(","))
    if match := re.fullmatch(r"(?:typing\.)?(?:Union|Optional)\[(.*)\]", name):
        return _types(_split(match[1]) + ["None"] * ("Optional" in name))
    if match := re.fullmatch(r"(?:[\w.]+\.)?(list|tuple|set|Sequence|Iterable|List|Tuple)\[(.*)\]", name):
        return f"a list ({_types(_split(match[2]))} each)"
    plain = re.sub(r"<(?:class|enum|function) '([^']+)'>", r"\1", name).rpartition(".")[2]
    return _WORDS.get(plain, "null" if plain == "None" else f"a class of the kind {plain}")


def _types(names: Sequence[str]) -> str:
    """Several types: all literal values, then the others, joined by "or"."""
    values = [_type(name) for name in names if "Literal[" in name]
    distinct = ", ".join(dict.fromkeys(value for each in values for value in each.split(", ")))
    return " or ".join(dict.fromkeys([*[distinct] * bool(values), *(_type(n) for n in names if "Literal[" not in n)]))


def _split(names: str) -> list[str]:
    """The parts of a list of types, divided at its outermost commas."""
    parts, depth = [""], 0
    for letter in names:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _parameters(classes: tuple[tuple[str, str], ...]) -> list[str]:
    """The parameters of the innermost class, for suggestions."""
    if not classes:
        return []
    module, _, name = classes[-1][1].rpartition(".")
    return list(inspect.signature(getattr(importlib.import_module(module), name)).parameters) if module else []


def _quoted(value: str) -> str:
    return value if value[:1] in ("'", "[", "{", "(") else repr(value)


def _suggestion(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, 1, 0.6)
    return f"; close to it: {close[0]}" if close else ""


def _value(match: re.Match[str], key: str, known: Sequence[str]) -> str:
    allowed = _type(match[1])
    quotes = " (YAML reads the words true, false, yes and no as text only in quotes)"
    return f"{key} is {_quoted(match[2])}; allowed: {allowed}" + quotes * (
        allowed == _WORDS["str"] and match[2].strip("'") in ("True", "False")
    )


def _unknown(match: re.Match[str], key: str, known: Sequence[str]) -> str:
    name = match[1]
    suggested = _suggestion(name, known)
    return f"{key + '.' if key else ''}{name} is no key{f' of {key}' if key else ''}{suggested}"


def _unrecognized(match: re.Match[str], key: str, known: Sequence[str]) -> str:
    given = [word for word in match[1].split() if word.startswith("--")] or [match[1]]
    names = [word.partition("=")[0] for word in given]
    shown = [f"{key}.{name[2:]}" if key else name for name in names]
    return f"{', '.join(shown)}: no such option{_suggestion(names[0] if not key else names[0][2:], known)}"


def _required(match: re.Match[str], key: str, known: Sequence[str]) -> str:
    names = [name.strip() for name in match[1].split(",")]
    shown = [f"{key}.{name}" if key else f"--{name}" for name in names]
    return f"{', '.join(shown)}: not given, but required"


def _command(match: re.Match[str], key: str, known: Sequence[str]) -> str:
    allowed = re.sub(r"'", "", match[2])
    return f"command {match[1]!r} is unknown; allowed: {allowed}{_suggestion(match[1], allowed.split(', '))}"


def _kind(match: re.Match[str], key: str, known: Sequence[str]) -> str:
    return f"{key}: {match[1]} is not of the kind {match[2]}"


def _no_class(match: re.Match[str], key: str, known: Sequence[str]) -> str:
    return f"{key} is {_quoted(match[1])}; allowed: the path of a class"


def _file(match: re.Match[str], key: str, known: Sequence[str]) -> str:
    return f"{key}: {_file_fault(match[1])}"


def _file_fault(file: str) -> str:
    """What is wrong with a file that should hold a class and its options."""
    if not Path(file).exists():
        return f"the file {file} does not exist"
    return f"the file {file} holds no class that can be used here; its keys must be class_path and init_args, in YAML"


_LEAVES: tuple[tuple[str, Callable[[re.Match[str], str, Sequence[str]], str]], ...] = (
    (r"Expected an? (?!path but|dot import)(.*?)\. Got value: (.*)", _value),
    (r"Option '([^']+)' is not accepted.*", _unknown),
    (r"unrecognized arguments: (.*)", _unrecognized),
    (r"the following arguments are required: (.*)", _required),
    (r"argument subcommand: invalid choice: '([^']*)' \(choose from (.*)\)", _command),
    (r'expected "subcommand" to be one of \{(.*)\}, but it was not provided\.?',
     lambda match, key, known: f"no command was given; allowed: {match[1].replace(',', ', ')}"),
    (r"Import path (\S+) does not (?:implement protocol|correspond to a subclass of) (\w+)", _kind),
    (r"(?:- Expected a path but .*\n)?- Expected a dot import path string: (.*)", _no_class),
    (r"Expected a dot import path string: (.*)", _no_class),
    (r"- Expected a path but (\S+\.(?:yaml|yml|json)) either not accessible or invalid\n.*", _file),
    (r"Config file loop detected: (\S+) -> .*", _file),
)  # fmt: skip
