"""Trains a T5-like Unigram tokenizer.

Ids are laid out as in T5: <pad> 0, </s> 1, <unk> 2, then pieces, and last 100 sentinels, <extra_id_0> the highest.
Unlike T5's tokenizer, "true", "false", the words of the input formats and frequent words are always single pieces, and
unseen characters are encoded as bytes: no text becomes <unk>, so a reader can copy any string from a context.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import chain

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from common.errors import UserError
from common.records import clean
from models.text_formats import neutralize

SPECIALS = ["<pad>", "</s>", "<unk>"]  # ids 0, 1, 2
SENTINELS = [f"<extra_id_{number}>" for number in range(99, -1, -1)]  # in the order of their ids
WORDS = ("true", "false", "question", "title", "context", "document")  # always single pieces
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
PRINTABLE = [chr(code) for code in range(33, 127)]
MIN_VOCABULARY = 512
_BLANK = "▁"
_LETTERS = re.compile(r"[^\W\d_]+")
_BYTE_SCORE = -200.0  # low, so that the text "<0x41>" is encoded as characters, not as a byte piece
CHARACTER_COVERAGE = 0.9999  # share of the texts' characters that become pieces; the rarest are encoded as bytes
FREQUENT_SHARE = 2e-4  # words at least this frequent become pieces; the trainer only seeds substrings of several words
MIN_FREQUENT = 10  # occurrences of a frequent word
THREADS = 4  # of the trainer; fixed, because the rounding of its sums depends on it

Pieces = list[tuple[str, float]]


def train_tokenizer(texts: Iterable[str], vocabulary: int = 8000) -> PreTrainedTokenizerFast:
    """Train a tokenizer.  The same texts in the same order give the same tokenizer.

    Args:
        texts: At least one non-empty text; normalized here, and special-token strings are escaped.
        vocabulary: Number of ids, sentinels included; smaller if the texts have fewer distinct pieces.

    Raises:
        UserError: If the vocabulary is below `MIN_VOCABULARY`, or there is no text.
    """
    if vocabulary < MIN_VOCABULARY:
        raise UserError(
            f"vocabulary {vocabulary} is too small: bytes, ASCII and sentinels alone take {MIN_VOCABULARY - 60}; "
            f"give at least {MIN_VOCABULARY}."
        )
    pieces = _train_pieces(texts, vocabulary - len(SPECIALS) - len(SENTINELS) - len(BYTES))
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


def _unigram(vocab: Pieces) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram(vocab, SPECIALS.index("<unk>"), byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(_BLANK, prepend_scheme="always", split=True)
    return tokenizer


def _train_pieces(texts: Iterable[str], count: int) -> Pieces:
    """At most `count` pieces with their log-probabilities."""
    # Not the trainer of the tokenizers library: its hash maps change the last bits, and so the order, from run to run.
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    forbidden = [*SPECIALS, *SENTINELS]
    words: Counter[str] = Counter()
    lines = _count_words((neutralize(text, forbidden) for text in map(clean, texts) if text), words)
    first = next(lines, None)
    if first is None:
        raise UserError("the corpus holds no text to train a tokenizer on: give files with text.")
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
        raise UserError(f"cannot train a tokenizer with {count} pieces on this corpus: {reason[-200:]}") from error
    trained = SentencePieceProcessor(model_proto=model.getvalue())
    found = [(trained.id_to_piece(i), round(trained.get_score(i), 6)) for i in range(1, trained.get_piece_size())]
    scores = {piece: score for piece, score in found if piece not in BYTES}
    threshold = max(MIN_FREQUENT, FREQUENT_SHARE * words.total())
    room = (count - sum(len(piece) == 1 for piece in scores)) // 2
    frequent = sorted((-number, word) for word, number in words.items() if number >= threshold)[: max(0, room)]
    needed = {_BLANK + word for word in (*WORDS, *(word for _, word in frequent))}
    scores |= _piece_scores(needed - scores.keys(), scores)
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    droppable = [piece for piece, _ in ordered if len(piece) > 1 and piece not in needed]
    dropped = set(droppable[len(droppable) - max(0, len(ordered) - count) :])  # the least likely ones
    return [item for item in ordered if item[0] not in dropped]


def _count_words(texts: Iterable[str], words: Counter[str]) -> Iterator[str]:
    """Yield the texts unchanged and count their words (leading letters only) into `words`."""
    for text in texts:
        words.update(match[0] for token in text.split() if (match := _LETTERS.match(token)))
        yield text


def _piece_scores(pieces: Iterable[str], scores: dict[str, float]) -> dict[str, float]:
    """Scores for missing pieces, just above that of their best segmentation, so that each becomes a single piece."""
    segmenter = _unigram([("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *scores.items()])
    lowest = min(scores.values())  # for characters that only bytes encode
    return {
        piece: round(sum(scores.get(part, lowest) for part in segmenter.encode(piece[1:]).tokens) + 1e-3, 6)
        for piece in pieces
    }
