"""Answer comparison against hand-worked values of the official scripts' rules."""

import unicodedata
from collections.abc import Callable
from functools import partial

import hypothesis
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from common import answer_metrics
from common.answer_metrics import (
    characters,
    exact_match,
    f1,
    has_answer,
    inclusion,
    one_character,
    re_rag,
    squad,
    triviaqa,
)

hotpot_f1 = partial(f1, yes_no_rule=True)


def test_yes_or_no_is_the_first_word() -> None:
    assert [*map(answer_metrics.yes_or_no, ("Yes.", "TRUE", "no, it could not", "False"))] == ["yes", "yes", "no", "no"]
    assert [*map(answer_metrics.yes_or_no, ("north", "It is not.", ""))] == [""] * 3


NORMALIZED = [
    ("The  Beatles!", "beatles", "beatles", "beatles"),
    ("rock-n-roll", "rocknroll", "rock n roll", "rocknroll"),
    ("an_apple", "anapple", "apple", "an_apple"),  # the underscore: deleted, a blank that frees an article, kept
    ("\u2018Hello\u2019", "\u2018hello\u2019", "hello", "hello"),  # curly quotes are no ASCII punctuation
    ("Answer: a dog", "answer dog", "answer dog", "dog"),
    ("a.b", "ab", "b", "b"),  # articles go before punctuation in re_rag, after it in squad
    ("theatre", "theatre", "theatre", "theatre"),
    ("5\u20ac", "5\u20ac", "5\u20ac", "5"),  # the euro sign is no ASCII punctuation, and no word character
    ("the", "", "", ""),
]


@pytest.mark.parametrize(("text", "as_squad", "as_triviaqa", "as_re_rag"), NORMALIZED)
def test_protocols_by_hand(text: str, as_squad: str, as_triviaqa: str, as_re_rag: str) -> None:
    assert (squad(text), triviaqa(text), re_rag(text)) == (as_squad, as_triviaqa, as_re_rag)


@pytest.mark.parametrize("normalize", [squad, triviaqa, re_rag])
@given(text=st.text())
def test_case_and_outer_white_space_never_count(normalize: Callable[[str], str], text: str) -> None:
    assert normalize(f"{text}\n ") == normalize(text)
    assert normalize(text) == " ".join(normalize(text).split())


MEASURED = [
    (f1, "red green blue", ["green blue red"], 1.0),
    (f1, "red green", ["red blue green yellow"], 2 * 2 / (2 + 4)),
    (f1, "red red", ["red blue"], 2 * 1 / (2 + 2)),  # a token counts as often as it stands on both sides
    (f1, "red", ["blue", "red blue blue", "red blue"], 2 * 1 / (1 + 2)),  # the closest gold answer
    (f1, "red", ["blue"], 0.0),
    (f1, "the", ["an"], 1.0),  # both normalize to nothing
    (f1, "the", ["red"], 0.0),
    (f1, "yes it is", ["yes"], 0.5),
    (hotpot_f1, "yes it is", ["yes"], 0.0),  # HotpotQA's rule for yes and no
    (hotpot_f1, "no", ["no doubt"], 0.0),
    (hotpot_f1, "noanswer", ["noanswer given"], 0.0),
    (hotpot_f1, "Yes.", ["yes"], 1.0),
    (hotpot_f1, "red blue", ["red"], 2 / 3),
    (exact_match, "the Eiffel Tower.", ["Paris", "Eiffel tower"], 1.0),
    (exact_match, "Eiffel", ["Eiffel Tower"], 0.0),
    (inclusion, "It is the Eiffel Tower, in Paris", ["London", "paris"], 1.0),
    (inclusion, "a party", ["art"], 1.0),  # a sub-string, not a token
    (inclusion, "art", ["party"], 0.0),
    (inclusion, "anything", ["the"], 0.0),  # a gold answer that normalizes to nothing
    (inclusion, "", ["the"], 1.0),
    (f1, "北京", ["北京市"], 0.0),  # SQuAD's own
    (partial(f1, normalize=characters), "北京", ["北京市"], 0.8),
    (partial(exact_match, normalize=characters), "北京。", ["北京"], 1.0),
    (partial(inclusion, normalize=characters), "在北京市", ["北京"], 1.0),
]


@pytest.mark.parametrize(("measure", "prediction", "golds", "expected"), MEASURED)
def test_measures_by_hand(measure: Callable, prediction: str, golds: list[str], expected: float) -> None:
    assert measure(prediction, golds) == pytest.approx(expected)


@given(st.text(), st.lists(st.text(), min_size=1))
def test_measures_agree(prediction: str, golds: list[str]) -> None:
    """Equal answers are included and have F1 1; every measure stays in [0, 1] and ignores the order of the golds."""
    em, token_f1, included = (measure(prediction, golds) for measure in (exact_match, f1, inclusion))
    assert 0.0 <= em <= token_f1 <= 1.0
    assert em <= included <= 1.0
    assert token_f1 == f1(prediction, golds[::-1])


def test_no_gold_answer_is_refused() -> None:
    for measure in (exact_match, f1, inclusion):
        with pytest.raises(ValueError, match="no gold answer"):
            measure("x", ())


WITH_ANSWER = [
    # the comma is a token between them
    ("He was born in Paris, France.", [["paris"], ["Paris, France"]], [["Paris France"]]),
    ("A party.", [], [["art"]]),  # whole tokens
    ("the U.S. army", [["u.s."]], [["US"]]),
    ("Wilhelm Conrad Ro\u0308ntgen", [["R\u00f6ntgen"]], [["Rontgen"]]),  # composed and decomposed; marks count
    ("on 14\u2013December", [], [["14 December"]]),
    ("14\u00a0December", [["14 December"]], []),  # separators are no tokens
    ("one two one three", [["four", "two"], ["one three"]], [["two three"]]),  # a false start
    ("one", [], [["one two"], [], [""]]),
    ("", [], [["one"]]),
    # words of any text are no answer of it
    ("There is no bridge. Yes, true!", [["no", "bridge"]], [["no"], ["Yes."], ["TRUE", "no answer"], ["noanswer"]]),
    ("the letter K, and 7", [["K"], ["7"]], [["a"]]),
]


@pytest.mark.parametrize(("text", "found", "absent"), WITH_ANSWER)
def test_has_answer_by_hand(text: str, found: list[list[str]], absent: list[list[str]]) -> None:
    assert [has_answer(text, answers) for answers in found + absent] == [True] * len(found) + [False] * len(absent)


CHARACTERS = [
    ("北京市。", "北 京 市"),
    ("The iPhone\u306e\u300c\u91d1 \u984d\u300d: U.S.", "iphone \u306e \u91d1 \u984d us"),
    ("\uff15\u670814\u65e5", "5 \u6708 14 \u65e5"),
    ("\uff76\uff9e\u30fb\u30d1\u30fc", "\u30ac \u30d1 \u30fc"),  # half-width kana with its mark
    ("\u0e01\u0e23\u0e38\u0e07\u0e40", "\u0e01 \u0e23\u0e38 \u0e07 \u0e40"),  # Thai: a mark belongs to its letter
    ("\uc11c\uc6b8\uc740", "\uc11c \uc6b8 \uc740"),
    ("\u1019\u103c\u1014\u103a\u1019\u102c", "\u1019\u103c \u1014\u103a \u1019\u102c"),  # Burmese
    ("\u1797\u17d2\u1793\u17c6\u1796\u17c1\u1789", "\u1797\u17d2 \u1793\u17c6 \u1796\u17c1 \u1789"),  # Khmer
    ("\u0ea7\u0ebd\u0e87", "\u0ea7 \u0ebd \u0e87"),  # Lao
    ("The Caf\u00e9, \u0434\u043e\u043c a-b", "caf\u00e9 \u0434\u043e\u043c ab"),  # other scripts as in squad
]


@pytest.mark.parametrize(("text", "expected"), CHARACTERS)
def test_characters_by_hand(text: str, expected: str) -> None:
    assert characters(text) == expected


OF_TWO_SCRIPTS = [
    ("北京", ["Beijing", "北京市"], (0.0, 0.8)),
    ("the Bei-jing", ["Beijing", "北京"], (1.0, 1.0)),
    ("\u201cBeijing\u201d", ["Beijing"], (0.0, 0.0)),  # SQuAD's rule knows no curly quotes
    ("\u201cBeijing\u201d", ["Beijing", "北京"], (0.0, 0.0)),  # nor does it with an alias in Chinese beside it
    ("5\u33a1", ["5 m\u00b2", "5m2"], (1.0, 1.0)),  # both in NFKC
    ("\u0926\u093f\u0932\u094d\u0932\u0940", ["\u0926\u093f"], (0.0, 0.0)),  # words of Hindi are words
]


@pytest.mark.parametrize(("prediction", "golds", "expected"), OF_TWO_SCRIPTS)
def test_each_gold_answer_is_compared_by_its_own_script(prediction: str, golds: list[str], expected: tuple) -> None:
    assert answer_metrics.usual_scores(prediction, golds) == pytest.approx(expected)


WITHOUT_BLANKS = [
    ("北京是首都。", "北京", True),
    ("北海京都", "北京", False),
    ("日期是\uff15月\uff14日", "5月", True),
    ("用Python语言写", "python", True),
    ("\uc11c\uc6b8\uc740 \uc218\ub3c4", "\uc11c\uc6b8", True),
    ("\uc11c\uc6b0", "\uc11c", True),
    ("\uc11c\uc6b8", "\uc11c\uc6b0", False),  # syllables, not their letters
    ("\u0e19\u0e01\u0e23\u0e38\u0e07\u0e40\u0e17\u0e1e", "\u0e01\u0e23\u0e38\u0e07\u0e40\u0e17\u0e1e", True),
    ("\u0e01\u0e38\u0e07", "\u0e01\u0e07", False),  # a mark counts
    ("面積は 5 m\u00b2 です", "5 m\u00b2", True),  # both in NFKC, whatever the answer's script
    ("面積は5\u33a1です", "5 m\u00b2", False),  # 5m2 is one word
    ("面積は5\u33a1です", "5m\u00b2", True),
    ("\u2460番、カ\u3099ラス", "\uff11番", True),
    ("カ\u3099ラス", "ｶﾞﾗｽ", True),
    ("\u3231トヨタ", "株", True),
    ("5 m\u00b2", "5 m2", False),  # DPR's own rule, in NFD
    ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u062e", True),  # Persian, with and without its joiner
]


@pytest.mark.parametrize(("text", "answer", "expected"), WITHOUT_BLANKS)
def test_has_answer_in_scripts_without_blanks(text: str, answer: str, expected: bool) -> None:
    assert has_answer(text, [answer]) is expected


def test_answers_of_one_character_are_told() -> None:
    assert [one_character(each) for each in (["K"], ["k.", "7"], ["K", "Kay"], ["no"], ["no", "a"], [], ["水"])] == [
        True, True, False, False, True, False, False,
    ]  # fmt: skip


def has_answer_by_its_definition(text: str, answers: list[str]) -> bool:
    """All tokens of both, compared place by place."""

    def tokens(one: str) -> list[str]:
        found = regex.findall(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]", unicodedata.normalize("NFD", one))
        return [token.lower() for token in found]

    needles, within = [tokens(answer) for answer in answers], tokens(text)
    return any(needle and needle == within[n : n + len(needle)] for needle in needles for n in range(len(within)))


PIECES = st.sampled_from(
    [*"aAbBzZ09 ,.'-_\t\x00\x7f\xa0\u200b\u0301\u00e9\u212a\u0926", "\u03a3", "\u03c3", "\u03c2", "\u0130", "\u1e9e",
        "\u2160", "\U0001f600", "\ud800"]
)  # fmt: skip
FEW = st.lists(PIECES, max_size=5).map("".join)


@hypothesis.settings(max_examples=100)
@given(before=FEW, answers=st.lists(FEW, max_size=3), after=FEW, inserted=st.booleans(), upper=st.booleans())
def test_has_answer_keeps_its_definition_on_any_text(
    before: str, answers: list[str], after: str, inserted: bool, upper: bool
) -> None:
    middle = answers[0] if inserted and answers else ""
    text = before + (middle.upper() if upper else middle) + after
    assert has_answer(text, answers) == has_answer_by_its_definition(text, answers)


def test_has_answer_keeps_its_definition_on_single_characters() -> None:
    """Latin and Greek ones, blanks, marks and signs: alone, between letters and in upper case; both normal forms."""
    for code in (*range(0x600), *range(0x1E00, 0x2200)):
        one = chr(code)
        for text in (f"a{one}b", f"a {one.upper()} b", unicodedata.normalize("NFD", one)):
            for answer in (one, f"a{one}", "a b"):
                assert has_answer(text, [answer]) == has_answer_by_its_definition(text, [answer]), (text, answer)
