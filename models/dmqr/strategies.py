"""DMQR-RAG's pool of rewriting strategies, and the prompts that are generated from it.

`rewrite_outputs` parses their outputs.

A strategy is one entry of the pool: training, prompts, retrieval and reports take it from there (paper: Section 2.2.1,
Tables 1 and 5). Information equality: gqr, kwr; expansion: par; reduction: cce; decomposition is ours, for questions
that need several facts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from common.errors import DataError, MissingInputError, UserError
from common.records import nfkc
from common.yaml_texts import load_yaml
from models.dmqr.rewrite_outputs import REASON, SEPARATOR, label_of, parse_output
from models.dmqr.rewrite_outputs import Strategy as Strategy

DIALOGUE = (
    "### Conversation ###\nThe question follows these turns of a conversation. Put names in the place of words that "
    "refer to them, such as he, it or there, in every rewritten result."
)


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A question with its rewrites, shown in prompts."""

    question: str
    rewrites: Mapping[str, str]  # strategy -> rewrite
    selected: tuple[str, ...]  # what the adaptive choice takes
    reason: str  # for that choice


GQR = Strategy(
    "gqr", "General Search Rewriting",
    "Rewrite the question into a general query for internet search.",
    "for questions with noise, slang, errors or an unclear intent; it keeps all relevant information.",
)  # fmt: skip
KWR = Strategy(
    "kwr", "Keyword Rewriting",
    "Extract all keywords from the question and separate them with commas, preserving the amount of information as in "
    "the original question.",
    "for questions with several names, dates or terms that documents state literally.",
)  # fmt: skip
PAR = Strategy(
    "par", "Pseudo-Answer Rewriting",
    "Generate an answer for the question, and use the answer to match the real answers from the search engine.",
    "for questions whose answer is phrased in other words than the question, and whose answer you can guess.",
)  # fmt: skip
CCE = Strategy(
    "cce", "Core Content Extraction",
    "Reduce the amount of information in the original question, only extracting the most core content. The rewritten "
    "query should be more brief than Keyword Rewriting.",
    "for questions with more detail than a search needs.",
)  # fmt: skip
DECOMPOSITION = Strategy(
    "decomposition", "Sub-Question Decomposition",
    "Divide the question into the sub-questions that have to be answered first, without repetition, separated by "
    f'"{SEPARATOR.strip()}".',
    "for questions that join several facts, compare things or refer to something by another fact.",
    several=True,
)  # fmt: skip
POOL = {strategy.name: strategy for strategy in (GQR, KWR, PAR, CCE, DECOMPOSITION)}
PAPER = ("gqr", "kwr", "par", "cce")  # the four strategies of the paper

DEMONSTRATIONS = (
    Demonstration(  # Table 5; the decomposition is ours
        "Which city was the site where the armistice agreement officially ending World War I was signed?",
        {
            "gqr": "City where World War I armistice agreement was signed",
            "kwr": "World War I, Armistice, Signing Location",
            "par": "The armistice that ended World War I was signed in the city of Compiègne.",
            "cce": "World War I armistice signing city",
            "decomposition": "Which agreement ended World War I?; Where was the World War I armistice signed?",
        },
        ("gqr", "par"),
        "the question is long but has one fact, so one clean query and a likely answer cover it; keywords and the core "
        "would repeat the first query, and there is nothing to divide.",
    ),
    Demonstration(
        "hey quick one, my kid asked me and i'm stuck lol, who was president when the first moon landing happened??",
        {
            "gqr": "Who was president of the United States during the first Moon landing?",
            "kwr": "who, president, when, first Moon landing, happened",
            "par": "Richard Nixon was president of the United States when Apollo 11 landed on the Moon in July 1969.",
            "cce": "president first Moon landing",
            "decomposition": "When did the first Moon landing happen?; Who was president of the United States in 1969?",
        },
        ("gqr", "cce", "decomposition"),
        "the noise has to go, and the date has to be found before the president; a list of keywords would add nothing "
        "to the core.",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Pool:
    """Strategies by name, and demonstrations that cover them."""

    strategies: Mapping[str, Strategy] = field(default_factory=lambda: dict(POOL))
    demonstrations: tuple[Demonstration, ...] = DEMONSTRATIONS

    @classmethod
    def load(cls, file: Path | None = None) -> Self:
        """This project's pool, with the strategies of a YAML file added or replaced.

        The file holds `strategies: [{name, title, description, guideline, several}]` and, optionally, `demonstrations:
        [{question, rewrites: {name: text}, selected: [name], reason}]`, which then replace this project's.

        Raises:
            MissingInputError: If the file does not exist.
            DataError: If its form is another.
        """
        if file is None:
            return cls()
        if not file.is_file():
            raise MissingInputError(f"pool: {file} does not exist. Give a YAML file with strategies, or omit it.")
        import yaml

        try:
            found = load_yaml(file.read_text(encoding="utf-8"), str(file))
            own = [Strategy(**each) for each in found.get("strategies", [])]
            shown = tuple(
                Demonstration(
                    each["question"],
                    dict(each["rewrites"]),
                    tuple(each.get("selected", each["rewrites"])),
                    each["reason"],
                )
                for each in found.get("demonstrations", [])
            )
            pool = cls({**POOL, **{each.name: each for each in own}}, shown or DEMONSTRATIONS)
            pool.check()
        except (yaml.YAMLError, UnicodeDecodeError, AttributeError, TypeError, KeyError, ValueError) as error:
            problem = f"the key {error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
            raise DataError(
                f"{file} is no pool: {problem}. It holds strategies: [{{name, title, description, guideline}}]."
            ) from error
        return pool

    def check(self) -> None:
        """Check that outputs by these strategies can be told apart, and that the demonstrations are such outputs.

        Raises:
            ValueError: If a field is no text or of several lines, a title holds a colon or is another strategy's, or a
                demonstration names an unknown strategy or shows a rewrite that does not parse.
        """
        titles: dict[str, str] = {REASON: REASON}
        for each in self.strategies.values():
            for key in ("name", "title", "description", "guideline"):
                text = getattr(each, key)
                if not isinstance(text, str) or not text.strip() or len(text.strip().splitlines()) > 1:
                    raise ValueError(f"{key} of the strategy {each.name!r} must be a text of one line, not {text!r}")
            if not isinstance(each.several, bool):
                raise ValueError(f"several of the strategy {each.name!r} must be true or false, not {each.several!r}")
            if ":" in nfkc(each.title) or label_of(each.title) != nfkc(each.title).lower():
                raise ValueError(f"the title {each.title!r} must not have a colon or begin like a list")
            if other := titles.get(label_of(each.title)):
                raise ValueError(f"the title {each.title!r} of {each.name} is that of {other}, too")
            titles[label_of(each.title)] = each.name
        for shown in self.demonstrations:
            for name in [*shown.rewrites, *shown.selected]:
                if name not in self.strategies or name not in shown.rewrites:
                    raise ValueError(
                        f"the demonstration {shown.question!r} has no rewrite by {name!r}, or that is no strategy"
                    )
            for name, text in shown.rewrites.items():
                strategy = self.strategies[name]
                output = parse_output(f"{strategy.title}: {text}", [strategy]) if isinstance(text, str) else None
                if output is None or output.malformed or not output.queries:
                    raise ValueError(
                        f"the demonstration {shown.question!r} has for {name} {text!r}, not a text of one line"
                    )

    def chosen(self, names: Sequence[str]) -> list[Strategy]:
        """The strategies of these names.

        Raises:
            UserError: If a name is unknown, stands twice, or there is none.
        """
        unknown = [name for name in names if name not in self.strategies]
        if unknown or not names or len(set(names)) < len(names):
            wrong = f"contains {unknown[0]!r}" if unknown else "is empty" if not names else "names one twice"
            raise UserError(f"strategies {wrong}; allowed: {', '.join(self.strategies)}, each once.")
        return [self.strategies[name] for name in names]

    @classmethod
    def of_paper(cls) -> Self:
        """The paper's four strategies and its one demonstration, for `printed_prompt`."""
        return cls({name: POOL[name] for name in PAPER}, DEMONSTRATIONS[:1])

    def printed_prompt(self, dialogue: bool = False) -> str:
        """The prompt of Table 5 as printed, of the pool `of_paper`; arguments as in `rewriting_prompt`."""
        chosen = self.chosen(PAPER)
        return self._prompt(
            f"There are now the following four rewriting methods, {_listed(chosen)}. Please apply four rewriting "
            "methods to rewrite the question.", chosen, [], self._rewrites_shown(chosen), dialogue,
        )  # fmt: skip

    def _rewrites_shown(self, chosen: Sequence[Strategy]) -> list[str]:
        """The demonstrations that have a rewrite by each strategy, with these rewrites."""
        whole = [each for each in self.demonstrations if all(strategy.name in each.rewrites for strategy in chosen)]
        return [_shown(each, (f"{s.title}: {each.rewrites[s.name]}" for s in chosen)) for each in whole]

    def rewriting_prompt(self, names: Sequence[str], dialogue: bool = False) -> str:
        """The prompt for a rewrite by each strategy, after Table 5, with `${question}` for the question.

        It differs from `printed_prompt` in the sentence that names the task, in an output format as in Table 1, and in
        a second demonstration.

        Args:
            names: Of the strategies.
            dialogue: Whether earlier turns are shown, with `${history}` for them; not in the paper.
        """
        chosen = self.chosen(names)
        return self._prompt(
            f"There are now the following {len(chosen)} rewriting methods, {_listed(chosen)}. Please apply all of them "
            "to rewrite the question.",
            chosen,
            ["### Output Format ###\nEach output line should hold one rewriting method, starting with its name, "
             "followed by a colon and the rewritten result."],
            self._rewrites_shown(chosen), dialogue,
        )  # fmt: skip

    def selection_prompt(self, names: Sequence[str], dialogue: bool = False) -> str:
        """The prompt that selects strategies and rewrites by them (Table 1); arguments as in `rewriting_prompt`."""
        chosen = self.chosen(names)
        examples = []
        for each in self.demonstrations:
            taken = [s for s in chosen if s.name in each.selected and s.name in each.rewrites]
            lines = [f"{s.title}: {each.rewrites[s.name]}" for s in taken]
            examples += [_shown(each, [*lines, f"{REASON}: {each.reason}"])] * bool(lines)
        guidelines = "\n".join(["### Guidelines ###", *(f"{s.title}: {s.guideline}" for s in chosen)])
        form = (
            "### Output Format ###\nEach output line should list the selected rewriting method, starting with its name "
            "followed by the rewritten result.\nThe final line should explain the selection rationale for these "
            "methods and the exclusion of "
            f'others, beginning with "{REASON}: ".'
        )
        return self._prompt(
            f"There are now the following {len(chosen)} rewriting methods, {_listed(chosen)}. Based on the "
            "characteristics of the query, please select some of the rewriting methods to rewrite the question.",
            chosen, [guidelines, form], examples, dialogue,
        )  # fmt: skip

    @staticmethod
    def _prompt(
        task: str, chosen: Sequence[Strategy], further: Sequence[str], examples: Sequence[str], dialogue: bool
    ) -> str:
        parts = [
            "### Instruction ###\nYou will receive a user's question that requires retrieving relevant content "
            f"through internet search to provide an answer. {task}",
            *(f"### {strategy.title} ###\n{strategy.description}" for strategy in chosen),
            *further,
            *(["### Example ###\n" + "\n\n".join(examples)] if examples else []),
        ]
        text = "\n\n".join(parts).replace("$", "$$")
        turns = f"\n\n{DIALOGUE}\n${{history}}" if dialogue else ""
        return (
            f"{text}{turns}\n\nBegin! Only output the final result without any additional content. Do not generate any "
            "other unrelated content.\nQuestion: ${question}\nOutput:"
        )


def _shown(demonstration: Demonstration, lines: Iterable[str]) -> str:
    return "\n".join([f"Question: {demonstration.question}", "Output:", *lines])


def _listed(chosen: Sequence[Strategy]) -> str:
    return ", ".join(strategy.title for strategy in chosen)
