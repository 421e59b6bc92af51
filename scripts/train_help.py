"""Writes the help of train.py, trainers/run/help.txt, from its parser: `python -m scripts.train_help`."""

import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonargparse
from pytorch_lightning import LightningDataModule, LightningModule

import train
from trainers.run.help import FILE, GROUPS

KINDS = {  # option -> folder of its classes, and what they are
    "model": ("trainers", LightningModule),
    "data": ("datamodules", LightningDataModule),
}
TEXTS = {  # of options whose own texts are about Python
    "seed_everything": "Seed of all random generators; 0 when omitted.",
    "ckpt_path": "Checkpoint to continue from, e.g. checkpoints/<name>/last.ckpt, with its optimizer; for its weights "
    "alone name it as model.pretrained.",
    "weights_only": "Lightning's argument of the same name; checkpoints are always loaded with true.",
    "print_config": "Print the complete configuration and exit.",
    "verbose": "Of validate: print the metrics; true when omitted.",
}


def page() -> str:
    """The whole text."""
    parser: Any = jsonargparse.capture_parser(train.main, ["--print_config"])
    commands = parser._subcommands_action.choices
    actions = [action for command in commands.values() for action in command._actions]
    options = {each.dest: told(each) for each in actions if f"--{each.dest}" in each.option_strings}
    return "\n".join(lines(options | TEXTS)) + "\n"


def told(action: Any) -> str:
    """The text of an option."""
    return f"{action.help} Default: {action.default}." if isinstance(action.default, str) else action.help


def lines(options: dict[str, str]) -> Iterator[str]:
    """The lines of the text.

    Args:
        options: Of all commands, with their texts.
    """
    yield from ("usage: train.py {fit,validate} --config FILE [--KEY VALUE ...]", "", (train.__doc__ or "").strip())
    yield from ("", "options:")
    for name in [each for each in options if "." not in each and each not in (*GROUPS, *KINDS, "help")]:
        yield f"  --{name}"
        yield filled(options[name], 8)
    for kind in KINDS:
        yield from ("", f"--{kind} CLASS, or your own by its path; keys of a class: train.py fit --{kind}.help CLASS")
        for path, each in classes(kind).items():
            yield f"  {path}"
            yield filled((each.__doc__ or "").partition("\n\n")[0], 6)
    for group in GROUPS:
        yield from ("", f"--{group}.KEY VALUE, where a KEY is:")
        for name in [name for name in options if name.startswith(f"{group}.") and not name.endswith("help")]:
            first, *_ = re.split(
                r"(?<!i\.e|e\.g)\. ", " ".join(options[name].split())
            )  # Lightning's own page has the rest
            yield filled(f"{name.removeprefix(f'{group}.')}: {first.rstrip('.')}.", 2)


def classes(kind: str) -> dict[str, type]:
    """The classes of a kind, by their paths, without those that others are built on."""
    folder, base = KINDS[kind]
    files = sorted((Path(train.__file__).parent / folder).glob("[!_]*.py"))
    named = {f"{folder}.{file.stem}": vars(import_module(f"{folder}.{file.stem}")) for file in files}
    found = {
        f"{module}.{name}": each
        for module, names in named.items()
        for name, each in names.items()
        if isinstance(each, type) and issubclass(each, base) and each.__module__ == module
    }
    built_on = {parent for each in found.values() for parent in each.__mro__[1:]}
    return {path: each for path, each in found.items() if each not in built_on}


def filled(text: str, blanks: int) -> str:
    """A text in lines of 110 characters."""
    return textwrap.fill(" ".join(text.split()), 110, initial_indent=" " * blanks, subsequent_indent=" " * blanks)


def main(args: list[str] | None = None) -> None:
    """Write the file."""
    jsonargparse.ArgumentParser(description=__doc__).parse_args(args)
    FILE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
