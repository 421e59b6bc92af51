"""A language model as query rewriter.

All strategies by one prompt (after DMQR-RAG's Table 5, or as printed there), or those that it selects (Table 1).
"""

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from common.chat import Chat
from common.errors import UserError
from common.ranges import NonNegativeFloat, NonNegativeInt, PositiveInt
from common.records import Question, as_questions, as_texts, clean
from common.rewrites import Rewrites
from common.sealed_json import fingerprint
from harness.interfaces import LanguageModel
from harness.llm.prompts import Prompt
from harness.llm.structured import ParsedReply, ask_parsed
from harness.rewriters.fallbacks import tell_fallbacks, with_fallbacks
from harness.runtime.loading import load
from harness.runtime.provenance import with_arguments
from models.dmqr.rewrite_outputs import REASON, ParsedRewrites, parse_output
from models.dmqr.strategies import Pool, Strategy

_NONE = ("none", "no method", "no methods", "no rewriting method", "no strategy")


class LlmRewriter:
    """Rewrites questions with a language model, by prompts that are generated from the pool of strategies.

    One call per question makes the queries of all strategies. A reply without a line for every strategy is shown to the
    model again with the reason; what is missing after that falls back to the question. A selection may be empty: a
    reply that gives its reason alone selects no strategy.

    Args:
        llm: The language model.
        pool: YAML file with strategies and demonstrations of your own, in the form of
            `models.dmqr.strategies.Pool.load`.
        adaptive: Select strategies for each question (Table 1) instead of using all (Table 5).
        repairs: Further calls for a reply that cannot be used, at most.
        max_tokens: Most tokens of a reply.
        temperature: 0 is greedy.
        sample: Number of the sample, with a temperature above 0: another number gives other rewrites.
        printed_prompt: The prompt of Table 5 as printed, for the paper's four strategies alone. The default prompt adds
            an output format and a second demonstration.

    Raises:
        UserError: If `printed_prompt` is given with `pool` or `adaptive`.
        MissingInputError: If the pool's file does not exist.
        DataError: If it is no pool.
    """

    reads_history = True

    def __init__(
        self,
        llm: LanguageModel,
        pool: Path | None = None,
        adaptive: bool = False,
        repairs: NonNegativeInt = 1,
        max_tokens: PositiveInt = 512,
        temperature: NonNegativeFloat = 0.0,
        sample: NonNegativeInt = 0,
        printed_prompt: bool = False,
    ) -> None:
        if printed_prompt and (pool is not None or adaptive):
            raise UserError(
                "printed_prompt is the paper's Table 5, which has its own strategies and selects none: omit it, or "
                f"omit {'pool' if pool is not None else 'adaptive'}."
            )
        self.printed_prompt = printed_prompt
        self.llm, self.adaptive, self.repairs, self.sample = llm, adaptive, repairs, sample
        self.max_tokens, self.temperature = max_tokens, temperature
        self._file = pool

    def load(self) -> None:
        """Load the pool and the language model."""
        _ = self.pool
        load(self.llm)

    @cached_property
    def pool(self) -> Pool:
        """The strategies."""
        if self.printed_prompt:
            return Pool.of_paper()
        return Pool.load(None if self._file is None else Path(self._file))

    @property
    def name(self) -> str:
        """For reports."""
        return f"{self.llm.name}{', adaptive' if self.adaptive else ''}"

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies in the pool."""
        return tuple(self.pool.strategies)

    @property
    def facts(self) -> list[str]:
        """The model, and the prompts by their hash, for reports."""
        return [f"rewriter: {self.name}", f"prompts {self._kind}, {self.recipe['prompts']}"]

    @property
    def recipe(self) -> dict[str, str]:
        """What the rewrites depend on besides the options: the model, and the prompts' content."""
        names = list(self.pool.strategies)
        prompts = [self._prompt(names, dialogue).hash for dialogue in (False, True)]
        return {"llm": self.llm.name, "prompts": fingerprint(prompts)[:12]}

    @property
    def _kind(self) -> str:
        return "selection" if self.adaptive else "rewriting, Table 5 as printed" if self.printed_prompt else "rewriting"

    def without_choice(self) -> "LlmRewriter":
        """The same rewriter with all strategies for every question."""
        rewriter: LlmRewriter = with_arguments(self, adaptive=False)
        return rewriter

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        """The queries of every question by every strategy, or by those that the model selects.

        One line counts the fallbacks.

        Raises:
            UserError: If the pool lacks a strategy, or no call can succeed (from the model).
        """
        return tell_fallbacks(self.name, self.ask(questions, strategies))

    def ask(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        """As `rewrite`, for a caller that reports the fallbacks itself: nothing is printed."""
        questions, strategies = as_questions(questions), as_texts(strategies)
        chosen = self.pool.chosen(strategies)
        if not questions:
            return []
        outcomes = ask_parsed(
            self.llm,
            [self._chat(question, strategies) for question in questions],
            lambda reply: self._complete(reply, chosen),
            self.repairs,
        )
        return [self._rewrites(*pair, chosen) for pair in zip(questions, outcomes, strict=True)]

    def _prompt(self, strategies: Sequence[str], dialogue: bool) -> Prompt:
        if self.printed_prompt:
            return Prompt(self._kind, self.pool.printed_prompt(dialogue), max_tokens=self.max_tokens)
        generate = self.pool.selection_prompt if self.adaptive else self.pool.rewriting_prompt
        return Prompt(self._kind, generate(strategies, dialogue), max_tokens=self.max_tokens)

    def _chat(self, question: Question, strategies: Sequence[str]) -> Chat:
        prompt = self._prompt(strategies, bool(question.history))
        history = "\n".join(f"- {turn}" for turn in map(clean, question.history) if turn)
        return prompt.chat(self.temperature, self.sample, question=clean(question.text), history=history)

    def _complete(self, reply: str, chosen: Sequence[Strategy]) -> ParsedRewrites:
        """The rewrites in a reply; raises ValueError if something is missing."""
        parsed = parse_output(reply, chosen)
        if self.adaptive:
            wrong = [line for line in parsed.malformed if parsed.queries or not _says_none(line)]
            if wrong:
                raise ValueError(f"the line {wrong[0][:80]!r} does not hold a method's name and its result")
            if not parsed.queries and not parsed.reason:
                raise ValueError("it selects no method and gives no reason")
            if not parsed.reason:
                raise ValueError(f"its last line does not begin with {REASON!r}")
        elif missing := [each.title for each in chosen if each.name not in parsed.queries]:
            raise ValueError(f"it has no valid line for {missing[0]}")
        return parsed

    def _rewrites(self, question: Question, asked: ParsedReply[ParsedRewrites], chosen: Sequence[Strategy]) -> Rewrites:
        """The rewrites of one question: those of its last reply, then missing ones from earlier replies."""
        if asked.value is not None and not asked.value.queries:  # no strategy is selected
            return Rewrites({}, {}, asked.value.reason, dict(asked.costs))
        parsed = [asked.value] if asked.value else [parse_output(reply.text, chosen) for reply in asked.replies[::-1]]
        queries: dict[str, tuple[str, ...]] = {}
        for each in parsed:
            if not (self.adaptive and queries):  # a selection is one reply's
                queries |= {name: texts for name, texts in each.queries.items() if name not in queries}
        wanted = [each.name for each in chosen]
        if self.adaptive and queries:
            selected = next(each for each in parsed if each.queries)
            wanted = [name for name in wanted if name in selected.queries or name in selected.empty]
        reason = next((each.reason for each in parsed if each.reason), "")
        return with_fallbacks(clean(question.text), wanted, queries, asked.failure, reason, asked.costs)


def _says_none(line: str) -> bool:
    """Whether a line says that no strategy is selected: `None`, `Selected methods: none.`"""
    return re.split("[:：]", line)[-1].strip(" .*-").lower() in _NONE
