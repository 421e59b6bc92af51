"""Prompts: YAML files with the messages of a chat, named by file, identified by a hash of what a model reads of them.

    system: optional text of a system message
    user: text of the user message, such as "${documents}\n\nQuestion: ${question}"
    document: text of each document in ${documents}, between the lines <passage> and </passage>: ${number}, ${title},
        ${text}; ${passage} is "TITLE. TEXT", or the text without a title
    example: text of each example in ${examples}: ${number}, ${document} (one) or ${documents} (all), ${question},
        ${answer}
    examples: [{title: ..., text: ..., question: ..., answer: ...}]
    max_tokens: most tokens of the reply; 32 when omitted
    answer_after: the answer is what follows the last of these words in the reply; the whole reply when omitted
    answer_until: and what stands before this; else up to the end of the line
    verbatim: true if the answer is the reply as it is; else quotes, brackets and a final stop are removed, HTML
        entities are the characters that they stand for, and what stands in \\boxed{} is the answer
    one_line: true if a reader's reply ends at its first line break: a model without a chat template would go on with
        an example of its own
    closed_book: name of the prompt of this kind for a question without documents; no model reads it
    source: where the prompt was published; no model reads it

`${name}` is a place for text; a dollar sign is `$$`. In a prompt with documents, or with tags of its own, no text that
is filled in can write such a tag: `</passage>` becomes `&lt;/passage>`, so that no passage ends its place.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from common.chat import Chat, Message
from common.errors import DataError, MissingInputError, UserError
from common.records import Passage, clean, nfkc, passage_text
from common.yaml_texts import load_yaml
from harness.llm.reply_text import boxed, decoded
from harness.llm.structured import first_fault

FOLDER = Path(__file__).parent / "prompts"
_FLAGS = ("verbatim", "one_line")
_STOPS = ";.。\uff1b\uff0e｡…"  # at the end of an answer
_FRAME = 1  # of what is filled in; increase it when a model reads the same texts otherwise
_TAG = re.compile(r"</(\w+)>")
_FRAMED = ("passage", "answer")  # tags of documents, and of several answers (harness.evaluation.judge)
_MADE = ("documents", "examples", "answers", "form", "count")  # places for what is no text of data, or framed already
_OPENING = re.compile("[<\ufe64\uff1c]")
_TAG_CHARACTERS = 60  # after its opening, invisible ones included
_MARK = (  # `**Answer**: `, `Answer:**`, `### Answer` on a line of its own, `<answer>`
    r"(?<!\w){word}[*_`]*\s*[:：][*_`]*|^[#*_>\s]*{word}[*_#]*[ \t]*$|<{word}>"
)
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}  # as models write ASCII marks among Chinese
_MARK_IN_A_SENTENCE = r"(?<!\w){word}\s+is\b\s*[:：]?"
_MARKS = " \t*_`#~-"  # of a line without a word
_MARKDOWN = re.compile(r"^(?:#+|[-+*>•])\s+|^\*{2,}|\*{2,}$")
_LINK = re.compile(r"\[([^\[\]]+)\]\(\S*\)")
_TAGGED = re.compile(r"<(\w+)>(.*)</\1>", re.IGNORECASE | re.DOTALL)
_PAIRS = {"<": ">", '"': '"', "'": "'", "*": "*", "_": "_", "`": "`", "“": "”", "‘": "’", "«": "»"}  # noqa: RUF001
_PAIRS |= {quote: quote for quote in "\uff02\uff07"}  # full-width


def _is_template(text: str) -> str:
    if not Template(text).is_valid():
        raise ValueError("a $ begins no ${name}; write $$ for a dollar sign")
    return text


def _is_example(found: Mapping[str, Any]) -> Mapping[str, Any]:
    if set(found) not in ({"title", "text", "question", "answer"}, {"passages", "question", "answer"}):
        raise ValueError("an example has the keys title, text, question and answer")
    return found


_Text = Annotated[str, AfterValidator(_is_template)]
_Example = Annotated[Mapping[str, str | list[dict[str, str]]], AfterValidator(_is_example)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class Prompt:
    """A prompt.  `messages` fills it in."""

    name: str
    user: Annotated[_Text, Field(min_length=1)]
    system: _Text = ""
    document: _Text = ""
    example: _Text = ""
    examples: Annotated[tuple[_Example, ...], Field(strict=False)] = ()  # a title and a text, or `passages` with these
    answer_after: str = ""
    answer_until: str = ""
    closed_book: str = ""
    source: str = ""
    max_tokens: Annotated[int, Field(ge=1)] = 32
    verbatim: bool = False
    one_line: bool = False

    @classmethod
    def load(cls, name: str) -> Self:
        """A prompt of this project by name, or a user's own by its file.

        Raises:
            UserError: If there is no prompt of that name.
            MissingInputError: If the file does not exist.
            DataError: If the file is no prompt.
        """
        own = Path(name).suffix in (".yaml", ".yml")
        file = Path(name) if own else FOLDER / f"{name}.yaml"
        if not file.is_file():
            if own:
                raise MissingInputError(
                    f"prompt: {file} does not exist. Prompts of this project: {', '.join(names())}."
                )
            raise UserError(f"prompt is {name!r}; allowed: {', '.join(names())}, or a .yaml file.")
        import yaml

        try:
            found = load_yaml(file.read_text(encoding="utf-8"), str(file))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise DataError(f"{file} is no YAML text: {' '.join(str(error).split())}") from error
        if not isinstance(found, dict):
            raise DataError(f"{file} must hold keys such as user: TEXT.")
        return cls.of(file.stem, found, str(file))

    @classmethod
    def of(cls, name: str, found: Mapping[str, Any], where: str) -> Self:
        """A prompt from the content of its file.

        Args:
            name: Of the prompt.
            found: The keys of the file.
            where: Named in errors.

        Raises:
            DataError: If a key is unknown, missing or of another type, or a text is no template.
        """
        given: dict[str, Any] = {key: each.strip() if isinstance(each, str) else each for key, each in found.items()}
        try:
            return cls(name=name, **given)
        except ValidationError as error:
            keys = ", ".join(list(cls.__dataclass_fields__)[1:])
            raise DataError(f"{where}: {first_fault(error)}; the keys of a prompt are {keys}.") from error
        except TypeError as error:  # a key that is no text, or `name`
            raise DataError(f"{where}: {error}.") from error

    @classmethod
    def with_places(cls, name: str, places: Iterable[str], needed: str = "", max_tokens: int | None = None) -> Self:
        """A prompt by name or file, as `load`.

        Args:
            name: As for `load`.
            places: That it may have, besides those that are filled in by itself.
            needed: That it must have.
            max_tokens: Most tokens of the reply, in the place of the prompt's own.

        Raises:
            UserError: If it has another place, or lacks the needed one.
        """
        prompt = cls.load(name)
        prompt.messages([Passage("", "")], **dict.fromkeys(places, ""))  # refuses other places
        if needed and f"${{{needed}}}" not in prompt.user + prompt.system:
            raise UserError(f"prompt {prompt.name} needs a place ${{{needed}}}.")
        return replace(prompt, max_tokens=max_tokens or prompt.max_tokens)

    @property
    def hash(self) -> str:
        """The first 12 hex digits of the SHA-256 of everything that a model reads, and of where its answer stands."""
        read = [self.system, self.user, self.document, self.example, *map(dict, self.examples), self.answer_after]
        read += [flag for flag in _FLAGS if getattr(self, flag)] + [self.answer_until] * bool(self.answer_until)
        read += [f"frame {_FRAME}"] * bool(self._tags)
        return hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def fact(self) -> str:
        """Name and hash, for reports."""
        return f"prompt {self.name}, {self.hash}"

    def messages(self, documents: Sequence[Passage] = (), **texts: str) -> tuple[Message, ...]:
        """The messages with all places filled in.

        Args:
            documents: For `${documents}`.
            texts: For the other places, such as `question`.

        Raises:
            UserError: If the prompt has a place for which no text is given.
        """
        texts = {name: text if name in _MADE else self.inert(text) for name, text in texts.items()}
        places: dict[str, str] = {
            "documents": self._documents(documents),
            "examples": "\n\n".join(self._example(number, each) for number, each in enumerate(self.examples, start=1)),
            **texts,
        }
        user = Message("user", self._filled("user", **places))
        return (Message("system", self._filled("system", **places)), user) if self.system else (user,)

    def chat(self, temperature: float = 0.0, sample: int = 0, documents: Sequence[Passage] = (), **texts: str) -> Chat:
        """The request with all places filled in, as `messages`."""
        messages = self.messages(documents, **texts)
        return Chat(messages, self.max_tokens, temperature, sample, one_line=self.one_line)

    @property
    def example_places(self) -> set[str]:
        """The places of `example`."""
        return set(Template(self.example).get_identifiers())

    @cached_property
    def _tags(self) -> tuple[str, ...]:
        """Beginnings of the tags that no text that is filled in can write."""
        own = _TAG.findall("\n".join((self.system, self.user, self.document, self.example)))
        return (*_FRAMED, *(tag.lower() for tag in own)) if own or self.document else ()

    def inert(self, text: str) -> str:
        """A text that cannot write a tag of the prompt, whatever its case, blanks, or form of the characters."""
        if not self._tags:
            return text

        def opening(found: re.Match[str]) -> str:
            behind = "".join(nfkc(text[found.end() : found.end() + _TAG_CHARACTERS]).split()).lower()
            return "&lt;" if behind.lstrip("/\\\u2044\u2215").startswith(self._tags) else found[0]

        return _OPENING.sub(opening, text)

    def marked(self, reply: str) -> str:
        """The text behind the last `answer_after` in a reply, without Markdown and tags; else the whole reply."""
        if not self.answer_after:
            return reply
        word = re.escape(self.answer_after.rstrip(":： "))
        for pattern in (_MARK, _MARK_IN_A_SENTENCE):
            if found := [*re.finditer(pattern.format(word=word), reply, re.IGNORECASE | re.MULTILINE)]:
                text = reply[found[-1].end() :]
                return text.partition("</")[0] if found[-1][0].endswith(">") else text
        return reply

    def answer(self, reply: str) -> str:
        r"""The answer in a reply: what follows the last `answer_after`, up to `answer_until` or the line's end.

        A reply without these words goes on after those of a prompt that ends in them. What stands in `\boxed{}` there
        is the answer. It has no Markdown, tags, entities, quotes, brackets and final stop or semicolon unless it is
        `verbatim`.
        """
        if self.verbatim:
            return self.marked(reply)
        text = self.marked(reply := decoded(reply))
        if (box := boxed(text)) is not None:
            return bare(box)
        if text is not reply or (self.answer_after and self.user.endswith(self.answer_after)):
            text = next((line for line in text.splitlines() if line.strip(_MARKS)), "")
        if self.answer_until:
            marks = self.answer_until, self.answer_until.translate(_FULL_WIDTH)
            text = re.split("|".join(map(re.escape, marks)), clean(text), maxsplit=1)[0]
        return bare(text)

    def _example(self, number: int, each: Mapping[str, Any]) -> str:
        passages = [Passage("", one["text"], one["title"]) for one in each.get("passages", [each])]
        return self._filled(
            "example",
            number=str(number),
            document=self._document(number, passages[0]) if passages else "",
            documents=self._documents(passages),
            question=self.inert(each["question"]),
            answer=self.inert(each["answer"]),
        )

    def _documents(self, documents: Sequence[Passage]) -> str:
        return "\n\n".join(self._document(number, each) for number, each in enumerate(documents, start=1))

    def _document(self, number: int, each: Passage) -> str:
        each = Passage("", self.inert(each.text), self.inert(each.title))
        passage = passage_text(each)
        text = self._filled("document", number=str(number), title=each.title, text=each.text, passage=passage)
        return f"<passage>\n{text}\n</passage>"

    def _filled(self, key: str, **places: str) -> str:
        """The text of a key with all places filled in."""
        try:
            return Template(getattr(self, key)).substitute(places)
        except KeyError as error:
            allowed = ", ".join(sorted(places))
            raise UserError(
                f"prompt {self.name}: {key} has a place ${{{error.args[0]}}}; allowed there: {allowed}."
            ) from error


def bare(text: str) -> str:
    """A text of one line without Markdown, tags, quotes and brackets around it, and without a final stop."""
    text, before = clean(text), ""
    while text != before:
        before = text
        text = _MARKDOWN.sub("", _LINK.sub(r"\1", text)).rstrip(_STOPS).strip()
        if tagged := _TAGGED.fullmatch(text):
            text = tagged[2].strip()
        elif len(text) > 1 and _PAIRS.get(text[0]) == text[-1] and not {text[0], text[-1]} & {*text[1:-1]}:
            text = text[1:-1].strip()
    return text


def names() -> list[str]:
    """The names of this project's prompts."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))
