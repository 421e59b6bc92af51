"""What reaches the tokenizers of all input formats: texts in NFKC, which the models of every release learned from."""

from collections.abc import Callable
from typing import Any

import pytest
from transformers import AutoTokenizer

from common.records import Passage, nfkc
from models.context_tokenizer import ContextEncoder, answer_labels
from models.dmqr.rewrite_tokenizer import RewriteEncoder, RewriteTask
from models.dmqr.word_tokenizer import WordPairEncoder
from models.drrag.triple_tokenizer import TripleEncoder

ODD = "1\u00bd \ufb01ne m\u00b2 \uff33 \u0645\u06cc\u200c\u062e"
PLAIN = "11\u20442 fine m2 S \u0645\u06cc\u062e"


class Recording:
    """A tokenizer that remembers the texts it was given."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.given = tokenizer, list[str]()

    def __call__(self, *texts: Any, **options: Any) -> Any:
        for each in texts:
            self.given += [each] if isinstance(each, str) else each
        return self.tokenizer(*texts, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)


def _contexts(form: Any) -> Callable[[Any, str, Passage], object]:
    return lambda tokenizer, text, passage: ContextEncoder(tokenizer, 64, form)([(text, [passage])])


def _rewrites(tokenizer: Any, text: str, passage: Passage) -> object:
    encode = RewriteEncoder(tokenizer, "seq2seq", 64, [tokenizer.eos_token_id])
    return encode([RewriteTask(text, passage.title, (passage.text,))]), encode.targets([text])


READERS: dict[str, tuple[str, Callable[[Any, str, Passage], object]]] = {
    **{each: ("t5", _contexts(each)) for each in ("re_rag_train", "re_rag_release", "fid", "packed")},
    "sentence_pair": ("bert", _contexts("sentence_pair")),
    "answers": ("t5", lambda tokenizer, text, passage: answer_labels(tokenizer, "", None, [text, passage.text])),
    "rewrites": ("t5", _rewrites),
    "triples": ("bert", lambda tokenizer, text, passage: TripleEncoder(tokenizer, 64)(text, passage, passage)),
    "words": ("bert", lambda tokenizer, text, passage: WordPairEncoder(tokenizer, 64)([(text, passage)])),
}


@pytest.mark.parametrize("name", READERS)
def test_models_read_nfkc(name, checkpoints) -> None:
    checkpoint, read = READERS[name]
    given = []
    for text in (ODD, PLAIN):
        tokenizer = Recording(AutoTokenizer.from_pretrained(checkpoints[checkpoint]))
        read(tokenizer, text, Passage("p", f"{text}.", f"the {text}"))
        given.append(tokenizer.given)
    assert given[0] == given[1]
    assert any(PLAIN in text for text in given[0])


def test_sentence_encoders_read_nfkc(encoder, monkeypatch) -> None:
    recording = Recording(encoder.tokenizer)
    monkeypatch.setattr(encoder, "tokenizer", recording)
    encoder.encode_queries([ODD])
    encoder.encode_passages([ODD])
    assert recording.given == [PLAIN, PLAIN] == [nfkc(ODD)] * 2
