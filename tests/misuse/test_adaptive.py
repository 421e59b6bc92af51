"""The adaptive choice on the command line: the strategy is chosen, and the reason is shown."""

from collections.abc import Callable
from pathlib import Path

from tests.helpers.commands import Ended, command

KEY = "--system.init_args.rewriter.init_args."


def test_a_choice_around_a_file_s_rewrites(made: Callable[[str], Path]) -> None:
    """The options of `lines.yaml` without a mistake work, also where nothing is chosen."""

    def ask(*more: str) -> Ended:
        typed = ("ask", "--config", "adaptive.yaml", "--question", "alba river", "--width", "200")
        return command(made("asking"), "infer.py", *typed, *more)

    chosen = ask()
    assert chosen.code == 0, chosen.err
    assert "kwr: kwr alba" in chosen.out
    assert "Reason for these queries: kwr by P of at least 0.00: kwr 0." in chosen.out
    nothing = ask(f"{KEY}threshold", "1")
    assert "kwr alba" not in nothing.out
    assert "Reason for these queries: no strategy by P of at least 1.00: kwr 0." in nothing.out
    general = ask("--system.init_args.strategies", "[kwr,gqr]", f"{KEY}always", "[gqr]", f"{KEY}threshold", "1")
    assert "gqr: gqr alba" in general.out
