"""Rephrases the world's questions in three ways that make them hard to search with, each with one right answer.

    noisy            chat style, typos, words of another language inside the question
    overlong         the question within a story about other entities
    underspecified   a part of the subject's name or its region instead of the whole name, and the type of what is asked
                     for instead of the relation; its words are common, but only one fact of the whole world fits

A base question is rephrased once, so that the rephrased questions of a split are independent of each other. The source
of randomness is separate: no other part of the world depends on it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from datamodules.world import rephrasing_phrases as phrases
from datamodules.world.contexts import DistractorSampler
from datamodules.world.entities import Entity
from datamodules.world.facts import RELATIONS
from datamodules.world.noise import misspell, typo
from datamodules.world.passages import WrittenPassage
from datamodules.world.phrases import SPLITS
from datamodules.world.questions import GeneratedQuestion, QuestionGenerator, contains
from datamodules.world.rewriting import Clean, rewrites
from datamodules.world.world import CONTEXT_SIZE, SPLIT_SHARES, QuestionWithContext, World, WorldConfig

SINGLE_SHARE = 0.6  # share of single-hop base questions
NAME_TYPO = 0.75  # share of a noisy question's names with a typo
CHAINS = ("single", "bridge")  # kinds that can be under-specified
COMMON = 9  # passages, at least, that contain each word of a description, so that a search for it finds too many
TRIES = 6  # to misspell a name
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class RephrasedQuestion:
    """A rephrased question with a context drawn for it."""

    kind: str  # noisy, overlong or underspecified
    question: str
    rewrites: dict[str, str]  # by strategy; see `rewriting`
    source: str  # id of the base question in the other files
    base: QuestionWithContext


def rephrase(world: World, config: WorldConfig) -> dict[str, list[RephrasedQuestion]]:
    """The rephrased questions of each split, in equal parts of the three kinds; fewer if the world is too small."""
    known = Known(world.passages)
    return {
        split: Rephraser(world, split, known, Random(f"{config.seed}/rephrased/{split}")).rephrase(
            round(config.rephrased * SPLIT_SHARES[split])
        )
        for split in SPLITS
    }


class Known:
    """Which fact a description can mean, and which word of a name a misspelt one, in the whole world."""

    def __init__(self, passages: dict[Entity, WrittenPassage]) -> None:
        self.holding: Counter[str] = Counter()  # word -> passages that contain it
        self.facts: dict[tuple[str, str], list[tuple[Entity, str, set]]] = defaultdict(list)  # by kind and target
        self.spelled: dict[str, set[str]] = defaultdict(set)  # a name's word, also without one of its letters -> words
        for entity, passage in passages.items():
            self.holding.update(set(_WORD.findall(f"{passage.title} {passage.text}".lower())))
            words = set(entity.name.split())
            traits = {("r", entity.region), ("t", entity.category)} | {("n", w) for w in words}
            for relation in entity.facts:
                self.facts[entity.kind, RELATIONS[relation].target].append((entity, relation, traits))
            for other in entity.referred_by:  # "the person of a city" must not mean someone born there
                if other not in entity.facts.values():
                    self.facts[entity.kind, other.kind].append((entity, "", traits))
            for word in map(str.lower, words):
                for form in _deletions(word):
                    self.spelled[form].add(word)

    def meant(self, kind: str, target: str, shown: dict[str, str]) -> list[tuple[Entity, str]]:
        """The facts that a question can ask for, as pairs of entity and relation.

        The relation is "" for a fact with the entity as its object. The facts link an entity of a kind that fits a
        description, with words anywhere in its name, to something of the type `target`.
        """
        traits = {("n" if key in ("f", "l") else key, value) for key, value in shown.items()}
        return [(entity, relation) for entity, relation, own in self.facts[kind, target] if traits <= own]

    def rarest(self, shown: dict[str, str]) -> int:
        """The number of passages that contain the rarest word of a description."""
        return min(self.holding[word] for value in shown.values() for word in value.lower().split())

    def near(self, wrong: str) -> set[str]:
        """The words of names that differ from a word by about one letter.

        The word itself is among them if it is one.
        """
        return {word for form in _deletions(wrong.lower()) for word in self.spelled.get(form, ())}


class Rephraser:
    """Rephrases the questions of one split with the templates and noise words of that split.

    Args:
        world: The world.
        split: Name of the split.
        known: The whole world, against which names and descriptions are checked.
        random: Source of randomness.
    """

    def __init__(self, world: World, split: str, known: Known, random: Random) -> None:
        self.world, self.split, self.known, self.random = world, split, known, random
        self.entities = world.entities[split]
        self.generator = QuestionGenerator(split, self.entities, world.passages, random)
        self.distractors = DistractorSampler(self.entities, world.passages)
        self.kinds: dict[str, Callable[[GeneratedQuestion], tuple[str, Clean] | None]] = {
            "noisy": lambda one: (self._noisy(one), _cleaned(one)),
            "overlong": lambda one: (self._overlong(one), _cleaned(one)),
            "underspecified": self._underspecified,
        }

    def rephrase(self, count: int) -> list[RephrasedQuestion]:
        """`count` questions in random order."""
        wanted = {kind: (count + n) // len(self.kinds) for n, kind in enumerate(self.kinds)}
        made: list[RephrasedQuestion] = []
        for source, base in self._bases(count):
            for kind in sorted(wanted, key=lambda name: -wanted[name]):
                found = self.kinds[kind](base.generated) if wanted[kind] else None
                if found is not None:
                    wanted[kind] -= 1
                    context = self.distractors.context(base.generated, CONTEXT_SIZE, self.random)
                    text, clean = found
                    made.append(
                        RephrasedQuestion(
                            kind, text, rewrites(base.generated, self.split, clean), source,
                            QuestionWithContext(base.generated, context),
                        )
                    )  # fmt: skip
                    break
        self.random.shuffle(made)
        return made

    def _bases(self, count: int) -> Iterable[tuple[str, QuestionWithContext]]:
        """Base questions with their ids: `count` at the share of single-hop questions, then the remaining ones."""
        singles = [(f"{self.split}_single_{n:05d}", one) for n, one in enumerate(self.world.singles[self.split])]
        others = [(f"{self.split}_{n:05d}", one) for n, one in enumerate(self.world.questions[self.split])]
        self.random.shuffle(singles)
        self.random.shuffle(others)
        cut = round(count * SINGLE_SHARE), count - round(count * SINGLE_SHARE)
        first, rest = singles[: cut[0]] + others[: cut[1]], singles[cut[0] :] + others[cut[1] :]
        self.random.shuffle(first)
        return first + rest

    def _choice(self, one: phrases.Phrases) -> str:
        return self.random.choice(one.of(self.split))

    def _noisy(self, one: GeneratedQuestion) -> str:
        """Chat words around the question, one inside it, chat spellings, typos in its words and in its names."""
        random = self.random
        names = [re.escape(step.entity.name) for step in one.steps if contains(one.clean, step.entity.name)]
        between = re.split(rf"(?<!\w)({'|'.join(names)})(?!\w)", one.clean) if names else [one.clean]
        spelt = {word: other for word, other in phrases.SPELLINGS[self.split].items() if random.random() < 0.7}
        for place, text in enumerate(between):
            if place % 2:
                between[place] = self._misspelt(text) if random.random() < NAME_TYPO else text
            else:
                text = typo(text, random) if random.random() < 0.7 else text
                between[place] = re.sub(
                    r"(?<![\w'])[A-Za-z]+(?![\w'])", lambda word: spelt.get(word.group().lower(), word.group()), text
                )
        first, space, rest = between[0].partition(" ")
        between[0] = f"{first} {self._choice(phrases.INSERTED)} {rest}" if space else between[0]
        text = "".join(between)
        text = text.rstrip("?.") + random.choice(("", "", "??", "?")) if random.random() < 0.8 else text
        text = text.lower() if random.random() < 0.7 else text
        if random.random() < 0.8:
            text = f"{self._choice(phrases.CHAT_OPENINGS)} {text}"
        return f"{text} {self._choice(phrases.CHAT_ENDINGS)}" if random.random() < 0.8 else text

    def _misspelt(self, name: str) -> str:
        """The name with a typo in one word, if no other word of a name in this world is as near to the result."""
        found = [word for word in re.finditer(r"(?<!\w)[A-Za-z]{5,}(?!\w)", name)]
        for _ in range(TRIES if found else 0):
            word = self.random.choice(found)
            wrong = misspell(word.group(), self.random.randrange(1, len(word.group()) - 2), self.random)
            if self.known.near(wrong) == {word.group().lower()} != {wrong.lower()}:
                return name[: word.start()] + wrong + name[word.end() :]
        return name

    def _overlong(self, one: GeneratedQuestion) -> str:
        """The clean question after one or two sentences, before one, about entities that the facts do not touch."""
        random = self.random
        told = [one.answer, *(text for step in one.steps for text in (step.entity.name, step.answer))]
        forbidden = {word for text in told for word in _words(text)} - {"the", "of"}
        free = [e for e in random.sample(self.entities, min(40, len(self.entities))) if not forbidden & _words(e.name)]
        values = {"q": one.clean, "v": self._choice(phrases.RELATIVES), "d": self._choice(phrases.TIMES)}
        people = [e.name for e in free if e.kind == "person"]
        works = [e.name for e in free if e.kind in ("film", "book", "band")]
        cities, companies = ([e.name for e in free if e.kind == kind] for kind in ("city", "company"))
        themes = [topic for e in free for topic in e.theme if not forbidden & _words(topic)]
        given = (("a", people[:1]), ("b", people[1:]), ("w", works), ("c", cities), ("k", companies), ("t", themes))
        values |= {key: random.choice(some) for key, some in given if some}
        fits = [s for s in phrases.STORIES.of(self.split) if set(re.findall(r"{(\w)}", s)) <= values.keys()]
        ends = [s for s in phrases.ENDINGS.of(self.split) if set(re.findall(r"{(\w)}", s)) <= values.keys()]
        before = random.sample(fits, min(len(fits), random.choice((1, 2, 2))))
        return " ".join([*before, self._choice(phrases.LEADS), *random.sample(ends, random.randrange(2))]).format(
            **values
        )

    def _underspecified(self, one: GeneratedQuestion) -> tuple[str, Clean] | None:
        """A description of the subject that only one fact of the world fits, as a phrase and as a complete question.

        The phrase has no verb. None if there is none that says neither the name nor a bridge entity nor the answer.
        """
        if one.kind not in CHAINS:
            return None
        subject, relations = one.steps[0].entity, [step.relation for step in one.steps]
        hidden = [
            subject.name,
            one.answer,
            *(word for s in one.steps[1:] for word in s.entity.name.split() if word != "The"),
        ]
        described = []
        for template in phrases.PARTIAL_MENTIONS[subject.kind].of(self.split):
            shown = {key: _shown(subject)[key] for key in re.findall(r"{(\w)}", template)}
            described.append((self.known.rarest(shown), template, shown))
        for holding, template, shown in sorted(described, key=lambda one: -one[0]):
            asked = self._choice(phrases.ASKED_TYPES[RELATIONS[relations[0]].target])
            phrase = self.generator.noun_phrase(relations[1:], asked.format(x=template.format(**shown)))
            unique = self.known.meant(subject.kind, RELATIONS[relations[0]].target, shown) == [(subject, relations[0])]
            if holding >= COMMON and unique and not any(contains(phrase, word) for word in hidden):
                text = self._choice(phrases.ELLIPSES).format(np=phrase)
                full = self.generator.frame(RELATIONS[relations[-1]].target, phrase)
                mention, names = template.format(**shown), tuple(shown[key] for key in shown if key != "t")
                return text, Clean(full, names, mention, asked.format(x=mention))
        return None


def _cleaned(one: GeneratedQuestion) -> Clean:
    return Clean(one.clean, tuple(step.entity.name for step in one.steps if contains(one.clean, step.entity.name)))


def _words(text: str) -> set[str]:
    return set(text.lower().split())


def _shown(entity: Entity) -> dict[str, str]:
    """The values of the place holders of `PARTIAL_MENTIONS`."""
    name = entity.name.removeprefix("The ").split()
    return {"f": name[0], "l": name[-1], "r": entity.region, "t": entity.category}


def _deletions(word: str) -> set[str]:
    """The word, and the word without one of its letters: two words share one if they differ by one letter or a swap."""
    return {word, *(word[:place] + word[place + 1 :] for place in range(len(word)))}
