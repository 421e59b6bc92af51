"""A language model as reader.

All passages in one prompt (DR-RAG, Table 9), or one prompt per passage, whose answers are marginalized over passages by
the estimator's relevance (RE-RAG, Section 5.4 and Appendix C; REPLUG).

Shape legend: N contexts of a question, A distinct answers.
"""

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from common.chat import Chat, Reply, reply_costs
from common.errors import UserError
from common.progress import say
from common.ranges import NonNegativeFloat, NonNegativeInt, PositiveInt
from common.records import Answer, Passage, Question, Ranked, as_questions
from harness.interfaces import LanguageModel
from harness.llm.prompts import Prompt
from harness.readers.read_answers import sum_costs
from harness.runtime.loading import load
from models.long_questions import longest_fitting

if TYPE_CHECKING:
    from models.rerag.marginal_reader import AnswerMatrix

TOGETHER, ALONE = "drrag", "rerag_nq"  # prompts for all passages, and for one
_FEW_CHARACTERS = 200  # of each passage, which a question that is too long leaves
_SHOWN_FAILURES = 3  # different reasons that one line names


class LlmReader:
    """Answers with a language model.

    `read` shows it all passages of a question in one prompt. A system that weighs passages by relevance uses
    `matrices`: one prompt per passage. `read_closed_book` asks the model without any passage.

    A prompt that is too long for a local model is cut: the passages at their end, all at the same length, then the
    question at its end. The answer's note `cut` says so.

    Args:
        llm: The language model.
        prompt: Name of a prompt in harness/llm/prompts, or a .yaml file in its form; when omitted drrag for all
            passages in one prompt, and rerag_nq for one passage.
        marginal: Of answers from one passage each. `generated`: the sum of relevance times probability over the
            passages from which the answer was generated (RE-RAG's released code). `thorough`: every answer is scored
            under every passage; local models only. `fast`: the sum of relevance alone, for an endpoint without
            log-probabilities.
        max_answer_tokens: Most tokens of a reply; the prompt's when omitted.
        temperature: 0 is greedy; the paper's figures are with 0.8.
        examples: Data-set file with answers and passages: further examples for the prompt.
        examples_layout: Its layout; auto: by the fields of its first row.
        shots: Number of examples in the prompt: its own ones, then those of the file.
        closed_book: Prompt for a question without passages, by name or file; when omitted that which the prompt for all
            passages names as the one of its kind.
        sample: Number of the sample, with a temperature above 0: another number gives other replies.

    Raises:
        UserError: If `thorough` is asked of a model that cannot score given texts.
        MissingInputError: If a file does not exist.
        DataError: If a file does not match its form, or holds too few examples.
    """

    def __init__(
        self,
        llm: LanguageModel,
        prompt: str | None = None,
        marginal: Literal["generated", "thorough", "fast"] = "generated",
        max_answer_tokens: PositiveInt | None = None,
        temperature: NonNegativeFloat = 0.0,
        examples: str | None = None,
        examples_layout: str = "auto",
        shots: NonNegativeInt | None = None,
        closed_book: str | None = None,
        sample: NonNegativeInt = 0,
    ) -> None:
        if marginal == "thorough" and not hasattr(llm, "logprobs"):
            raise UserError(
                f"marginal thorough scores given answers, which {type(llm).__name__} cannot: set marginal to generated "
                "or fast, or use a local model."
            )
        self.llm, self.marginal = llm, marginal
        self.max_answer_tokens, self.temperature = max_answer_tokens, temperature
        self.sample, self._prompt, self._closed_book = sample, prompt, closed_book
        self._examples = (examples, examples_layout, shots)
        self.spent: dict[str, float] = {}  # costs of all replies so far
        self._cuts: dict[str, str] = {}  # question -> the note on what was cut

    def load(self) -> None:
        """Load the prompts, with their examples, and the language model."""
        _ = self.together, self.alone, self._known_closed_book
        load(self.llm)

    @cached_property
    def together(self) -> Prompt:
        """For all passages of a question."""
        return _with_shots(Prompt.load(self._prompt), *self._examples) if self._prompt else Prompt.load(TOGETHER)

    @cached_property
    def alone(self) -> Prompt:
        """For one passage."""
        return self.together if self._prompt else _with_shots(Prompt.load(ALONE), *self._examples)

    @property
    def closed_book(self) -> Prompt:
        """For a question without passages.

        Raises:
            UserError: If none is given, and the prompt for all passages names none.
        """
        if self._known_closed_book is None:
            raise UserError(
                f"prompt {self.together.name} names no prompt of its kind for a question without passages: set the "
                "reader's closed_book, such as closed_book: closed_book, or remove none from the system's sources."
            )
        return self._known_closed_book

    @cached_property
    def _known_closed_book(self) -> Prompt | None:
        name = self._closed_book or self.together.closed_book
        prompt = Prompt.load(name) if name else None
        return _with_shots(prompt, *self._examples) if prompt and prompt.example else prompt

    def facts(self, alone: bool) -> list[str]:
        """The model, how it replies, and the prompt with its hash, for reports.

        Args:
            alone: Whether the system has it read one passage per call.
        """
        how = f"; marginal {self.marginal}" if alone else ""
        prompt = self.alone if alone else self.together
        return [f"reader: {self.llm.name}; temperature of sampling {self.temperature:g}{how}", prompt.fact]

    @property
    def recipe(self) -> dict[str, str]:
        """Everything else that the replies depend on, besides the options.

        The model, which the environment may choose, and the prompts' content.
        """
        prompts = {"together": self.together, "alone": self.alone}
        if self._known_closed_book:
            prompts["closed book"] = self._known_closed_book
        return {"llm": self.llm.name} | {n: f"{each.hash}, {each.max_tokens} tokens" for n, each in prompts.items()}

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        """One answer per question from all its passages in one prompt; empty without passages.

        The answer to a question whose call fails is empty; the note `error` says why.
        """
        pairs = [*zip(questions, map(tuple, evidence), strict=True)]
        read = iter(self._answered(self.together, [pair for pair in pairs if pair[1]]))
        return [next(read) if hits else Answer(each.id, "", (), costs=reply_costs(())) for each, hits in pairs]

    def read_closed_book(self, questions: Sequence[Question]) -> list[Answer]:
        """One answer per question without passages; empty where the call fails, as in `read`."""
        return self._answered(self.closed_book, [(question, ()) for question in as_questions(questions)])

    def _answered(self, prompt: Prompt, read: Sequence[tuple[Question, tuple[Ranked, ...]]]) -> list[Answer]:
        chats = [self._chat(prompt, question.text, [hit.passage for hit in hits]) for question, hits in read]
        return [
            Answer(
                question.id, prompt.answer(reply.text), hits, reply.logprob, reply_costs((reply,)),
                {"error": reply.error} if reply.error else {},
            )
            for (question, hits), reply in zip(read, self._ask(chats), strict=True)
        ]  # fmt: skip

    def matrices(self, questions: Sequence[str], contexts: Sequence[Sequence[Passage]]) -> "list[AnswerMatrix]":
        """The answer generated from each context alone, and its log-probability, for every question in order.

        Args:
            questions: Question texts.
            contexts: Passages of each question, any number.
        """
        import torch

        from models.rerag.marginal_reader import AnswerMatrix

        thorough, generated = self.marginal == "thorough", self.marginal == "generated"
        asked = [
            (question, passage) for question, passages in zip(questions, contexts, strict=True) for passage in passages
        ]
        chats = [self._chat(self.alone, question, [passage], logprobs=generated) for question, passage in asked]
        rows = iter(zip(chats, self._ask(chats), strict=True))
        replies = [list(islice(rows, len(passages))) for passages in contexts]
        matrices = [
            AnswerMatrix.of(
                tuple(self.alone.answer(reply.text) for _, reply in own), None, tuple(reply.error for _, reply in own)
            )
            for own in replies
        ]
        if self.marginal == "fast":
            return matrices
        cells = [
            (question, a, place)
            for question, matrix in enumerate(matrices)
            for a, text in enumerate(matrix.candidates)
            for place, (_, reply) in enumerate(replies[question])
            if not reply.error and (thorough or text == matrix.written[place])
        ]
        if thorough:
            scores = self.llm.logprobs(  # type: ignore[attr-defined]  # checked in __init__
                [replies[question][place][0] for question, _, place in cells],
                [matrices[question].candidates[a] for question, a, _ in cells],
            )
        else:
            scores = [replies[question][place][1].logprob for question, _, place in cells]
        tables = [torch.full((len(m.candidates), len(m.written)), -torch.inf) for m in matrices]
        for (question, a, place), score in zip(cells, scores, strict=True):
            tables[question][a, place] = score
        return [
            replace(matrix, answer_logp_AN=table) if matrix.candidates else matrix
            for matrix, table in zip(matrices, tables, strict=True)
        ]

    def _chat(self, prompt: Prompt, question: str, passages: Sequence[Passage], logprobs: bool = False) -> Chat:
        limit = self.max_answer_tokens or prompt.max_tokens

        def chat(characters: int | None = None, asked: int | None = None) -> Chat:
            shown = [replace(each, text=each.text[:characters]) for each in passages]
            return Chat(
                prompt.messages(shown, question=question[:asked]), limit, self.temperature, self.sample, logprobs,
                prompt.one_line,
            )  # fmt: skip

        whole, room = chat(), getattr(self.llm, "room", None)
        if room is None or room(whole) > 0:
            return whole
        least = min(limit, (room(chat(0, 0)) - 1) // 2)  # of the reply
        longest = max((len(each.text) for each in passages), default=0)
        few = min(_FEW_CHARACTERS, longest)
        kept = longest_fitting(few, longest, lambda count: room(chat(count)) >= least)
        if kept is not None:
            self._cuts[question] = f"reads the first {kept:,} characters of each passage"
            return chat(kept)
        asked = longest_fitting(1, len(question), lambda count: room(chat(few, count)) >= least)
        if asked is None:  # the prompt itself is too long: the model says so
            return whole
        self._cuts[question] = f"reads the first {asked:,} of the question's {len(question):,} characters"
        return chat(few, asked)

    def cut_note(self, question: str, history: Sequence[str] = ()) -> str:
        """The part that was read of a question or passages that were too long; else empty."""
        return self._cuts.get(question, "")

    def leaves_room(self, question: str) -> bool:
        """Whether a question with earlier turns leaves half of the context, which passages and the reply need."""
        room = getattr(self.llm, "room", None)
        return room is None or 2 * room(self._empty(question)) >= room(self._empty(""))

    def _empty(self, question: str) -> Chat:
        """A chat without passages."""
        return Chat(self.together.messages([], question=question), self.together.max_tokens)

    def _ask(self, chats: Sequence[Chat]) -> list[Reply]:
        """The replies; their costs are counted, failures are told in one line."""
        if not chats:
            return []
        replies = self.llm.reply(chats)
        self.spent = sum_costs(self.spent, reply_costs(replies))
        reasons = Counter(reply.error for reply in replies if reply.error)
        if reasons:
            shown = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(_SHOWN_FAILURES))
            say(f"{self.llm.name}: {sum(reasons.values())} of {len(replies)} calls gave no answer: {shown}.")
        return replies


def _with_shots(prompt: Prompt, file: str | None, layout: str, shots: int | None) -> Prompt:
    """The prompt with `shots` examples: its own ones, then those of a file; only its own when `shots` is None.

    Raises:
        UserError: If there are too few examples, or the prompt has no place for any.
    """
    if shots is None and file is None and (prompt.examples or not prompt.example):
        return prompt
    own, further = prompt.examples[:shots], list[Any]()
    if file and shots and prompt.example:
        further += islice(_examples(file, layout, prompt.example_places), max(0, shots - len(own)))
    if shots is None or not prompt.example or len(own) + len(further) < shots:
        raise UserError(
            f"prompt {prompt.name} has {len(own)} examples, examples {file or 'names no file'} gives {len(further)} "
            f"more, and shots is {shots}: give a file of questions with answers and passages by examples, the number "
            "of examples by shots, and a prompt with a place for them, such as rerag_nq."
        )
    return replace(prompt, examples=(*own, *further))


def _examples(file: str, layout: str, places: Set[str]) -> Iterator[dict[str, Any]]:
    """Examples from a data-set file.

    For a place `documents`, each question with an answer and gold passages, with all of these. For `document`, each
    that has an answer in one of its passages, with the first such passage, a gold one if gold passages are known. For
    neither, each with an answer.
    """
    from common.answer_metrics import has_answer
    from datamodules.formats.reading import read_questions

    for question in read_questions(layout, file):
        if not question.answers:
            continue
        asked = {"question": question.text, "answer": question.answers[0]}
        if "document" in places:
            for passage in question.gold_passages or question.passages:
                if has_answer(passage.text, question.answers):
                    yield {"title": passage.title, "text": passage.text, **asked}
                    break
        elif question.gold_passages or "documents" not in places:
            yield {"passages": [{"title": each.title, "text": each.text} for each in question.gold_passages], **asked}
