"""Writes the library: manuals as PDFs, their true structure, and the questions about them."""

import json
import multiprocessing
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from random import Random

from common.packages import require
from documents.manuals.asking import QUESTIONS, ask
from documents.manuals.composing import compose
from documents.manuals.family import FAMILIES
from documents.manuals.products import draw_products
from documents.manuals.questions import LibraryQuestion

MAX_WORKERS = 8  # processes that typeset


class Library:
    """The manuals, which are typeset in other processes from the start, while the rest of the world is generated.

    Args:
        seed: The world's seed.

    Raises:
        UserError: If reportlab is missing.
    """

    def __init__(self, seed: int) -> None:
        require("library", "--library true, whose manuals are typeset,", "leave it out")
        from documents.manuals.typesetting import typeset

        self.seed = seed
        self.manuals = [compose(product) for product in draw_products(FAMILIES, Random(f"{seed}/library/products"))]
        workers = min(os.cpu_count() or 1, MAX_WORKERS)
        self._pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
        self._typeset = [self._pool.submit(typeset, manual) for manual in self.manuals]

    def __enter__(self) -> "Library":
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def write(self, folder: Path) -> dict:
        """Write `library/documents/*.pdf`, `library/truth/*.json` and `library_{test,validation}.jsonl`.

        Args:
            folder: The world's folder.

        Returns:
            Numbers of manuals, pages and questions by kind.
        """
        documents, truth = folder / "library" / "documents", folder / "library" / "truth"
        for made in (documents, truth):
            made.mkdir(parents=True)
        for manual, task in zip(self.manuals, self._typeset, strict=True):
            typeset = task.result()
            manual.page_count = typeset.page_count
            for block, pages in zip(manual.blocks, typeset.pages, strict=True):
                block.pages = pages
            (documents / manual.file).write_bytes(typeset.pdf)
            text = json.dumps(manual.truth(), ensure_ascii=False, indent=1)
            (truth / f"{manual.product.file}.json").write_text(text + "\n", encoding="utf-8")
        questions = {}
        for split in QUESTIONS:
            asked = ask(self.manuals, split, Random(f"{self.seed}/library/{split}"))
            rows = (_row(one, f"{split}_library_{number:05d}") for number, one in enumerate(asked))
            lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (folder / f"library_{split}.jsonl").write_text(lines, encoding="utf-8")
            questions[split] = dict(sorted(Counter(one.kind for one in asked).items()))
        page_count = sum(manual.page_count for manual in self.manuals)
        return {"manuals": len(self.manuals), "pages": page_count, "questions": questions}


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
