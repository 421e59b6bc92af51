"""What is stored of a fixed sample, by its sha256.

Who changes what is read, drawn or tokenized sees this test fail, increases `record_cache.FORMAT`, and writes the new
values: the code is no part of the key by which a store is found.
"""

import hashlib
import json
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from common.records import Passage, passage_text
from datamodules.cache import record_cache
from datamodules.cache.candidates import Candidates
from datamodules.cache.question_lookup import stored_mined
from datamodules.cache.record_cache import CachedRecords
from datamodules.cache.sampled_triples import draw_triples
from datamodules.cache.splits import split_questions
from datamodules.cache.token_cache import token_rows
from datamodules.examples.context_sampling import ContextSampler, count_contexts
from datamodules.examples.context_sets import ContextSampling, Labels
from datamodules.examples.data_files import QuestionDataFile
from datamodules.examples.triples import Sampling, draw
from datamodules.formats.mined_negatives import Mined
from datamodules.formats.recognition import question_layouts
from models.drrag.triple_tokenizer import TripleEncoder
from tests.conftest import hotpot_rows
from tests.exactness.texts import ODD_QUESTIONS, ODD_ROWS
from tests.exactness.tiny_models import byte_pairs, save_unigram, save_word_pieces
from tests.helpers.layout_rows import CORPUS, CORPUS_QUESTION, HUB_HOTPOT, ROWS, as_lines
from tests.helpers.mined_files import read_mined, write_mined
from tests.helpers.rerag_data import fid_rows

HELD = json.loads(Path(__file__).with_name("format.json").read_text())
WORDS = ("Who", "wrote", "plain", "passage", "long", "longer", "text", "many", "words")
OWN: dict[str, dict] = {  # of this project's layouts, whose rows in ROWS are those of a page
    "questions": {
        "question": "And when?",
        "history": ["Who built the bridge?", "Ada Wells."],
        "group": "customer-9",
        "passages": [{"id": "d", "text": "The bridge was opened in 1902.", "label": 2, "score": 7.5}, {"text": "No."}],
    },
    "judgements": {"query": "how do I reset the pump", "passage": "Hold the button for five seconds.", "label": 1},
}
pytestmark = pytest.mark.usefixtures("on_disk", "inside")


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The present folder is empty: paths are stored, too."""
    monkeypatch.chdir(tmp_path)


def questions(layout: str, rows: list[dict]) -> CachedRecords:
    """Rows of a layout, stored."""
    Path(f"{layout}.json").write_text(json.dumps(rows))
    corpus = "corpus.jsonl" if layout == "corpus_questions" else None
    return split_questions([QuestionDataFile(f"{layout}.json", layout, corpus=corpus)], [], 0.5, "cache").stores[0]


def digest(store: CachedRecords) -> str:
    """Of a store's records."""
    assert store.folder is not None
    return hashlib.sha256((store.folder / record_cache.RECORDS).read_bytes()).hexdigest()


def digest_of(arrays: dict[str, np.ndarray]) -> str:
    """Of derived numbers."""
    named = [(name, str(each.dtype), each.shape, each.tobytes()) for name, each in sorted(arrays.items())]
    return hashlib.sha256(repr(named).encode()).hexdigest()


def tokenizers() -> dict[str, PreTrainedTokenizerBase]:
    """One of each family that a classifier has."""
    save_word_pieces(Path("wordpiece"), WORDS, segments=False)
    save_unigram(Path("unigram"), WORDS)
    made = {name: AutoTokenizer.from_pretrained(name) for name in ("wordpiece", "unigram")}
    made["bytes"] = byte_pairs(WORDS, chat=False)
    for each in made.values():
        each.add_special_tokens({"cls_token": "[CLS]", "sep_token": "[SEP]"})
    return made


def records() -> dict[str, str]:
    rows = {name: [(ROWS | OWN)[name]] * 2 for name in question_layouts()}
    rows["hotpotqa"] += [HUB_HOTPOT, *hotpot_rows(3)]
    Path("corpus.jsonl").write_text(as_lines([CORPUS | {"id": id_} for id_ in CORPUS_QUESTION["gold_doc_ids"]]))
    rows["fid"] += fid_rows(3)
    found = {layout: digest(questions(layout, each)) for layout, each in rows.items()}
    write_mined(Path("m.jsonl"), [("x", Mined([Passage.of("t", "é")], {"d": ["e"]})), ("y", Mined())])
    stored_mined(["m.jsonl"], "cache")
    files = {hashlib.sha256(file.read_bytes()).hexdigest() for file in Path("cache").glob(f"*/{record_cache.RECORDS}")}
    (mined,) = files - {*found.values()}
    return found | {"mined": mined}


def token_ids() -> dict[str, str]:
    found = {}
    texts = [*ODD_QUESTIONS, *(passage_text(Passage.of(row["title"], row["text"])) for row in ODD_ROWS)]
    store = questions("hotpotqa", hotpot_rows(2))
    assert store.folder is not None
    for name, tokenizer in tokenizers().items():
        before = {*store.folder.glob("derived/*")}
        token_rows(store, {"of": name}, texts, len(texts), TripleEncoder(tokenizer, 48).tokenize, len(tokenizer))
        (file,) = {*store.folder.glob("derived/*")} - before
        found[f"token ids, {name}"] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def draws() -> dict[str, str]:
    hotpot, fid = hotpot_rows(12), fid_rows(8)
    mined = [Passage.of("mined", f"{fid[0]['answers'][0]} too"), Passage.of("m", "none")]
    write_mined(Path("m.jsonl"), [(row.get("_id", row.get("id")), Mined(mined)) for row in (*hotpot[::2], *fid[::2])])
    known = read_mined(["m.jsonl"])
    candidates = Candidates(split_questions([QuestionDataFile("hotpotqa.json", "hotpotqa")], [], 1e-9).training, known)
    found = {"candidates": candidates.arrays()}
    candidates.use(found["candidates"])
    for name, sampling in (("balanced", Sampling()), ("all", Sampling(1.5, 0.6, 0.5, 2, paired_share=0.5))):
        found[f"triples, {name}"] = draw_triples(
            candidates, lambda one, also, s=sampling: draw(one, also, s, 0, 0, also.hits), "drawing"
        )
    sets = split_questions([QuestionDataFile("fid.json", "fid")], [], 1e-9).training
    for how in get_args(ContextSampling):
        for labels in get_args(Labels):
            sampler = ContextSampler(known, labels, False, 0)
            found[f"contexts, {how}, {labels}"] = count_contexts(
                sets, len(sets), lambda one, s=sampler, h=how: s.selected(one, 3, h, s.rng_of(one, 0))
            )
    return {name: digest_of(arrays) for name, arrays in found.items()}


def test_what_is_stored_of_a_fixed_sample_is_that_of_the_format() -> None:
    Path("hotpotqa.json").write_text(json.dumps(hotpot_rows(12)))
    Path("fid.json").write_text(json.dumps(fid_rows(8)))
    found = draws() | records() | token_ids()
    assert {"FORMAT": record_cache.FORMAT, **found} == HELD
