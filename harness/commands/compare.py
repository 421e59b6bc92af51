"""`infer.py evaluate` with several --config: all systems answer the same questions, one report compares them."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.files import whole_folder
from common.progress import say
from harness.commands.evaluate import check_evaluate, evaluate, evaluate_into, remove_partial, settings_of
from harness.interfaces import Strategy

Run = Callable[[dict[str, Any], list[str]], Any]  # commands by name, arguments -> what the command returns


def systems_of(args: Sequence[str]) -> dict[str, list[str]]:
    """The arguments of every system by its name, the name of its config file; fewer than two systems: empty.

    Args:
        args: The command line's arguments.
    """
    if not args or args[0] != "evaluate":
        return {}
    configs, others = [], []
    words = iter(args)
    for word in words:
        if word == "--config":
            configs.append(next(words, ""))
        elif word.startswith("--config="):
            configs.append(word.partition("=")[2])
        else:
            others.append(word)
    if len(configs) < 2:
        return {}
    stems = [Path(config).stem for config in configs]
    names = [stem if stems.count(stem) == 1 else f"{stem}-{place}" for place, stem in enumerate(stems, 1)]
    return {name: [*others, "--config", config] for name, config in zip(names, configs, strict=True)}


def compare(systems: Mapping[str, list[str]], check: Run, run: Run) -> None:
    """Check the options of all systems, measure one after the other, and write the comparison.

    Args:
        systems: From `systems_of`.
        check: Parses and checks a command line without building anything.
        run: Runs a command line.
    """
    given = [check({"evaluate": _returning_its_arguments}, args) for args in systems.values()]
    _check_all_taken([each["strategy"] for each in given], {name for each in given for name in each["study"] or {}})
    from harness.evaluation.comparison import write_comparison
    from harness.evaluation.report import OUTPUT
    from harness.evaluation.study import build_study

    shared = {name: given[0][name] for name in ("layout", "normalization", "ks", "paper", "resamples", "seed")}
    out, source, limit = Path(given[0]["out"]), given[0]["questions"], given[0]["limit"]
    settings = settings_of(out, **shared)
    measured = {}
    with OUTPUT.locked(out):
        with whole_folder(out) as folder:
            for number, (name, args) in enumerate(systems.items(), 1):
                say(f"System {number} of {len(systems)}: {name}.")

                @functools.wraps(evaluate)
                def measure(name: str = name, **options: Any) -> Any:
                    own = settings_of(settings.partial / name, **shared)
                    taken = _own_options(options["strategy"], options["study"])
                    study = build_study(options["strategy"], taken, out, options["layout"])
                    (folder / name).mkdir()
                    return evaluate_into(folder / name, options["strategy"], study, source, limit, own)

                # its own --out, which is not written: the comparison's is locked by this process
                measured[name] = run({"evaluate": measure}, [*args, "--out", str(settings.partial / name)])
            write_comparison(folder, measured, source, settings)
        for name in systems:
            remove_partial(settings.partial / f"{name}.partial")
        with suppress(OSError):  # nothing was saved
            settings.partial.rmdir()
        print((out / "report.md").read_text(encoding="utf-8"))
        say(f"{out}: {', '.join(sorted(path.name for path in out.iterdir()))}.")


def check_compared(strategy: Strategy, study: dict[str, Any] | None, **options: Any) -> None:
    """As `check_evaluate`, for one of several systems: options of other systems' studies are not its own."""
    check_evaluate(strategy, study=_own_options(strategy, study), **options)


check_compared.__signature__ = inspect.signature(check_evaluate)  # type: ignore[attr-defined]


def _own_options(strategy: Strategy, study: dict[str, Any] | None) -> dict[str, Any]:
    """Those of the options that the strategy's study takes."""
    from harness.evaluation.study import study_options

    taken = study_options(strategy)
    return {name: value for name, value in (study or {}).items() if name in taken}


def _check_all_taken(strategies: Sequence[Strategy], options: Set[str]) -> None:
    """Raise UserError if no system's study takes one of the options, of the command line or of a config."""
    from harness.evaluation.study import study_options

    taken = {name for strategy in strategies for name in study_options(strategy)}
    for name in sorted(options):
        if name not in taken:
            allowed = f"allowed: {', '.join(sorted(taken))}" if taken else "none of them has a study"
            raise UserError(f"study.{name} is no option of these systems' studies; {allowed}.")


@functools.wraps(evaluate)
def _returning_its_arguments(**options: Any) -> dict[str, Any]:
    return options
