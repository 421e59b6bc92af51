"""`infer.py evaluate` with several --config: all systems answer the same questions, one report compares them."""

import argparse
import gc
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.backends import chosen
from common.errors import SomeFailedError, UserError
from common.outputs import partial_folder
from common.progress import say
from common.yaml_texts import load_yaml
from harness.commands.evaluate import evaluate_into, files_and_settings, report_folder
from harness.runtime.journal import remove_saved
from harness.runtime.loading import load
from harness.runtime.provenance import configuration

if TYPE_CHECKING:
    from harness.evaluation.engine import MeasuredSystem


def systems_of(args: Sequence[str]) -> dict[str, list[str]]:
    """The arguments of every system by its name; fewer than two systems: empty.

    A config is one system of the file's name, or a list of systems: `systems: {NAME: options as they are typed}`.
    Paths in these options count from the working folder, as those that are typed do.

    Args:
        args: The command line's arguments.
    """
    if not args or args[0] != "evaluate":
        return {}
    configs, others = configs_and_others(args[1:])
    systems = [system for config in configs for system in _systems_in(config)]
    if len(systems) < 2:
        if configs and [options for _, options in systems] != [["--config", configs[0]]]:
            raise UserError(f"{configs[0]} lists fewer than two systems: give the config of one, or list two.")
        return {}
    names = _distinct([name for name, _ in systems])
    # a system comes first, so that options typed on the command line override it
    return {name: [args[0], *options, *others] for name, (_, options) in zip(names, systems, strict=True)}


def configs_and_others(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The files that `--config` names, and the words that are typed for all systems."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config", action="append", nargs="?", const="", default=[])
    known, others = parser.parse_known_args(words)
    return known.config, others


def _systems_in(config: str) -> list[tuple[str, list[str]]]:
    """The systems of a config by name, each with its options; a file that is not there is left to the parser."""
    import yaml

    try:
        found = load_yaml(Path(config).read_text(encoding="utf-8"), config)
    except (OSError, ValueError, yaml.YAMLError):
        found = None
    if not isinstance(found, dict) or "systems" not in found:
        return [(Path(config).stem, ["--config", config])]
    listed = found.pop("systems")
    if found or not isinstance(listed, dict) or not all(isinstance(each, str) for each in listed.values()):
        raise UserError(f"{config}: a list of systems is `systems: {{NAME: options as they are typed}}`, alone.")
    for name in listed:
        if not re.fullmatch(r"[\w-][\w.-]*", str(name)):
            raise UserError(f"{config}: the name of a system is {name!r}; it may have letters, digits, _, - and dots.")
    try:
        return [(str(name), shlex.split(options)) for name, options in listed.items()]
    except ValueError as error:
        raise UserError(f"{config}: a system's options cannot be read: {error}.") from error


def _distinct(stems: Sequence[str]) -> list[str]:
    """The stems, with their places where several are equal.

    Raises:
        UserError: If one of these is the name of another system.
    """
    names = [stem if stems.count(stem) == 1 else f"{stem}-{place}" for place, stem in enumerate(stems, 1)]
    if len({*names}) < len(names):
        raise UserError(f"--config: the systems would be named {', '.join(names)}: give their files other names.")
    return names


def compare(given: Mapping[str, dict[str, Any]]) -> None:
    """Check the options of all systems, measure one after the other, and write the comparison.

    Args:
        given: System -> the arguments of its evaluation; a system is taken out when its turn comes.
    """
    taken = _study_options(given)
    _check_shared(given)
    from harness.evaluation.comparison import write_comparison
    from harness.evaluation.report import OUTPUT
    from harness.evaluation.study import build

    first = next(iter(given.values()))
    out = Path(first["out"])
    of_evaluate = {"system", "study", "studies", "backend"}
    files, settings = files_and_settings(**{name: each for name, each in first.items() if name not in of_evaluate})
    studies = {name: build(options["system"], "study", taken[name]) for name, options in given.items()}
    files.check()
    OUTPUT.check_writable(out)
    measured: dict[str, MeasuredSystem] = {}
    load(settings.judge)
    with report_folder(out, settings) as folder:
        for number, name in enumerate(given, 1):
            say(f"System {number} of {len(given)}: {name}.")
            # taken out: what a system has loaded is freed before the next one loads
            system, study = given[name].pop("system"), studies.pop(name)
            gc.collect()  # what the parser built is held in cycles
            with chosen(first["backend"]):
                load(system)
            own = replace(settings, partial=partial_folder(settings.partial / name))
            (folder / name).mkdir()
            found = evaluate_into(folder / name, system, study if first["studies"] else None, files, own)
            # the system's report is written: what only it needs may hold all that was retrieved
            found.findings.plots, found.findings.records = {}, ()
            measured[name], settings = found, settings.for_questions(found.questions)
        write_comparison(folder, measured, files, settings)
    for folder in (*(partial_folder(settings.partial / name) for name in given), settings.partial):
        remove_saved(folder)
    if failed := [f"{name}: {each.failed.failed}" for name, each in measured.items() if each.failed.failed]:
        raise SomeFailedError(f"{'. '.join(failed)}. The others are done.")


def _study_options(given: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The options that each system's study takes, of those in its config and those that are typed for all.

    An option typed for all systems needs one study that takes it; one in a system's config needs that system's.

    Raises:
        UserError: Names the option.
    """
    from harness.evaluation.study import study_options

    own = {system: study_options(options["system"]) for system, options in given.items()}
    studies = {system: options["study"] or {} for system, options in given.items()}
    of_any = sorted({name for taken in own.values() for name in taken})
    for system, study in studies.items():
        for name in study:
            for_all = all(name in each for each in studies.values())
            allowed = of_any if for_all else own[system]
            if name not in allowed:
                whose = "these systems' studies" if for_all else f"the study of {system}"
                rest = f"allowed: {', '.join(allowed)}" if allowed else "there is no such study"
                raise UserError(f"study.{name} is no option of {whose}; {rest}.")
    return {system: {name: study[name] for name in study if name in own[system]} for system, study in studies.items()}


def _check_shared(given: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse systems whose configs differ in more than the system and its study.

    Raises:
        UserError: Names the option and both configs.
    """
    (first_name, first), *others = given.items()
    for name, options in others:
        for key in first.keys() - {"system", "study"}:
            one, other = (configuration(each[key]) or each[key] for each in (first, options))  # an object, or a value
            if one != other:
                raise UserError(
                    f"{key} is {one} for {first_name} and {other} for {name}: all systems of a comparison need the "
                    f"same. Type --{key} VALUE."
                )
