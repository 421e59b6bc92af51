"""Rewrites of the rephrased questions by every strategy of the pool, from the facts that they ask for.

    gqr             what a rewriter without passages can restore: the clean question, or a description in a full
                    sentence
    kwr             its names and content words, in order, separated by commas
    par             its facts as passages of the split state them; what is asked for is named by its kind ("a city"),
                    because a rewriter cannot know it. The relation that an under-specified question leaves out is
                    stated: only one fits
    cce             its names, each with the keyword beside it if that omits something; else the names alone
    decomposition   a question for each hop, the last one for the whole; a comparison first asks for what is compared

Everything is said with the templates that the question itself uses, or the first of its split, so that splits share
none and no source of randomness is needed.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from datamodules.world.facts import RELATIONS
from datamodules.world.frames import FRAMES, KIND_NOUNS, MENTIONS, NAMESAKE_MENTIONS, PERSON_FRAMES
from datamodules.world.passages import tidy
from datamodules.world.phrases import Phrases
from datamodules.world.questions import GeneratedQuestion, contains
from models.dmqr.rewrite_outputs import SEPARATOR

NAMED = {"person": "a person", "city": "a city", "company": "a company", "year": "a year", "river": "a river"}
APPEARED = Phrases(  # the fact that compares films, books and bands
    train=("{s} came out in {o}",), validation=("{s} was first heard of in {o}",), test=("{s} appeared in {o}",)
)
_STOP = frozenset(  # words that say nothing about what is searched for, in all splits
    ["a", "about", "an", "and", "any", "anyone", "are", "around", "as", "at", "be", "both", "by", "can", "could", "did",
        "do", "does", "first", "for", "from", "had", "has", "have", "her", "hm", "his", "how", "i", "if", "in", "into",
        "is", "it", "its", "just", "like", "look", "looking", "me", "might", "my", "name", "of", "off", "on", "one",
        "or", "out", "please", "say", "single", "so", "some", "somebody", "somewhere", "state", "tell", "that", "the",
        "their", "them", "these", "they", "this", "those", "to", "under", "up", "was", "we", "were", "what", "when",
        "where", "whether", "which", "who", "whoever", "whom", "whose", "why", "will", "with", "you"]
)  # fmt: skip
_WORD = re.compile(r"[\w'-]+")


@dataclass(frozen=True, slots=True)
class Clean:
    """A question without the parts that make it hard to search with, and its name for the first entity of a chain."""

    text: str
    names: tuple[str, ...]  # in the text
    subject: str = ""  # a description that stands for the name; "" if it has the name
    asked: str = ""  # noun phrase for what the first relation leads to; "" if it is one of the relation's


def rewrites(one: GeneratedQuestion, split: str, clean: Clean) -> dict[str, str]:
    """The rewrites of a question by strategy."""
    keywords = _keywords(clean)
    return {
        "gqr": clean.text,
        "kwr": ", ".join(text for text, _ in keywords),
        "par": _pseudo_answer(one, split, clean),
        "cce": _core(keywords),
        "decomposition": SEPARATOR.join(dict.fromkeys(text.rstrip(".") for text in _sub_questions(one, split, clean))),
    }


def _keywords(clean: Clean) -> list[tuple[str, bool]]:
    """Names, and runs of content words between them, in order and once each; with each whether it is a name."""
    names = "|".join(map(re.escape, sorted(clean.names, key=len, reverse=True)))
    found: dict[str, bool] = {}
    for place, text in enumerate(re.split(rf"(?<!\w)({names})(?!\w)", clean.text)):
        if place % 2:
            found[text] = True
            continue
        run: list[str] = []
        for word in [*_WORD.findall(text), "the"]:
            if word.lower() not in _STOP:
                run.append(word)
            elif run:
                found.setdefault(" ".join(run), False)
                run = []
    return list(found.items())


def _core(keywords: Sequence[tuple[str, bool]]) -> str:
    """The names, each with the keyword after it, or before it if there is none, if that omits something."""
    kept = names = {text for text, is_name in keywords if is_name}
    for place in (place for place, (_, is_name) in enumerate(keywords) if is_name):
        near = [keywords[n] for n in (place + 1, place - 1) if 0 <= n < len(keywords) and not keywords[n][1]]
        kept = kept | {text for text, _ in near[:1]}
    kept = names if len(kept) == len(keywords) else kept
    return " ".join(text for text, _ in keywords if text in kept)


def _pseudo_answer(one: GeneratedQuestion, split: str, clean: Clean) -> str:
    """A sentence for each fact, with kinds in the place of what is asked for."""
    said = []
    for hop, step in enumerate(one.steps):
        known = hop == 0 or one.kind.startswith("comparison")
        subject = (clean.subject or step.entity.name) if known else _noun(RELATIONS[one.steps[hop - 1].relation].target)
        said.append(_statement(step.relation, split, subject))
    if one.kind == "comparison_fact":
        said.append(_statement(_asked_relation(one, split), split, _noun(one.steps[-1].entity.kind)))
    return " ".join(tidy(f"{sentence}.") for sentence in said)


def _statement(relation: str, split: str, subject: str) -> str:
    """The first statement of a relation that names its subject."""
    if relation == "year":
        (template,), target = APPEARED.of(split), "year"
    else:
        target, templates = RELATIONS[relation].target, RELATIONS[relation].statements.of(split)
        template = next((each for each in templates if re.search("{[sp]}", each)), f"{{s}}: {templates[0]}")
    said = template.format(s=subject, p=f"{subject}'s", o=NAMED[target])
    return re.sub(r"\bthe (river )?a river", "a river", said)


def _noun(kind: str) -> str:
    return KIND_NOUNS.get(kind, f"the {kind}")


def _asked_relation(one: GeneratedQuestion, split: str) -> str:
    """The relation of a `comparison_fact` from the denoted entity to the answer, in the words of the question."""
    facts = one.steps[-1].entity.facts
    fitting = [name for name, value in facts.items() if getattr(value, "name", None) == one.answer]
    for name in fitting:
        relation = RELATIONS[name]
        for template in (*relation.asks.of(split), *relation.noun_phrases.of(split)):
            words = re.escape(template.rstrip("?")).replace(re.escape("{x}"), ".+")
            if re.search(words, one.clean, re.IGNORECASE):
                return name
    raise AssertionError(f"no relation of {one.clean!r} has the answer")


def _sub_questions(one: GeneratedQuestion, split: str, clean: Clean) -> list[str]:
    if one.kind.startswith("comparison"):
        asked = [step.question for step in one.steps]
        return [*asked, clean.text] if one.kind == "comparison_fact" else asked
    questions = []
    what = clean.subject or _mention(one, split)
    for hop, step in enumerate(one.steps[:-1]):
        relation = RELATIONS[step.relation]
        rendered = [template.format(x=what) for template in relation.noun_phrases.of(split)]
        what = clean.asked if hop == 0 and clean.asked else _said(rendered, clean.text)
        frames = PERSON_FRAMES if relation.target == "person" else FRAMES
        questions.append(tidy(frames.of(split)[0].format(np=what)))
    return [*questions, clean.text]


def _mention(one: GeneratedQuestion, split: str) -> str:
    """How the question mentions its first entity."""
    entity = one.steps[0].entity
    table = NAMESAKE_MENTIONS if entity.namesake is not None else MENTIONS
    if entity.kind not in table:
        return entity.name
    templates = table[entity.kind].of(split)
    return _said([each.format(n=entity.name, y=entity.year, r=entity.region) for each in templates], one.clean)


def _said(phrases: Collection[str], text: str) -> str:
    """The longest of the phrases that the text contains."""
    return max((phrase for phrase in phrases if contains(text, phrase.rstrip(","))), key=len)
