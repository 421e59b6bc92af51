"""Generated rows in the layouts of HotpotQA's train file, FiD's NQ and TriviaQA files, and 100-word passages.

A row is a function of the seed, its number and the sizes alone, so that files are written row by row and a share of a
file has the repetitions of the whole: passages are drawn from a corpus of that share.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.full_scale.passages import TOPIC_PASSAGES, Paragraphs, Passages, answer_name, name
from benchmarks.full_scale.words import draws, words_of
from datamodules.world.word_lists import STEMS

SPLITS = ("train", "dev", "test")
CORPUS_PASSAGES = 21_015_324  # of DPR's Wikipedia
CONTEXTS = 100
PARAGRAPHS_PER_ROW = 10
HOTPOT_PARAGRAPHS = 482_021  # distinct ones of the train file
NEAR_CONTEXTS = 25  # of the question's own topic; the others are drawn from the whole corpus
GOLDLESS_SHARE = 0.12  # questions none of whose contexts is of their topic
ROWS = {  # data set -> split -> rows, in HotpotQA, and in FiD's files
    "hotpotqa": {"train": 90_447, "dev": 7_405, "test": 7_405},
    "nq": {"train": 79_168, "dev": 8_757, "test": 3_610},
    "triviaqa": {"train": 78_785, "dev": 8_837, "test": 11_313},
    "corpus": {"train": CORPUS_PASSAGES},
}
# Numbers of answers at 40 equally likely quantiles: of NQ-open's questions, and of TriviaQA's, which have all aliases.
_ANSWERS = {
    "nq": (1,) * 23 + (2,) * 11 + (3, 3, 3, 4, 4, 7),
    "triviaqa": (1,) * 9 + (2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 7, 8, 9, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 24, 27, 29,
        34, 42, 48, 96),
}  # fmt: skip
_STEMS = list(dict.fromkeys(STEMS))
_QUESTION, _CHOICE = 16, 17  # what is drawn
Row = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """Which rows are written.

    Args:
        data: A data set of `ROWS`.
        split: A split of it; splits have other questions, and the same corpus.
        share: Of the rows, and of the corpus that passages are drawn from; above 0, at most 1.
        seed: Another seed writes other texts.
    """

    data: str
    split: str = "train"
    share: float = 1.0
    seed: int = 0

    @property
    def rows(self) -> int:
        """Number of rows, at least one."""
        return max(1, round(self.share * ROWS[self.data][self.split]))

    @property
    def questions(self) -> range:
        """Numbers of the questions: no two splits share one."""
        first = SPLITS.index(self.split) * 10_000_000
        return range(first, first + self.rows)

    def scaled(self, passages: int, least: int) -> int:
        """This share of a number of passages, but not fewer than `least`."""
        return max(least, round(self.share * passages))


def rows(size: Size) -> Iterator[Row]:
    """The rows of a file, in order."""
    writer: Callable[[Size], Iterator[Row]] = {"hotpotqa": _hotpotqa, "corpus": _corpus}.get(size.data, _fid)
    return writer(size)


def _hotpotqa(size: Size) -> Iterator[Row]:
    """Rows of `hotpot_train_v1.1.json`.

    Four in five bridge two paragraphs, the others compare them, of which a third by yes or no.
    """
    paragraphs = Paragraphs(size.seed, size.scaled(HOTPOT_PARAGRAPHS, 1000))
    for question in size.questions:
        drawn = [int(each) for each in draws(size.seed, _CHOICE, np.array([question]), 20)[0]]
        (words,) = words_of(draws(size.seed, _QUESTION, np.array([question]), 8 + drawn[0] % 14))
        gold = drawn[1] % paragraphs.total
        golds = [gold, (gold + 1) % paragraphs.total]  # the first names the second
        chosen = dict.fromkeys([*golds, *(each % paragraphs.total for each in drawn[2:])])
        context = paragraphs.write(list(chosen)[:PARAGRAPHS_PER_ROW])
        (one, _), (other, sentences) = context[:2]
        if drawn[0] % 100 < 81:
            kind, answer = "bridge", answer_name(size.seed, golds[1])
            text = f"{words[0].capitalize()} {' '.join(words[1:])} that {one} {words[0]}?"
        else:
            kind, answer = "comparison", ("yes", "no", one, other, one, other)[drawn[1] % 6]
            text = f"Are {one} and {other} both {' '.join(words)}?"
        support = [[one, 0], [other, 0]]
        if drawn[3] % 3 == 0 and len(sentences) > 1:
            support.append([other, 1])
        order = sorted(range(len(context)), key=lambda place: drawn[place + 4])
        level = ("easy", "medium", "hard")[(drawn[2] % 100 >= 20) + (drawn[2] % 100 >= 83)]
        yield {
            "_id": f"{(size.seed << 64) + (question << 32) + drawn[4] % (1 << 32):024x}",
            "answer": answer,
            "question": text.replace(",", ""),
            "supporting_facts": support,
            "context": [list(context[place]) for place in order],
            "type": kind,
            "level": level,
        }


def _fid(size: Size) -> Iterator[Row]:
    """Rows of FiD's `train.json`: 100 contexts by falling score, a string; training rows have a target."""
    passages = Passages(size.seed, size.scaled(CORPUS_PASSAGES, 10 * TOPIC_PASSAGES))
    for number, question in enumerate(size.questions):
        numbers = np.array([question])
        drawn = [int(each) for each in draws(size.seed, _CHOICE, numbers, 3 * CONTEXTS)[0]]
        (words,) = words_of(draws(size.seed, _QUESTION, numbers, 4 + drawn[0] % 4))
        topic = drawn[1] % (passages.total // TOPIC_PASSAGES)
        near = NEAR_CONTEXTS if drawn[2] / 2**64 >= GOLDLESS_SHARE else 0
        first = topic * TOPIC_PASSAGES
        chosen = dict.fromkeys(first + each % TOPIC_PASSAGES for each in drawn[8 : 8 + near])
        chosen.update(dict.fromkeys(each % passages.total for each in drawn[8 + near :]))
        answers = aliases(answer_name(size.seed, topic), _ANSWERS[size.data][drawn[3] % 40])
        row: Row = {"id": str(number), "question": f"who {' '.join(words)} {name(first // 4)}".lower().replace(",", "")}
        if size.split == "train":
            row["target"] = answers[0]
        scores = (f"{90 - 0.17 * place - (drawn[4] % 1000) / 1000:.7g}" for place in range(CONTEXTS))
        contexts = passages.write(_mixed_ranks(list(chosen)[:CONTEXTS], drawn))
        row["answers"] = answers
        row["ctxs"] = [{**each, "score": score} for each, score in zip(contexts, scores, strict=True)]
        yield row


def _mixed_ranks(found: Sequence[int], drawn: Sequence[int]) -> list[int]:
    """The passages in the order of a retriever: those of the topic earlier than others on average, but not always."""
    places = [place + drawn[place] % 30 for place in range(len(found))]
    return [found[place] for place in sorted(range(len(found)), key=places.__getitem__)]


def aliases(answer: str, count: int) -> list[str]:
    """The answer and other ways to write it, all different.

    `Clara Alderbrook`, `Alderbrook`, `C. Alderbrook`, `Clara Alderbrook (moss)`.
    """
    given, _, rest = answer.partition(" ")
    short = [answer, rest, f"{given[0]}. {rest}", f"the {answer}", f"{rest}, {given}", answer.upper(), f"{answer} Jr."]
    return [*short[:count], *(f"{answer} ({stem})" for stem in _STEMS[: max(0, count - len(short))])]


def _corpus(size: Size) -> Iterator[Row]:
    """Rows {id, title, text} of all passages, in order."""
    passages = Passages(size.seed, size.rows)
    for start in range(0, passages.total, 1000):
        yield from passages.write(range(start, min(start + 1000, passages.total)))
