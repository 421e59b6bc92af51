"""Every printed command of README, docs, configs and scripts is resolved and parsed by its program, without a run."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from common.errors import UserError
from tests.docs import documents
from tests.docs.documents import CONFIGS, OVERLAYS, PAGES, ROOT, SCRIPTS, Printed, check, check_python, parse, parser_of

COMMANDS = [command for page in PAGES for command in documents.printed_on(page)]
COMMANDS += [command for file in (*CONFIGS, *SCRIPTS) for command in documents.printed_in_comments(file)]
PRINTED = [options for config in CONFIGS for options in documents.options_printed_in(config)]
FOR_A_STUDY = "--study.rewriters of"  # and then a config
RUNS = [  # arguments of each script, and how many commands it then runs
    ("quickstart.sh", ["drrag"], 8),
    ("quickstart.sh", ["rerag"], 10),
    ("quickstart.sh", ["dmqr"], 8),
    ("quickstart.sh", ["msrag"], 7),
    ("quickstart.sh", ["hiqa"], 11),
    ("quickstart.sh", ["all"], 44),
    ("drrag_multihop.sh", ["--trainer.accumulate_grad_batches", "2"], 20),
    ("rerag_presets.sh", ["0", "paper released ours ours_unlabelled"], 16),
    ("reproduce_lm/drrag-classifier.sh", [], 20),
    ("reproduce_lm/lm-estimator.sh", [], 5),
    ("reproduce_lm/joint.sh", [], 2),
    ("reproduce_lm/lm-reader.sh", [], 1),
    ("reproduce_lm/packed-reader.sh", [], 9),
]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("command", {each.text: each for each in COMMANDS}.values(), ids=lambda command: command.name)
def test_printed_commands_parse(command: Printed) -> None:
    check(command.text)


@pytest.mark.parametrize(
    "command",
    [
        "python train.py fit --config configs/quickstart/drrag_train.yaml --model.learning_rat 1e-4",
        "python train.py fit --config configs/train/no_such.yaml",
        "python train.py train --config configs/quickstart/drrag_train.yaml",
        "torchrun --nproc-per-node 8 train.py fit --config configs/quickstart/drrag_train.yaml --trainer.device 8",
        "python infer.py evaluate --config configs/quickstart/drrag.yaml --question dev.json --out reports/x",
        "python infer.py evaluate --config configs/infer/rerag.yaml --questions a.json --out b --protocol squad",
        "python infer.py evaluate --config configs/infer/rerag.yaml --questions a.json --out b --study.rows [QDC]",
        "python infer.py evaluate --config configs/infer/retrieve_read.yaml --config no_such.yaml --questions a.json "
        "--out b",
        "python infer.py ask --config configs/infer/rerag.yaml --question x --system.init_args.refus true",
        "python infer.py ask --config configs/quickstart/rerag.yaml --question x",
        "python infer.py evaluate --config configs/quickstart/rerag.yaml --questions a --out b --index_root indexes/x",
        "python -m trainers.t5_from_scratch --out checkpoints/x --vocab 10",
        "python -m datamodules.world --output data/world",
        "python -m benchmarks.seeds --system ours reports/ours-0 --measured EM",
        "make quick-start",
        "bash scripts/quick.sh",
        "pip install -r requirements-all.txt",
    ],
)
def test_a_mistake_in_a_command_is_found(command: str) -> None:
    with pytest.raises((AssertionError, UserError)):
        check(command)


def test_commands_are_found_in_every_kind_of_block(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "Type `make test`.\n\n    python infer.py ask --config c.yaml \\\n        --question x\n\n1. Then\n\n       "
    text += "OMP_NUM_THREADS=1 bash scripts/a.sh\n\n```\ntorchrun train.py   # all\nplain\n```\n\n"
    page.write_text(text + "```python\npython = 1\n```\n")
    assert [command.text for command in documents.printed_on(page)] == [
        "torchrun train.py   # all",
        "python infer.py ask --config c.yaml --question x",
        "OMP_NUM_THREADS=1 bash scripts/a.sh",
        "make test",
    ]


EVALUATE = ["--questions", "dev.json", "--out", "reports/x"]


def trial_of(sweep: Path, value: float = 1e-05) -> list[str]:
    """What W&B's agent types after `python train.py` for a trial of a sweep, each parameter with one value."""
    config = yaml.safe_load(sweep.read_text())
    typed = [word for word in config["command"] if not word.startswith("${")]
    return [*typed, *(f"--{name}={value}" for name in config["parameters"])]


def commands_with(config: Path) -> list[tuple[str, list[str]]]:
    """Programs and arguments that take a config, the first to which the options of its header are added."""
    holds, plain = yaml.safe_load(config.read_text()), ["--config", "configs/infer/retrieve_read.yaml"]
    given, asked = ["--config", str(config)], ["--question", "x"]
    if config in OVERLAYS:
        return [("train", ["fit", *run]) for run in documents.runs_of(config)]
    if config.parent.name == "sweep":
        return [("train", trial_of(config))]
    if config.parent.name == "llm":
        llm = [*plain, "--llm", str(config)]
        return [("infer", ["ask", *llm, *asked]), ("infer", ["evaluate", *llm, *EVALUATE])]
    if config.parent.name in ("parts", "web"):
        kind = "reader" if config.stem.startswith("reader") else "retriever"
        return [("infer", ["ask", *plain, f"--system.init_args.{kind}", str(config), *asked])]
    if "model" in holds:
        return [("train", ["fit", *given])]
    if {"system", "systems"} & {*holds}:
        return [("infer", ["evaluate", *given, *EVALUATE])]
    (command,) = {"mine", "label"} & set(config.stem.split("_"))
    return [("infer", [command, *given])]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.parent.name}/{config.stem}")
def test_every_config_is_parsed_by_its_command_and_says_whether_it_is_measured(config: Path) -> None:
    for program, arguments in commands_with(config):
        parse(program, arguments)
    if config.parent.name not in ("llm", "parts", "web"):
        assert re.match(r"# (Measured|Planned)\. ", config.read_text())
    trainer = yaml.safe_load(config.read_text()).get("trainer", {})
    assert not {"accelerator", "devices", "strategy", "num_nodes"} & set(trainer)  # of no one's machine


@pytest.mark.parametrize("rate", [0.0001, 1e-05, 3.1622776601683795e-05])
def test_train_takes_what_an_agent_of_a_sweep_gives(rate: float) -> None:
    file = ROOT / "configs/sweep/learning_rate.yaml"
    fit = parser_of("train").parse_args(trial_of(file, rate)).fit
    assert fit.model.init_args.optimizer.learning_rate == rate
    assert fit.checkpoint.monitor == yaml.safe_load(file.read_text())["metric"]["name"]


@pytest.mark.parametrize("options", PRINTED, ids=lambda options: options.name)
def test_options_of_a_header_work(options: Printed) -> None:
    if options.text == FOR_A_STUDY:
        (config,) = re.findall(rf"{FOR_A_STUDY} (configs/\S+\.yaml)", " ".join(documents.comments_of(options.file)))
        parse("infer", ["evaluate", "--config", config, *EVALUATE, "--study.rewriters.own", str(options.file)])
        return
    program, base = commands_with(options.file)[0]
    parse(program, [*base, *shlex.split(options.text)])


def test_options_are_found_in_headers() -> None:
    of_rerag = [each.text for each in PRINTED if each.file.match("infer/rerag.yaml")]
    assert of_rerag[1:] == [
        "--system.init_args.serving checkpoints/reranker-nq/serving --system.init_args.retriever null",
        "--system.init_args.serving FOLDER",
        "--index_root FOLDER",
    ]
    assert (len(PRINTED) > 25, [each.text for each in PRINTED].count(FOR_A_STUDY)) == (True, 3)


@pytest.mark.parametrize(("script", "arguments", "count"), RUNS, ids=lambda each: str(each)[:24])
def test_every_command_of_a_script_parses(script: str, arguments: list[str], count: int, tmp_path: Path) -> None:
    commands = documents.commands_of(script, arguments, tmp_path)
    assert len(commands) == count
    for command in commands:
        if command[:2] == ["-m", "torch.distributed.run"]:  # torchrun, of the Python that the script is given
            command = command[next(place for place, word in enumerate(command) if word.endswith(".py")) :]
        check_python(command)


def test_scripts_have_no_syntax_error() -> None:
    for script in SCRIPTS:
        subprocess.run(["bash", "-n", str(script)], check=True)
