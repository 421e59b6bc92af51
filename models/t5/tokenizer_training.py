"""Trains a T5-like Unigram tokenizer on texts of one's own.

Ids as in T5: <pad> 0, </s> 1, <unk> 2, then pieces, and last 100 sentinels, <extra_id_0> the highest.  Unlike in T5's,
"true", "false" and the words of our formats are single pieces whatever the texts, so are frequent words; bytes stand in
for characters never seen: no text becomes <unk>, and whatever a reader copies out of a context it can spell.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import chain

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from common.errors import UserError
from common.records import clean
from models.text_formats import neutralize

SPECIALS = ["<pad>", "</s>", "<unk>"]  # ids 0, 1, 2
SENTINELS = [f"<extra_id_{number}>" for number in range(99, -1, -1)]  # in the order of their ids
WORDS = ("true", "false", "question", "title", "context", "document")  # single pieces: an estimator's, and the formats'
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
PRINTABLE = [chr(code) for code in range(33, 127)]
LEAST_VOCABULARY = 512
_BLANK = "▁"
_LETTERS = re.compile(r"[^\W\d_]+")
_BYTE_SCORE = -200.0  # so low that text which looks like a byte piece is still spelt by its characters
CHARACTER_COVERAGE = 0.9999  # of all characters of the texts; the rarest are spelt by bytes
FREQUENT_SHARE = 2e-4  # words as frequent are pieces: the trainer itself seeds substrings of two different words alone
FREQUENT_LEAST = 10  # occurrences
THREADS = 4  # of the trainer: fixed, as the order of its sums depends on it

Pieces = list[tuple[str, float]]


def train_tokenizer(texts: Iterable[str], vocabulary: int = 8000) -> PreTrainedTokenizerFast:
    """A tokenizer fitted to texts.  The same texts in the same order give the same tokenizer.

    Args:
        texts: At least one that is not empty; normalized here, special-token strings in them split.
        vocabulary: Ids in all, sentinels included.  Texts that hold fewer distinct pieces give a smaller one.

    Raises:
        UserError: If the vocabulary is too small for what every tokenizer holds, or there is no text.
    """
    if vocabulary < LEAST_VOCABULARY:
        raise UserError(
            f"vocabulary {vocabulary} is too small: bytes, ASCII and sentinels alone take {LEAST_VOCABULARY - 60}; "
            f"give at least {LEAST_VOCABULARY}."
        )
    pieces = _trained(texts, vocabulary - len(SPECIALS) - len(SENTINELS) - len(BYTES))
    vocab = [*((special, 0.0) for special in SPECIALS), *pieces, *((byte, _BYTE_SCORE) for byte in BYTES)]
    tokenizer = _unigram(vocab)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in (*SPECIALS, *SENTINELS)])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(_BLANK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", SPECIALS.index("</s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        additional_special_tokens=SENTINELS, clean_up_tokenization_spaces=False,
    )  # fmt: skip


def sentinel_ids(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Ids of <extra_id_0>, <extra_id_1>, ... as far as the tokenizer has them.

    Raises:
        UserError: If it has none: span corruption needs them.
    """
    vocab = tokenizer.get_vocab()
    ids = [vocab[sentinel] for sentinel in reversed(SENTINELS) if sentinel in vocab]
    if not ids:
        raise UserError(
            f"the tokenizer {tokenizer.name_or_path} has no sentinels <extra_id_0>, ...: take one of the T5 family, or "
            "make one: python -m trainers.t5_from_scratch."
        )
    return ids


def _unigram(vocab: Pieces) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram(vocab, SPECIALS.index("<unk>"), byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(_BLANK, prepend_scheme="always", split=True)
    return tokenizer


def _trained(texts: Iterable[str], count: int) -> Pieces:
    """At most so many pieces with their log-probabilities."""
    # Not the tokenizers library's own trainer: its hash maps change the last bits, and so the order, from run to run.
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    forbidden = [*SPECIALS, *SENTINELS]
    words: Counter[str] = Counter()
    lines = _counted((neutralize(text, forbidden) for text in map(clean, texts) if text), words)
    first = next(lines, None)
    if first is None:
        raise UserError("the corpus holds no text to make a tokenizer of: name files with text.")
    model = BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=chain([first], lines), model_writer=model, model_type="unigram",
            vocab_size=count + 1, hard_vocab_limit=False, unk_id=0, bos_id=-1, eos_id=-1, pad_id=-1,
            character_coverage=CHARACTER_COVERAGE, required_chars="".join(PRINTABLE),
            normalization_rule_name="identity", max_sentence_length=1 << 20, num_threads=THREADS, minloglevel=2,
        )  # fmt: skip
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"no tokenizer of vocabulary {count} pieces fits this corpus: {reason[-200:]}") from error
    trained = SentencePieceProcessor(model_proto=model.getvalue())
    found = [(trained.id_to_piece(i), round(trained.get_score(i), 6)) for i in range(1, trained.get_piece_size())]
    scores = {piece: score for piece, score in found if piece not in BYTES}
    least = max(FREQUENT_LEAST, FREQUENT_SHARE * words.total())
    room = (count - sum(len(piece) == 1 for piece in scores)) // 2
    frequent = sorted((-number, word) for word, number in words.items() if number >= least)[: max(0, room)]
    needed = {_BLANK + word for word in (*WORDS, *(word for _, word in frequent))}
    scores |= _spelt(needed - scores.keys(), scores)
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    droppable = [piece for piece, _ in ordered if len(piece) > 1 and piece not in needed]
    dropped = set(droppable[len(droppable) - max(0, len(ordered) - count) :])  # the least likely make room
    return [item for item in ordered if item[0] not in dropped]


def _counted(texts: Iterable[str], words: Counter[str]) -> Iterator[str]:
    """The texts as they are; their words, without digits and marks, are counted on the way."""
    for text in texts:
        words.update(match[0] for token in text.split() if (match := _LETTERS.match(token)))
        yield text


def _spelt(pieces: Iterable[str], scores: dict[str, float]) -> dict[str, float]:
    """For missing pieces a little more than their best spelling by others scores: enough to be one piece, no more."""
    spelling = _unigram([("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *scores.items()])
    lowest = min(scores.values())  # of a character that only bytes spell
    return {
        piece: round(sum(scores.get(part, lowest) for part in spelling.encode(piece[1:]).tokens) + 1e-3, 6)
        for piece in pieces
    }
