"""`infer.py evaluate` with several --config: all systems answer the same questions, one report compares them."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.command_line import StandIn
from common.errors import UserError
from common.files import whole_folder
from common.progress import say
from harness.commands.evaluate import check_evaluate, evaluate, evaluate_into, files_of, remove_partial, settings_of
from harness.interfaces import Strategy

if TYPE_CHECKING:
    from harness.evaluation.engine import Measured
    from harness.evaluation.judge import Judge

Run = Callable[[dict[str, Any], list[str]], Any]  # commands by name, arguments -> what the command returns


def systems_of(args: Sequence[str]) -> dict[str, list[str]]:
    """The arguments of every system by its name, the name of its config file; fewer than two systems: empty.

    Args:
        args: The command line's arguments.
    """
    if not args or args[0] != "evaluate":
        return {}
    configs, others = [], []
    words = iter(args[1:])
    for word in words:
        if word == "--config":
            configs.append(next(words, ""))
        elif word.startswith("--config="):
            configs.append(word.partition("=")[2])
        else:
            others.append(word)
    if len(configs) < 2:
        return {}
    names = _distinct([Path(config).stem for config in configs])
    # a config comes first, so that options typed on the command line override it
    return {name: [args[0], "--config", config, *others] for name, config in zip(names, configs, strict=True)}


def _distinct(stems: Sequence[str]) -> list[str]:
    """The stems; where several are equal, with the first number, from their place, that makes them distinct."""
    names: list[str] = []
    for place, stem in enumerate(stems, 1):
        numbered = (f"{stem}-{number}" for number in range(place, place + len(stems) + 1))
        names.append(
            stem if stems.count(stem) == 1 else next(each for each in numbered if each not in (*stems, *names))
        )
    return names


def compare(systems: Mapping[str, list[str]], check: Run, run: Run) -> None:
    """Check the options of all systems, measure one after the other, and write the comparison.

    Args:
        systems: From `systems_of`.
        check: Parses and checks a command line without building anything.
        run: Runs a command line.
    """
    given = [check({"evaluate": _returning_its_arguments}, args) for args in systems.values()]
    _check_all_taken(systems, given)
    _check_shared(systems, given)
    from harness.evaluation.comparison import write_comparison
    from harness.evaluation.judging.ranking import judge_several
    from harness.evaluation.report import OUTPUT
    from harness.evaluation.study import build_study

    shared = {name: given[0][name] for name in ("layout", "normalization", "ks", "paper", "resamples", "seed")}
    out = Path(given[0]["out"])
    files = files_of(**{name: given[0][name] for name in ("questions", "layout", "limit", "held_out", "gold")})
    settings = settings_of(out, **shared)
    measured: dict[str, Measured] = {}
    judge: Judge | None = None
    with OUTPUT.locked(out):
        with whole_folder(out) as folder:
            for number, (name, args) in enumerate(systems.items(), 1):
                say(f"System {number} of {len(systems)}: {name}.")

                @functools.wraps(evaluate)
                def measure(name: str = name, **options: Any) -> Any:
                    nonlocal judge
                    if judge is None and options["judge"] is not None:
                        judge = options["judge"]  # one for all systems: it gives equal requests one verdict
                        judge.keep_in(settings.partial)
                    own = settings_of(settings.partial / name, **shared)
                    taken = _own_options(options["strategy"], options["study"])
                    study = (
                        build_study(options["strategy"], taken, out, options["layout"]) if options["studies"] else None
                    )
                    (folder / name).mkdir()
                    found = evaluate_into(folder / name, options["strategy"], study, files, own, judge)
                    # the system's report is written: what only it needs may hold all that was retrieved
                    found.findings.plots, found.findings.records = {}, ()
                    return found

                # its own --out, which is not written: the comparison's is locked by this process
                measured[name] = run({"evaluate": measure}, [*args, "--out", str(settings.partial / name)])
            write_comparison(folder, measured, files, settings, judge_several(judge, measured, settings))
        for name in systems:
            remove_partial(settings.partial / f"{name}.partial")
        remove_partial(settings.partial)
        print((out / "report.md").read_text(encoding="utf-8"))
        say(f"{out}: {', '.join(sorted(path.name for path in out.iterdir()))}.")


@functools.wraps(check_evaluate)
def check_compared(strategy: Strategy, study: dict[str, Any] | None, **options: Any) -> None:
    """As `check_evaluate`, for one of several systems: options of other systems' studies are not its own."""
    check_evaluate(strategy, study=_own_options(strategy, study), **options)


def _own_options(strategy: Strategy, study: dict[str, Any] | None) -> dict[str, Any]:
    """Those of the options that the strategy's study takes."""
    from harness.evaluation.study import study_options

    taken = study_options(strategy)
    return {name: value for name, value in (study or {}).items() if name in taken}


def _check_all_taken(names: Iterable[str], given: Sequence[Mapping[str, Any]]) -> None:
    """An option typed for all systems needs one study that takes it; one in a system's config needs that system's.

    Raises:
        UserError: Names the option.
    """
    from harness.evaluation.study import study_options

    own = [study_options(options["strategy"]) for options in given]
    studies = [options["study"] or {} for options in given]
    of_any = sorted({name for taken in own for name in taken})
    for system, study, taken in zip(names, studies, own, strict=True):
        for name in study:
            for_all = all(name in each for each in studies)
            allowed = of_any if for_all else taken
            if name not in allowed:
                whose = "these systems' studies" if for_all else f"the study of {system}"
                rest = f"allowed: {', '.join(allowed)}" if allowed else "there is no such study"
                raise UserError(f"study.{name} is no option of {whose}; {rest}.")


def _check_shared(names: Iterable[str], given: Sequence[Mapping[str, Any]]) -> None:
    """Refuse systems whose configs differ in more than the system and its study.

    Raises:
        UserError: Names the option and both configs.
    """
    (first_name, first), *others = zip(names, given, strict=True)
    for name, options in others:
        for key in first.keys() - {"strategy", "study"}:
            if _described(options[key]) != _described(first[key]):
                raise UserError(
                    f"{key} is {_described(first[key])} for {first_name} and {_described(options[key])} for {name}: "
                    f"all systems of a comparison need the same. Type --{key} VALUE."
                )


def _described(value: object) -> object:
    """An option's value; an object by its class and its arguments."""
    if not isinstance(value, StandIn):
        return value
    return {"class_path": value.class_path} | {name: _described(each) for name, each in value.init_args.items()}


@functools.wraps(evaluate)
def _returning_its_arguments(**options: Any) -> dict[str, Any]:
    return options
