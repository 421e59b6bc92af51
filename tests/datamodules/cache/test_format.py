"""What is stored and drawn of fixed samples, by its sha256.

Who changes what is read, drawn or tokenized sees these tests fail, increases `record_cache.FORMAT`, and writes the new
values: the code is no part of the key by which a store is found.
"""

import gzip
import hashlib
import json
from functools import partial
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from common.files import sha256
from common.records import Passage, passage_text
from datamodules.cache import record_cache
from datamodules.cache.candidates import Candidates
from datamodules.cache.question_lookup import stored_mined
from datamodules.cache.record_cache import CachedRecords
from datamodules.cache.sampled_triples import draw_triples
from datamodules.cache.splits import split_questions
from datamodules.cache.token_cache import token_rows
from datamodules.drrag import DrRagData
from datamodules.examples.context_sampling import ContextSampler, count_contexts
from datamodules.examples.context_sets import ContextSampling, Labels
from datamodules.examples.data_files import QuestionDataFile
from datamodules.examples.triples import Sampling, draw
from datamodules.formats.mined_negatives import Mined
from datamodules.formats.reading import read_questions
from datamodules.formats.recognition import question_layouts
from models.drrag.triple_tokenizer import TripleEncoder
from tests.conftest import hotpot_rows
from tests.exactness.texts import ODD_QUESTIONS, ODD_ROWS
from tests.exactness.tiny_models import byte_pairs, save_unigram, save_word_pieces
from tests.helpers.layout_rows import CORPUS, CORPUS_QUESTION, HUB_HOTPOT, MUSIQUE, ROWS, as_lines
from tests.helpers.mined_files import read_mined, write_mined
from tests.helpers.rerag_data import fid_rows
from tests.helpers.tiny_runs import set_up
from trainers.drrag import DrRagTrainer

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


def questions(layout: str, rows: list[dict]) -> CachedRecords:
    """The store of rows of a layout."""
    Path(f"{layout}.json").write_text(json.dumps(rows))
    corpus = "corpus.jsonl" if layout in ("corpus_questions", "beir") else None
    (store,) = split_questions([QuestionDataFile(f"{layout}.json", layout, corpus=corpus)], [], 0.5, "cache").stores
    return store


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
    found = {name: sha256(questions(name, each).folder / record_cache.RECORDS) for name, each in rows.items()}
    write_mined(Path("m.jsonl"), [("x", Mined([Passage.of("t", "é")], {"d": ["e"]})), ("y", Mined())])
    stored_mined(["m.jsonl"], "cache")
    (mined,) = {*map(sha256, Path("cache").glob(f"*/{record_cache.RECORDS}"))} - {*found.values()}
    return found | {"mined": mined}


def token_ids() -> dict[str, str]:
    found, store = {}, questions("hotpotqa", hotpot_rows(2))
    texts = [*ODD_QUESTIONS, *(passage_text(Passage.of(row["title"], row["text"])) for row in ODD_ROWS)]
    for name, tokenizer in tokenizers().items():
        before = {*store.folder.glob("derived/*")}
        token_rows(store, {"of": name}, texts, len(texts), TripleEncoder(tokenizer, 48).tokenize, len(tokenizer))
        (file,) = {*store.folder.glob("derived/*")} - before
        found[f"token ids, {name}"] = sha256(file)
    return found


def draws() -> dict[str, str]:
    hotpot, fid = hotpot_rows(12), fid_rows(8)
    mined = [Passage.of("mined", f"{fid[0]['answers'][0]} too"), Passage.of("m", "none")]
    write_mined(Path("m.jsonl"), [(row.get("_id", row.get("id")), Mined(mined)) for row in (*hotpot[::2], *fid[::2])])
    known = read_mined(["m.jsonl"])
    Path("m.jsonl.gz").write_bytes(gzip.compress(Path("m.jsonl").read_bytes()))
    assert read_mined(["m.jsonl.gz"]) == known
    candidates = Candidates(split_questions([QuestionDataFile("hotpotqa.json", "hotpotqa")], [], 1e-9).training, known)
    found = {"candidates": candidates.arrays()}
    candidates.use(found["candidates"])
    for name, sampling in (("balanced", Sampling()), ("all", Sampling(1.5, 0.6, 0.5, 2, paired_share=0.5))):
        drawn = partial(lambda s, one, also: draw(one, also, s, 0, 0, also.hits), sampling)
        found[f"triples, {name}"] = draw_triples(candidates, drawn, "drawing")
    sets = split_questions([QuestionDataFile("fid.json", "fid")], [], 1e-9).training
    for how, labels in product(get_args(ContextSampling), get_args(Labels)):
        sampler = ContextSampler(known, labels, False, 0)
        one_set = partial(lambda s, how, one: s.selected(one, 3, how, s.rng_of(one, 0)), sampler, how)
        found[f"contexts, {how}, {labels}"] = count_contexts(sets, one_set)
    return {name: digest_of(arrays) for name, arrays in found.items()}


@pytest.mark.usefixtures("on_disk")
def test_what_is_stored_of_a_fixed_sample_is_that_of_the_format(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # paths are stored, too
    Path("hotpotqa.json").write_text(json.dumps(hotpot_rows(12)))
    Path("fid.json").write_text(json.dumps(fid_rows(8)))
    found = draws() | records() | token_ids()
    assert {"FORMAT": record_cache.FORMAT, **found} == HELD


def write_files(hotpot: Path) -> None:
    """Two training files in two layouts, one of which lacks a gold passage; files of mined passages."""
    rows = json.loads(hotpot.read_text())
    for row in rows[::5]:
        row["supporting_facts"].append(["not shipped", 0])
    hotpot.write_text(json.dumps(rows))
    others = [MUSIQUE | {"id": f"3hop__{n}", "question": f"who is name{n} of the film"} for n in range(6)]
    hotpot.with_name("musique.jsonl").write_text(as_lines(others))
    mined = []
    for number, question in list(enumerate(read_questions("hotpotqa", str(hotpot))))[1::2]:
        own = Passage.of(f"m{number}", f"the film of name{number}"), Passage.of("n", f"name{number} was born")
        gold = [passage.id for passage in question.gold_passages]
        hits = {gold[0]: [own[0].id, *gold[1:], "unknown"], own[1].id: [own[0].id, gold[0]], "unknown": [gold[0]]}
        mined.append((question.id, Mined([*own, *question.passages[:1], own[0]], hits)))
    write_mined(hotpot.with_name("mined.jsonl"), mined)
    write_mined(hotpot.with_name("again.jsonl"), mined[:4])


EARLIER = "a14d35fefa61f1f33bce04ec67915ec8bcef2ede02bb9f23bc3ea04d15eafda5"  # of release 0.1 with mined passages


def test_batches_are_those_of_earlier_releases(hotpot_file, checkpoints, large, monkeypatch) -> None:
    monkeypatch.chdir(hotpot_file.parent)
    module = DrRagTrainer(str(checkpoints["bert"]), max_tokens=96).load()
    write_files(hotpot_file)
    sources = [QuestionDataFile("hotpot.json", "hotpotqa"), QuestionDataFile("musique.jsonl", "musique")]
    sampling, mined = Sampling(1.5, 0.6, 0.5, 2, paired_share=0.5), ["mined.jsonl", "again.jsonl"]
    sizes = {"tokens_per_step": 600, "tokens_per_validation_batch": 500, "validation_fraction": 0.3}

    def digest() -> str:
        data = set_up(DrRagData(sources, hard_negatives=mined, sampling=sampling, cache="cache", **sizes), module)
        new = {"copies_of_gold_left_out", "questions_cut", "unusual_rows"}
        audit = {key: value for key, value in data.audit.items() if key not in new}
        told = hashlib.sha256(json.dumps(audit).encode())
        loaders = (data.train_dataloader(), data.train_dataloader(), data.val_dataloader())
        batches = [batch for loader in loaders for batch in loader]
        for batch in batches:
            for each in (batch.ids_PT, batch.attention_PT, batch.labels_P, batch.weights_P, batch.rows_P):
                told.update(each.numpy().tobytes())
            told.update(str(batch.step_triples).encode())
        one = data.largest_batch(0)
        told.update(str((len(one.ids_PT), int(one.attention_PT.sum(dim=1).max()))).encode())
        assert len(batches) > 20
        return told.hexdigest()

    for _ in range(1 + large):
        assert digest() == EARLIER
    derived = [*Path("cache").rglob("derived/*")]
    contents = [file.read_bytes() for file in derived]
    assert (len(derived) > 4) == large  # of two parts, token ids beside numbers
    for number, file in enumerate(derived):
        file.write_bytes(contents[number][:-2]) if number % 2 else file.unlink()
    assert digest() == EARLIER
    assert [file.read_bytes() for file in derived] == contents
