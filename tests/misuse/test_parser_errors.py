"""Mistyped options: one line in plain words with the allowed values, and a command that lists the keys in question."""

import re
import shlex
from pathlib import Path

import pytest

from common.parser_messages import in_plain_words
from tests.docs.documents import ROOT, parser_of
from tests.helpers.commands import command

DRRAG, RERAG = "harness.strategies.drrag.DrRag", "harness.strategies.rerag.ReRag"
DENSE, FUSED = "harness.retrievers.dense.DenseRetriever", "harness.retrievers.fusion.FusedRetriever"
FIT = f"train.py fit --config {ROOT / 'configs/train/drrag_world.yaml'} "
ASK = f"infer.py ask --question x --strategy {DRRAG} "
LISTED = [{"class_path": DENSE, "init_args": {"indx": "a"}}]
MISTAKES = {  # command line -> the error line, and what follows "All keys: python"
    "infer.py aks": ("command 'aks' is unknown; allowed: index, synthesize, distill, mine, label, preferences, "
                     "score, ask, evaluate, export; close to it: ask.",
                     "infer.py --help"),
    "infer.py index --corpus x": ("--out: not given, but required.", "infer.py index --help"),
    "infer.py index --corpus x --out y --kind faiss": ("kind is 'faiss'; allowed: dense, bm25, keywords, links.",
        "infer.py index --help"),
    "infer.py index --max_tokens many": ("max_tokens is 'many'; allowed: a whole number or null.",
        "infer.py index --help"),
    "infer.py evaluate --paper nqq": (
                                     "paper is 'nqq'; allowed: musique, hotpotqa, 2wiki, nq, triviaqa, ambignq, "
                                     "freshqa, strategyqa or null.",
                                     "infer.py evaluate --help"),
    "infer.py evaluate --ks 3": ("ks is '3'; allowed: a list.", "infer.py evaluate --help"),
    "infer.py ask --jsn true": ("--jsn: no such option; close to it: --json.", "infer.py ask --help"),
    "infer.py ask --json maybe": ("json is 'maybe'; allowed: true or false.", "infer.py ask --help"),
    "infer.py ask --question x": ("--strategy: not given, but required.", "infer.py ask --help"),
    "infer.py ask --llm configs/llm/none.yaml": ("llm: the file configs/llm/none.yaml does not exist.",
        "infer.py ask --help"),
    "infer.py evaluate --judge.llm none.yaml": ("judge.llm: the file none.yaml does not exist.",
        "infer.py evaluate --judge.help harness.evaluation.judge.Judge"),
    "infer.py ask --strategy 5": ("strategy is '5'; allowed: the path of a class.", "infer.py ask --strategy.help"),
    f"infer.py ask --strategy {DRRAG}g": (
        f"strategy: {DRRAG}g is not a class that can be used (module 'harness.strategies.drrag' has no attribute "
        "'DrRagg').",
        "infer.py ask --strategy.help"),
    f"infer.py ask --strategy {FUSED}": (f"strategy: {FUSED} is not of the kind Strategy.",
        "infer.py ask --strategy.help"),
    ASK + "--strategy.lookahead x": ("strategy.lookahead is 'x'; allowed: a whole number.",
                                     f"infer.py ask --strategy.help {DRRAG}"),
    ASK + "--strategy.selection.method best": (
                                               "strategy.selection.method is 'best'; allowed: sm, qdc, cis, cfs, "
                                               "ranked.",
                                               f"infer.py ask --strategy.help {DRRAG}"),
    ASK + "--strategy.readr x": ("strategy.readr is no key of strategy; close to it: reader.",
                                 f"infer.py ask --strategy.help {DRRAG}"),
    ASK + f"--strategy.retriever {DENSE}": ("strategy.retriever.index: not given, but required.",
                                            f"infer.py ask --strategy.help {DRRAG} --strategy.retriever.help {DENSE}"),
    ASK + f"--strategy.retriever {DENSE} --strategy.retriever.nprob 3": (
        "strategy.retriever.nprob is no key of strategy.retriever; close to it: nprobe.",
        f"infer.py ask --strategy.help {DRRAG} --strategy.retriever.help {DENSE}"),
    ASK + f"--strategy.retriever {FUSED} --strategy.retriever.weights '[a, b]'": (
        "strategy.retriever.weights is ['a', 'b']; allowed: a list (a number each) or null.",
        f"infer.py ask --strategy.help {DRRAG} --strategy.retriever.help {FUSED}"),
    ASK + f"--strategy.retriever {FUSED} --strategy.retriever.retrievers {shlex.quote(str(LISTED))}": (
        "strategy.retriever.retrievers.indx is no key of strategy.retriever.retrievers; close to it: index.",
        f"infer.py ask --strategy.help {DRRAG} --strategy.retriever.help {FUSED} --strategy.retriever.retrievers.help "
        f"{DENSE}"),
    f"infer.py ask --strategy {RERAG} --strategy.threshold x": ("strategy.threshold is 'x'; allowed: a number or null.",
                                                                f"infer.py ask --strategy.help {RERAG}"),
    "train.py": ("no command was given; allowed: fit, validate.", "train.py --help"),
    "train.py fot": ("command 'fot' is unknown; allowed: fit, validate; close to it: fit.", "train.py --help"),
    FIT + "--trainer.precision 8": (
        "trainer.precision is '8'; allowed: auto, 64, 32, 16, transformer-engine, transformer-engine-float16, 16-true, "
        "16-mixed, bf16-true, bf16-mixed, 32-true, 64-true, bf16 or null.", "train.py fit --trainer.help"),
    FIT + "--trainer.max_epochs x": ("trainer.max_epochs is 'x'; allowed: a whole number or null.",
                                     "train.py fit --trainer.help"),
    FIT + "--trainer.loger x": ("--trainer.loger: no such option; close to it: --trainer.logger.",
                                "train.py fit --trainer.help"),
    FIT + "--checkpoint.train_time_interval x": (
        'checkpoint.train_time_interval is \'x\'; allowed: a duration such as "1:30:00" or "2 days, 0:00:00" or null.',
        "train.py fit --checkpoint.help"),
    FIT + "--model.max_tokens many": ("model.max_tokens is 'many'; allowed: a whole number.",
                                      "train.py fit --model.help trainers.drrag.DrRagTrainer"),
    FIT + "--model.learning_rat 1": ("model.learning_rat is no key of model; close to it: learning_rate.",
                                     "train.py fit --model.help trainers.drrag.DrRagTrainer"),
    FIT + "--model.class_path foo.Bar": ("model: foo.Bar is not a class that can be used (No module named 'foo').",
                                         "train.py fit --model.help"),
    FIT + "--data.sampling.mixed_share x": ("data.sampling.mixed_share is 'x'; allowed: a number.",
                                            "train.py fit --data.help datamodules.drrag.DrRagData"),
    FIT + "--name": ("argument --name: expected one argument.", "train.py fit --help"),
}  # fmt: skip


def parse(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[object, str, str]:
    """Exit code, output and error lines of a program's parser; nothing is run."""
    program, *arguments = shlex.split(line)
    with pytest.raises(SystemExit) as stop:
        parser_of(program.removesuffix(".py")).parse_args(arguments)
    return stop.value.code, *capsys.readouterr()


@pytest.mark.parametrize("line", MISTAKES, ids=lambda line: re.sub(r"--config \S+ |harness\.\w+\.", "", line)[:60])
def test_a_mistake_is_named_in_plain_words(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    explanation, help_command = MISTAKES[line]
    code, out, err = parse(line, capsys)
    assert err.splitlines() == [f"{line.split()[0]}: {explanation}", f"All keys: python {help_command}"]
    assert (code, out) == (2, "")
    assert not re.search(r"Union|typing|Literal|<class|NoneType", err)


@pytest.mark.parametrize("help_command", sorted({each for _, each in MISTAKES.values() if ".help" in each}))
def test_the_command_named_lists_the_keys(help_command: str, tmp_path: Path) -> None:
    program, *arguments = help_command.split()
    ended = command(tmp_path, program, *arguments)
    assert (ended.code, ended.err) == (0, "")
    asked = (
        arguments[-1].removesuffix(".help") if arguments[-1].endswith(".help") else arguments[-2].removesuffix(".help")
    )
    assert f"{asked}." in ended.out or f"Classes for {asked}" in ended.out


def test_another_message_stays_in_one_line() -> None:
    assert in_plain_words("Something\n  else.").text == "Something else"
