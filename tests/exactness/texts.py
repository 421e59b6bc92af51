"""Token ids of fifty inputs in every text format that a model reads, and ids of the passages of an odd corpus."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from datamodules.formats.reading import read_passages, read_questions
from models.context_tokenizer import ContextEncoder, answer_labels
from models.dmqr.rewrite_tokenizer import RewriteEncoder, RewriteFormat, RewriteTask
from models.dmqr.strategies import POOL
from models.dmqr.word_tokenizer import WordPair, WordPairEncoder
from models.drrag.triple_tokenizer import TripleEncoder
from tests.exactness.tiny_models import byte_pairs
from tests.exactness.values import digest
from tests.exactness.workplace import QUESTIONS, rows, words_of_the_world

SHOWN = 2  # inputs of a format whose token ids stand in the file; of the others a digest does
CONTEXT_FORMATS = ("fid", "re_rag_train", "re_rag_release", "packed")  # of T5s
ODD_QUESTIONS = (
    "  Who\u00a0wrote \u201cHamlet\u201d?\u200b ",
    "Wer schrieb ﬁnance [SEP] </s> <extra_id_0> <|im_end|>?",
    "李白在哪里出生？",
    "e\u0301tude or \u00e9tude, İstanbul, ß",
    "?",
)
ODD_ROWS: tuple[dict[str, Any], ...] = (
    {"id": "a", "title": "Plain", "text": "A plain passage."},
    {"id": "b", "title": "Plain", "text": "A  plain\u00a0passage. "},  # the same as before when it is cleaned
    {"id": "c", "title": "", "text": "Without a title"},
    {
        "id": "d",
        "title": "Cafe\u0301",
        "text": "Combining and ﬁrst composed: \u00e9 e\u0301, ①, \uff46\uff55\uff4c\uff4c",
    },
    {"id": "e", "title": "Café", "text": "Combining and first composed: é é, 1, full"},  # models read the same
    {"id": "f", "title": "Zero", "text": "zero\u200bwidth and soft\u00adhyphen and \ufeffmark"},
    {"id": "g", "title": "Lines", "text": "one\ntwo\r\n\tthree"},
    {"id": "h", "title": "Case", "text": "a PLAIN passage."},
    {"id": "i", "title": "李白", "text": "李白（701年—762年），字太白。"},
    {"id": "j", "title": "Marks", "text": "[CLS] [SEP] </s> <pad>"},
    {"id": "k", "title": "Title only|", "text": "."},
    {"id": "l", "title": "Plain", "text": "A plain passage, longer " + "by many words " * 60},
)


def write_odd_corpus(path: Path) -> Path:
    """The odd corpus as JSON Lines."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ODD_ROWS), encoding="utf-8")
    return path


def passage_ids() -> dict[str, Any]:
    """Id and text of every passage of the odd corpus, and a digest of the ids of each of the world's files."""
    odd = read_passages("jsonl", [str(write_odd_corpus(Path("odd.jsonl")))])
    found: dict[str, Any] = {each.corpus_id: [each.id, each.title, each.text[:60]] for each in odd}
    for name in ("corpus", "web_corpus", "msrag_web", "msrag_knowledge"):
        ids = [each.id for each in read_passages("jsonl", [f"world/{name}.jsonl"])]
        found[f"world/{name}.jsonl"] = [len(ids), digest(ids)]
    for layout, name in (("hotpotqa", "test"), ("fid", "fid_test"), ("hotpotqa", "rephrased_test")):
        ids = [each.id for question in read_questions(layout, f"world/{name}.json") for each in question.passages]
        found[f"world/{name}.json"] = [len(ids), digest(ids)]
    return found


def token_ids() -> dict[str, Any]:
    """Text format -> token ids of its inputs."""
    questions = list(read_questions("hotpotqa", "world/test.json"))[:QUESTIONS]
    odd = [each for each in read_passages("jsonl", [str(write_odd_corpus(Path("odd.jsonl")))]) if each.corpus_id != "e"]
    asked = [*ODD_QUESTIONS, *(question.text for question in questions)][:QUESTIONS]
    passages = [*odd, *(passage for question in questions for passage in question.passages[:2])]
    several = [tuple(passages[start : start + 3]) for start in range(QUESTIONS)]
    encoder, t5 = (AutoTokenizer.from_pretrained(f"models/{name}") for name in ("bert", "t5"))
    words = words_of_the_world(Path())
    found: dict[str, Sequence[Any]] = {}
    triple = TripleEncoder(encoder, 96)
    found["triple"] = [triple(question, *three[:2]) for question, three in zip(asked, several, strict=True)]
    for name in (*CONTEXT_FORMATS, "sentence_pair"):
        context = ContextEncoder(encoder if name == "sentence_pair" else t5, 96, name)  # type: ignore[arg-type]
        found[f"context, {name}"] = context(
            [(question, three if context.packed else three[:1]) for question, three in zip(asked, several, strict=True)]
        )
    found["answer"] = [answer_labels(t5, "Answer: ", 12, [question]).flatten().tolist() for question in asked]
    for name in get_args(RewriteFormat):
        found |= _rewrites(name, t5 if name == "seq2seq" else byte_pairs(words, chat=name == "chat"), asked)
    pairs = WordPairEncoder(encoder, 96)([(question, three[0]) for question, three in zip(asked, several, strict=True)])
    found["words"] = [_placed(pair) for pair in pairs]
    return {name: [inputs[:SHOWN], [digest(each) for each in inputs]] for name, inputs in found.items()}


def _rewrites(
    name: RewriteFormat, tokenizer: PreTrainedTokenizerBase, asked: Sequence[str]
) -> dict[str, Sequence[Any]]:
    """Inputs, some with earlier turns, and targets."""
    end_ids = [tokenizer.eos_token_id]
    encode = RewriteEncoder(tokenizer, name, 72 if name == "seq2seq" else 160, end_ids)
    titles = [strategy.title for strategy in POOL.values()]
    tasks = [
        RewriteTask(question, titles[place % len(titles)], tuple(asked[place - place % 3 : place]))
        for place, question in enumerate(asked)
    ]
    made = [row["rewrite"] for row in rows(Path("world/rewrites_test.jsonl"))[:QUESTIONS]]
    return {f"rewrite, {name}": encode(tasks), f"rewrite, {name}, target": encode.targets(made)}


def _placed(pair: WordPair) -> Any:
    places = [[word.position for word in group] for group in (pair.question_words, pair.passage_words)]
    return [pair.ids, pair.question_tokens, *places]
