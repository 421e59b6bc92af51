"""Writes the library: manuals as PDFs, their true structure, and the questions about them."""

import json
from collections import Counter
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from random import Random

from common.errors import UserError
from datamodules.world.library.asking import QUESTIONS, ask
from datamodules.world.library.composing import compose
from datamodules.world.library.families import FAMILIES
from datamodules.world.library.products import draw_products
from datamodules.world.library.questions import LibraryQuestion

PACKAGE = "reportlab"


def check_installed() -> None:
    """Raise UserError if the package that typesets the manuals is missing."""
    if find_spec(PACKAGE) is None:
        raise UserError(
            f"the library's manuals are typeset with {PACKAGE}, which is not installed: pip install 'lightning-rag[library]', "
            "or leave out --library."
        )


def write_library(folder: Path, seed: int) -> dict:
    """Write `library/documents/*.pdf`, `library/truth/*.json` and `library_{test,validation}.jsonl`.

    Args:
        folder: The world's folder.
        seed: The world's seed.

    Returns:
        Numbers of manuals, pages and questions by kind.

    Raises:
        UserError: If reportlab is missing.
    """
    check_installed()
    from datamodules.world.library.typesetting import typeset

    manuals = [compose(product) for product in draw_products(FAMILIES, Random(f"{seed}/library/products"))]
    documents, truth = folder / "library" / "documents", folder / "library" / "truth"
    for made in (documents, truth):
        made.mkdir(parents=True)
    for manual in manuals:
        (documents / manual.file).write_bytes(typeset(manual))
        text = json.dumps(manual.truth(), ensure_ascii=False, indent=1)
        (truth / f"{manual.product.file}.json").write_text(text + "\n", encoding="utf-8")
    questions = {}
    for split in QUESTIONS:
        asked = ask(manuals, split, Random(f"{seed}/library/{split}"))
        rows = (_row(one, f"{split}_library_{number:05d}") for number, one in enumerate(asked))
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"library_{split}.jsonl").write_text(lines, encoding="utf-8")
        questions[split] = dict(sorted(Counter(one.kind for one in asked).items()))
    return {"manuals": len(manuals), "pages": sum(manual.page_count for manual in manuals), "questions": questions}


def _row(one: LibraryQuestion, name: str) -> dict:
    """A row of FlashRAG's questions, with the gold segments in its metadata."""
    gold = []
    for manual, key in one.gold:
        segment = asdict(manual.gold(key))
        evidence = segment["evidence"]
        gold.append(segment | {"evidence": [*evidence] if len(evidence) > 1 else evidence[0]})
    products = list(dict.fromkeys(manual.product.name for manual, _ in one.gold))
    metadata = {"type": one.kind, "products": products, **one.more, "gold_segments": gold}
    return {"id": name, "question": one.text, "golden_answers": [*one.answers], "metadata": metadata}
