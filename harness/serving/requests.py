"""The requests that a server takes, checked: a mistake is 422 and names the field.

`AskRequest`, `SearchRequest` and `RewriteRequest` are this project's; `RerankRequest` is what Text Embeddings
Inference (`texts`), Cohere and vLLM (`documents`) share, and `ChatRequest` OpenAI's.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from common.records import Passage, Question, clean
from harness.llm.structured import VALID

MOST_CHARACTERS, MOST_TURNS, MOST_QUESTIONS, MOST_FOUND, MOST_PASSAGES = 32_768, 64, 64, 1000, 1000


def _filled(text: str) -> str:
    if not clean(text):
        raise ValueError("is empty")
    return text


Text = Annotated[str, Field(max_length=MOST_CHARACTERS), AfterValidator(_filled)]
AnyText = Annotated[str, VALID]  # also an empty or a long one: it fails no request
Turns = Annotated[list[Annotated[str, Field(max_length=MOST_CHARACTERS)]], Field(max_length=MOST_TURNS)]


class _Request(BaseModel):
    """Of a field that has a default, null is the default; further fields have no effect, as other servers have more."""

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, given: Any) -> Any:
        known = {name for name, field in cls.model_fields.items() if not field.is_required()}
        nulls = {name for name in known if isinstance(given, dict) and given.get(name, 0) is None}
        return {name: value for name, value in given.items() if name not in nulls} if nulls else given


class _Own(_Request):
    model_config = ConfigDict(extra="forbid")


class GivenDocument(_Request):
    """A document that is reranked."""

    text: AnyText
    title: AnyText = ""

    def passage(self) -> Passage:
        """The passage."""
        return Passage.of(self.title, self.text)


class GivenPassage(GivenDocument, _Own):
    """A passage that a request brings along."""

    text: Text
    title: Annotated[str, Field(max_length=MOST_CHARACTERS)] = ""


class AskRequest(_Own):
    """One question, with earlier turns and passages if any, or several questions."""

    question: Text | Annotated[list[Text], Field(min_length=1, max_length=MOST_QUESTIONS)]
    history: Turns = []
    passages: Annotated[list[GivenPassage], Field(max_length=MOST_PASSAGES)] = []
    stream: bool = False

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if isinstance(self.question, list) and (self.history or self.passages or self.stream):
            raise ValueError("history, passages and stream are for one question: give question as a text")
        return self

    def questions(self) -> list[Question]:
        """The questions; their ids are their places from 1."""
        texts = [self.question] if isinstance(self.question, str) else self.question
        history = tuple(filter(None, map(clean, self.history)))
        passages = tuple(each.passage() for each in self.passages)
        return [
            Question(str(place), clean(text), history=history, passages=passages) for place, text in enumerate(texts, 1)
        ]


class SearchRequest(_Own):
    """One query, or several."""

    query: Text | Annotated[list[Text], Field(min_length=1, max_length=MOST_QUESTIONS)]
    k: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 10

    @model_validator(mode="after")
    def _not_too_many(self) -> Self:
        if isinstance(self.query, list) and len(self.query) * self.k > 4 * MOST_FOUND:
            raise ValueError(f"k: {len(self.query)} queries times {self.k} passages, allowed {4 * MOST_FOUND:,} in all")
        return self


class RewriteRequest(_Own):
    """A question with its earlier turns; all strategies of the rewriter if none are named."""

    question: Text
    history: Turns = []
    strategies: Annotated[list[str], Field(min_length=1, max_length=16)] | None = None


class RerankRequest(_Request):
    """A query with texts or documents."""

    query: Text
    texts: Annotated[list[AnyText], Field(min_length=1, max_length=MOST_PASSAGES)] | None = None
    documents: Annotated[list[AnyText | GivenDocument], Field(min_length=1, max_length=MOST_PASSAGES)] | None = None
    top_n: Annotated[int, Field(ge=1)] | None = None
    raw_scores: bool = False
    return_text: bool = False
    return_documents: bool = False
    model: str | None = None

    @model_validator(mode="after")
    def _one_list(self) -> Self:
        if (self.texts is None) == (self.documents is None):
            raise ValueError("give texts or documents, one of them")
        return self

    def passages(self) -> list[Passage]:
        """What is reranked, in order."""
        given = self.texts if self.texts is not None else self.documents or []
        return [Passage.of("", each) if isinstance(each, str) else each.passage() for each in given]


class ContentPart(_Request):
    """A part of a message; only text is read."""

    type: Literal["text"]
    text: Annotated[str, Field(max_length=MOST_CHARACTERS)]


class ChatMessage(_Request):
    """One message of a chat."""

    role: Literal["system", "developer", "user", "assistant"]
    content: (
        Annotated[str, Field(max_length=MOST_CHARACTERS)] | Annotated[list[ContentPart], Field(max_length=64)] | None
    ) = None

    @property
    def text(self) -> str:
        """Its text."""
        return self.content if isinstance(self.content, str) else "\n".join(part.text for part in self.content or [])


class StreamOptions(_Request):
    """What a stream tells besides."""

    include_usage: bool = False


class ChatRequest(_Request):
    """A chat whose last message is the user's question; sampling options have no effect, a system has its own."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MOST_TURNS)]
    model: str | None = None
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    n: Literal[1] | None = None
    tools: Annotated[list[Any], Field(max_length=0)] | None = None

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if self.messages[-1].role != "user" or not clean(self.messages[-1].text):
            raise ValueError("the last message must be the user's, with a text")
        return self

    def question(self) -> Question:
        """The last message as a question, with the earlier ones but for instructions as its turns."""
        turns = (clean(each.text) for each in self.messages[:-1] if each.role in ("user", "assistant"))
        return Question("1", clean(self.messages[-1].text), history=tuple(filter(None, turns)))
