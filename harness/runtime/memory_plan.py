"""Memory plan of a configured system: what each part will take, in bytes, before anything is loaded.

The command line passes the parsed configuration as `StandIn` objects: classes with their arguments, not built. What a
class takes, its static method `memory` says (`harness.runtime.memory_needs`). A class without one is unknown: of the
folders and models that it names, the files are counted.
"""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from common.command_line import StandIn
from common.errors import MissingInputError
from harness.runtime.memory_needs import RAM, Load, Machine, Memory, Need
from harness.runtime.provenance import MANIFESTS


@dataclass(frozen=True, slots=True)
class Entry:
    """A part of a configuration with its memory."""

    key: str  # e.g. strategy.init_args.retriever
    part: StandIn
    load: Load
    memory: Memory


@dataclass(frozen=True, slots=True)
class Change:
    """An option to change, and what that saves."""

    entry: int  # place of the part in the plan
    option: str
    value: object
    saves: Mapping[str, int]  # bytes by place; negative where it takes more

    def typed(self, key: str) -> str:
        """The change as it is typed, or inside a list as it is written in the config."""
        value = str(self.value).lower() if isinstance(self.value, bool) else self.value
        if "[" in key:
            return f"in the config, {key}.init_args.{self.option}: {value}"
        return f"--{key}.init_args.{self.option} {value}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The memory of all parts of a configuration on a machine."""

    machine: Machine
    entries: tuple[Entry, ...]
    process: tuple[Need, ...]  # of the process itself
    known: dict[str, Memory] = field(default_factory=dict, repr=False)  # of parts with changed options

    @property
    def needs(self) -> list[Need]:
        """Of the process and of all parts; without a part on a GPU, the process takes nothing of it."""
        parts = [need for entry in self.entries for need in entry.memory.needs]
        used = {RAM, *(need.place for need in parts)}
        return [*(need for need in self.process if need.place in used), *parts]

    def needed(self, place: str) -> int:
        """Bytes needed in a place: all that is held, and the largest activations."""
        here = [need for need in self.needs if need.place == place]
        return sum(need.held for need in here) + max((need.activations for need in here), default=0)

    def fits(self, place: str) -> bool:
        """Whether a place has that much; True where the system does not say."""
        free = self.machine.free[place]
        return free is None or self.needed(place) <= free

    @property
    def short(self) -> list[str]:
        """The places where it does not fit."""
        return [place for place in self.machine.free if not self.fits(place)]

    def remedy(self) -> tuple["Plan", list[Change]]:
        """The plan after changes of options that lower the memory of short places, and the changes.

        The greatest saving comes first; after it everything is planned again, until it fits or nothing lowers it
        further. No option is changed twice.
        """
        plan, made = self, list[Change]()
        while plan.short:
            done = {(change.entry, change.option) for change in made}
            found = [(change, other) for change, other in plan._changes() if (change.entry, change.option) not in done]
            if not found:
                break
            short = plan.short
            change, plan = max(found, key=lambda each: max(each[0].saves[place] for place in short))
            made.append(change)
        return plan, made

    def _changes(self) -> Iterator[tuple[Change, "Plan"]]:
        """Changes with the plan after each.

        It saves at least a hundredth of what the parts need, and makes no place short.
        """
        for number, entry in enumerate(self.entries):
            for option, value in entry.memory.changes:
                if entry.part.init_args.get(option) == value or (value == "cpu" and self.short == [RAM]):
                    continue
                other = self._changed(number, option, value)
                saves = {place: self.needed(place) - other.needed(place) for place in self.machine.free}
                useful = any(saves[place] * 100 >= max(1, self._of_parts(place)) for place in self.short)
                if useful and all(other.fits(place) or saves[place] >= 0 for place in self.machine.free):
                    yield Change(number, option, value, saves), other

    def _of_parts(self, place: str) -> int:
        return self.needed(place) - sum(need.libraries for need in self.needs if need.place == place)

    def _changed(self, number: int, option: str, value: object) -> "Plan":
        """The plan with one option changed; what is counted once is kept."""
        entry = self.entries[number]
        part = StandIn(entry.part.class_type, {**entry.part.init_args, option: value})
        counted = f"{number} {part.init_args}"
        if counted not in self.known:
            self.known[counted] = _memory(self.machine, entry.load, part)
        changed = replace(entry, part=part, memory=self.known[counted])
        return replace(self, entries=(*self.entries[:number], changed, *self.entries[number + 1 :]))


def plan_memory(
    machine: Machine, key: str, part: object, questions: int, process: tuple[Need, ...] | None = None
) -> Plan:
    """The memory plan of a configured object.

    Args:
        machine: Where it is to run.
        key: Its key in the config, such as `strategy`.
        part: The object, as a `StandIn`.
        questions: Questions answered at once.
        process: Memory of the process; measured when None.

    Raises:
        UserError: What building the object would refuse: a missing folder, a corrupt manifest, a device that is not
            there.
    """
    entries = tuple(_walk(machine, Load(questions, questions), key, part))
    networks = any(need.weights for entry in entries for need in entry.memory.needs)
    return Plan(
        machine, entries, process or machine.process(networks)
    )  # now that the parts have loaded their libraries


def _walk(machine: Machine, load: Load, key: str, value: object) -> Iterator[Entry]:
    """The parts among a value, the outer before the inner."""
    if isinstance(value, StandIn):
        memory = _memory(machine, load, value)
        yield Entry(key, value, load, memory)
        for option, each in value.init_args.items():
            yield from _walk(machine, memory.parts or load, f"{key}.init_args.{option}", each)
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _walk(machine, load, f"{key}[{number}]", each)
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _walk(machine, load, f"{key}.{name}", each)


def _memory(machine: Machine, load: Load, part: StandIn) -> Memory:
    """What a class says of its memory; without its word, the files of the folders that it names."""
    hook = getattr(part.class_type, "memory", None)
    if hook is None:
        named = (value for value in part.init_args.values() if isinstance(value, str | Path))
        needs = tuple(need for value in named for need in _files(machine, value, part.init_args))
        return Memory(needs, unknown=f"{part.class_path} does not say what memory it takes")
    known = {**part.init_args, "machine": machine, "load": load}
    return hook(**{name: known[name] for name in inspect.signature(hook).parameters})


def _files(machine: Machine, named: str | Path, options: Mapping[str, Any]) -> Iterator[Need]:
    """The files of an index, serving folder or model, if an option's value names one that is on this machine."""
    folder = Path(named)
    if not folder.is_dir() and isinstance(named, str) and "/" in named:
        from models.pretrained import resolve

        try:
            folder = resolve(named)
        except MissingInputError:  # a text that names no model, or one that is not here
            return
    sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()} if folder.is_dir() else {}
    if (folder / MANIFESTS[1]).is_file():
        yield Need(f"files of {named}", RAM, index=sum(sizes.values()))
    elif weights := sum(size for path, size in sizes.items() if path.suffix in (".safetensors", ".bin")):
        yield Need(f"weights of {named}", machine.place(str(options.get("device", "auto"))), weights=weights)
