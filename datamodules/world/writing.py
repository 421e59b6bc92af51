"""Writes a generated world to a folder, atomically."""

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from random import Random

from common.files import digests, whole_folder
from common.outputs import OutputFolder, listed_files
from datamodules.world.layouts import fid, flashrag_passage, hotpotqa, rephrased_hotpotqa, sourced_flashrag
from datamodules.world.manuals import file_name, write_manual
from datamodules.world.mixed import mixed_questions
from datamodules.world.phrases import SPLITS
from datamodules.world.rephrasing import rephrase
from datamodules.world.several_sources import several_sources
from datamodules.world.world import VERSION, World, WorldConfig, generate
from documents.manuals.writing import Library

RECORD = "world.json"
WORLD = OutputFolder("`python -m datamodules.world`", "a world", listed_files(RECORD))


def write_world(config: WorldConfig, out: Path) -> dict:
    """Generate a world and write it.

    Args:
        config: Seed and sizes.
        out: Output folder; replaced if it holds a world.

    Returns:
        The content of `world.json`: configuration, generator version, counts, sha256 of every other file.

    Raises:
        UserError: If `out` holds anything else, another process is writing it, reportlab is missing for a library, or
            there are too few questions for `mixed`.
        ArtifactError: If writing fails; no incomplete folder is left.
    """
    with Library(config.seed) if config.library else nullcontext() as library, WORLD.locked(out):
        return _write(generate(config), library, config, out)


def _write(world: World, manuals: Library | None, config: WorldConfig, out: Path) -> dict:
    with whole_folder(out) as folder:
        _write_questions(world, folder)
        rest = [world.passages[e] for split in SPLITS for e in world.entities[split]]
        Random(f"{config.seed}/order").shuffle(rest)
        _write_lines(folder / "corpus.jsonl", (flashrag_passage(n, passage) for n, passage in enumerate(rest)))
        web = [world.passages[e] for e in world.entities["web"]]
        _write_lines(folder / "web_corpus.jsonl", (flashrag_passage(n, passage) for n, passage in enumerate(web)))
        manual_questions = _write_manuals(world, config, folder)
        rephrased = _write_rephrased(world, config, folder) if config.rephrased else {}
        sourced = _write_several_sources(world, config, folder) if config.msrag else {}
        library = manuals.write(folder) if manuals else {}
        mixed = _write_mixed(config, folder) if config.mixed else {}
        record = {
            "generator_version": VERSION,
            "recipe": asdict(config),
            "passages": {"corpus": len(rest), "web_corpus": len(web), "manuals": config.manuals},
            "questions": {
                split: _count(s.generated.kind for s in world.questions[split]) for split in (*SPLITS, "web")
            },
            "single_hop_questions": {split: len(world.singles[split]) for split in SPLITS},
            "open_single_hop_questions": {split: len(world.open_singles[split]) for split in SPLITS},
            "manual_questions": manual_questions,
            "rephrased_questions": rephrased,
            "msrag": sourced,
            "library": library,
            "mixed_questions": mixed,
            "sha256": digests(folder),
        }
        (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return record


def _write_questions(world: World, folder: Path) -> None:
    for split in (*SPLITS, "web"):
        name = "test_web" if split == "web" else split
        rows = [(f"{name}_{number:05d}", s) for number, s in enumerate(world.questions[split])]
        _write_list(folder / f"{name}.json", (hotpotqa(s, row_id, world.passages) for row_id, s in rows))
        for kind, file, shipped in (
            ("single", f"fid_{name}.json", world.singles[split]),
            ("open", f"fid_{name}_open.json", world.open_singles[split]),
        ):
            rows = [(f"{name}_{kind}_{number:05d}", s) for number, s in enumerate(shipped)]
            if rows:
                _write_list(folder / file, (fid(s, row_id, world.passages) for row_id, s in rows))


def _write_manuals(world: World, config: WorldConfig, folder: Path) -> int:
    random = Random(f"{config.seed}/manuals")
    products = [e for split in ("test", "train") for e in world.entities[split] if e.kind == "product"]
    (folder / "manuals").mkdir()
    rows: list[dict] = []
    for product in products[: config.manuals]:
        text, questions = write_manual(product, random)
        (folder / "manuals" / file_name(product)).write_text(text, encoding="utf-8")
        rows += questions
    _write_lines(folder / "manual_questions.jsonl", ({"id": f"manual_{n:05d}", **row} for n, row in enumerate(rows)))
    return len(rows)


def _write_rephrased(world: World, config: WorldConfig, folder: Path) -> dict[str, dict[str, int]]:
    """Write the rephrased questions with their target rewrites.

    Returns their number per split and kind.
    """
    counts = {}
    for split, made in rephrase(world, config).items():
        rows = (rephrased_hotpotqa(one, f"{split}_rephrased_{n:05d}", world.passages) for n, one in enumerate(made))
        _write_list(folder / f"rephrased_{split}.json", rows)
        pairs = (
            {"question": one.question, "strategy": strategy, "rewrite": rewrite}
            for one in made
            for strategy, rewrite in one.rewrites.items()
        )
        _write_lines(folder / f"rewrites_{split}.jsonl", pairs)
        counts[split] = _count(one.kind for one in made)
    return counts


def _write_several_sources(world: World, config: WorldConfig, folder: Path) -> dict[str, dict]:
    """Write the questions for answering from several sources, and the sources.

    Returns the numbers of facts and of questions by share.
    """
    made = several_sources(world, config)
    for name, passages in (("web", made.web), ("knowledge", made.knowledge)):
        _write_lines(folder / f"msrag_{name}.jsonl", (flashrag_passage(n, each) for n, each in enumerate(passages)))
    questions = {}
    for split, asked in made.questions.items():
        rows = (sourced_flashrag(one, f"{split}_msrag_{n:05d}") for n, one in enumerate(asked))
        _write_lines(folder / f"msrag_{split}.jsonl", rows)
        questions[split] = _count(one.share for one in asked)
    return {
        "passages": {"web": len(made.web), "knowledge": len(made.knowledge)},
        "facts": made.facts,
        "questions": questions,
    }


def _write_mixed(config: WorldConfig, folder: Path) -> dict[str, dict[str, int]]:
    """Write the questions of all kinds in one file for each split; returns their number per split and kind."""
    counts = {}
    for split, rows in mixed_questions(folder, config.mixed, config.seed).items():
        _write_lines(folder / f"mixed_{split}.jsonl", rows)
        counts[split] = _count(row["metadata"]["type"] for row in rows)
    return counts


def _count(kinds: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(kinds).items()))


def _write_list(path: Path, rows: Iterable[dict]) -> None:
    """Write a JSON list with one row per line, so that it is readable."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def _write_lines(path: Path, rows: Iterable[dict]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
