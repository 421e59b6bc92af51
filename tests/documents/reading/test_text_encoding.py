"""Encodings of text files: what pages say, as browsers read it; guesses by the letters of languages; their report."""

# ruff: noqa: RUF001

import pytest

from documents.left_out import LeftOut
from documents.reading.any_file import read_document
from documents.reading.text_encoding import decoded
from documents.reading.web_encodings import web_encoding


@pytest.mark.parametrize(
    ("label", "encoding"),
    [
        (" ISO-8859-1\n", "cp1252"), ("us-ascii", "cp1252"), ("latin5", "cp1254"), ("tis-620", "cp874"),
        ("windows-874", "cp874"), ("gb2312", "gb18030"), ("x-gbk", "gb18030"), ("x-x-big5", "big5hkscs"),
        ("x-sjis", "cp932"), ("ks_c_5601-1987", "cp949"), ("ksc_5601", "cp949"), ("iso-8859-8-i", "iso8859-8"),
        ("visual", "iso8859-8"), ("iso885915", "iso8859-15"), ("x-mac-cyrillic", "mac-cyrillic"), ("koi8", "koi8-r"),
        ("x-cp1251", "cp1251"), ("unicode", "utf-8"), ("utf-16be", "utf-8"), ("utf8", "utf-8"),
        ("x-user-defined", "cp1252"), ("base64", None), ("utf-7", None), ("rot13", None), ("cp437", None), ("", None),
        ("\u00fc", None), ("a\x00b", None),
    ],
)  # fmt: skip
def test_labels_mean_what_browsers_read(label: str, encoding: str | None) -> None:
    assert web_encoding(label) == encoding


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("<!-- <meta charset=koi8-r> --><meta charset=windows-1251>", "cp1251"),
        ("<meta name=description content='text; charset=koi8-r'><meta charset=windows-1251>", "cp1251"),
        ("<meta content='text/html; charset=\"windows-1251\"' http-equiv=Content-Type>", "cp1251"),
        ("<a title='<meta charset=koi8-r>'><META\nCHARSET = 'windows-1251' charset=koi8-r />", "cp1251"),
        ("<meta charset=no-such><meta charset=windows-1251>", "cp1251"),
        ("<?xml version='1.0' encoding='windows-1251'?>", "cp1251"),
        (f"<title>{'x' * 5000}</title><meta charset=windows-1251>", "cp1251"),
        ("<body><pre>&lt;meta charset=koi8-r> <meta charset=koi8-r></pre>", "cp1251"),  # by the letters alone
        ("<meta charset=iso-8859-1>", "cp1252"),
    ],
)
def test_where_a_page_says_its_encoding(head: str, encoding: str) -> None:
    data = head.encode() + "<p>Насос работает</p>".encode("cp1251")
    assert decoded(data, LeftOut(), is_html=True).endswith(data[-18:].decode(encoding))


@pytest.mark.parametrize(
    ("encoding", "text", "name"),
    [
        ("gbk", "标题：请勿在潮湿环境中使用本产品。", "gb18030"), ("big5", "打開泵之前請閱讀說明書。", "big5hkscs"),
        ("cp932", "東京都の天気は晴れです", "cp932"), ("euc-jp", "東京都の天気は晴れです", "euc_jp"),
        ("iso-2022-jp", "東京都の天気", "iso-2022-jp-ext"), ("cp949", "펌프의 전압은 24V입니다.", "cp949"),
        ("cp1251", "Насос работает", "windows-1251"), ("koi8-r", "Насос работает", "koi8-u"),
        ("cp866", "Насос работает", "cp866"), ("cp1253", "Η αντλία λειτουργεί", "windows-1253"),
        ("cp1255", "המשאבה פועלת במתח 24 וולט", "windows-1255"), ("cp1256", "تعمل المضخة بجهد 24", "windows-1256"),
        ("cp874", "ปั๊มทำงานที่แรงดันไฟฟ้า", "cp874"), ("cp1250", "Łódź leży nad wodą", "windows-1250"),
        ("iso-8859-2", "Příliš žluťoučký kůň", "iso-8859-2"),
        ("cp1254", "Lütfen kılavuzu okuyun, güneş", "windows-1254"),
        ("cp1252", "Die Größe – \u201e5 €\u201c, m³", "windows-1252"), ("cp1252", "It\u2019s so", "windows-1252"),
        ("cp1252", "L\u2019été à Paris", "windows-1252"),
    ],
)  # fmt: skip
def test_a_text_that_does_not_say_its_encoding_is_read_by_a_guess_that_is_reported(
    encoding: str, text: str, name: str
) -> None:
    document = read_document(f"{text}\n".encode(encoding), "a.txt")
    assert [getattr(block, "text", "") for block in document.blocks] == [text]
    assert document.left_out == (f"read as {name} by a guess: save it as UTF-8 if its letters are wrong",)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["It\u2019s é", "東京都\n\n天気", "plain"])
def test_utf_16_without_a_mark(encoding: str, text: str) -> None:
    for name, markup in (("a.txt", text), ("a.html", f"<!doctype html><html><p>{text}</p>")):
        document = read_document(markup.encode(encoding), name)
        assert " ".join(getattr(block, "text", "") for block in document.blocks) == " ".join(text.split())
        assert document.left_out == ()


def test_characters_that_cannot_be_read_are_counted_and_an_unclear_encoding_is_said() -> None:
    mostly = "é und ä, ".encode() * 20 + b"\xe9\n"  # UTF-8 with one broken byte
    assert read_document(mostly, "a.txt").left_out == ("characters that cannot be read in utf-8: 1 x \ufffd",)
    page = b"<meta charset=gb2312><p>\xb1\xea\xcc\xe2 \xff\xff"
    assert read_document(page, "a.html").left_out == ("characters that cannot be read in gb18030: 2 x \ufffd",)
    assert "as its encoding is unclear" in read_document("Größe".encode("mac-roman"), "a.txt").left_out[0]
