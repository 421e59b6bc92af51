"""Templates and noise words of the rephrased questions, in disjoint sets for the three splits (see `phrases.py`).

They are of chat style, stories and partial descriptions.
"""

from datamodules.world.phrases import Phrases
from datamodules.world.word_lists import words

# Noisy questions: chat words before and after the question, words of another language or of hesitation inside it.
CHAT_OPENINGS = Phrases(
    train=("yo", "hey guys", "quick q", "hola", "oye amigos", "ok so", "bro"),
    validation=("hiya", "salut", "heya folks", "dis"),
    test=("moin", "servus leute", "arre yaar", "sup fam", "bhai", "psst"),
)
CHAT_ENDINGS = Phrases(
    train=("thx", "lol", "gracias", "por favor", "asap", "idk", "need it 4 homework"),
    validation=("merci", "cheers mate", "svp", "tbh"),
    test=("bitte", "danke", "batao na", "tysm", "fr", "haan", "kthxbye"),
)
INSERTED = Phrases(
    train=("like", "uh", "este", "pues", "digamos"),
    validation=("erm", "euh", "genre", "quoi"),
    test=("yaani", "matlab", "halt", "eben", "umm"),
)
SPELLINGS = {  # chat spellings of frequent words; none is a typo of `noise.typo`, which all splits share
    "train": {
        "what": "wat",
        "who": "hoo",
        "which": "wichh",
        "where": "whair",
        "the": "da",
        "is": "iz",
        "was": "wuz",
        "person": "prsn",
        "city": "citty",
        "year": "yeer",
        "me": "meh",
    },
    "validation": {
        "what": "whut",
        "who": "whoo",
        "place": "plaice",
        "the": "thee",
        "is": "iss",
        "was": "waz",
        "can": "cn",
        "you": "u",
        "year": "yearr",
        "say": "sey",
    },
    "test": {
        "what": "wht",
        "who": "whu",
        "which": "wch",
        "the": "teh",
        "is": "izz",
        "was": "ws",
        "town": "twn",
        "please": "plz",
        "year": "yr",
        "name": "nme",
        "from": "frm",
        "did": "didd",
    },
}

# Over-long questions: a story before the question, the words that lead to it, an ending.  {a}, {b} people, {c} city,
# {w} works, {k} company; none of them has to do with the question.  {t} topic words, {v} relative, {d} time.
RELATIVES = Phrases(
    train=("aunt", "cousin", "brother-in-law", "grandmother"),
    validation=("neighbour", "godfather"),
    test=("sister", "uncle", "flatmate", "stepmother"),
)
TIMES = Phrases(
    train=("Sunday", "week", "spring"),
    validation=("winter", "Tuesday"),
    test=("Friday", "month", "autumn"),
)
STORIES = Phrases(
    train=(
        "Last {d} my {v} dragged me to {c}, where {a} was giving a talk about {t}, and we missed the bus home.",
        "I had been reading {w} in the kitchen when the phone rang, and it was {a} with a long complaint about {k}.",
        "My {v} collects everything about {t} and keeps it in boxes from {k}, which drives the whole family mad.",
        "At the party {a} and {b} argued for an hour whether {w} is any good, and then the lights went out.",
        "We were on holiday near {c} last {d}, it rained without end, and there was nothing to do but play cards.",
        "When I was small we had a poster of {w} above the sofa, next to a calendar with pictures of {t}.",
        "A letter from {k} arrived this morning, addressed to {b}, and I still have no idea why I got it.",
        "The dentist told me that {a} once bought a house in {c} only for the garden, imagine that.",
    ),
    validation=(
        "Back in {d} a colleague lost a suitcase in {c}, and {a} found it two days afterwards behind a shop of {k}.",
        "Our {v} never stops chatting about {t}, even at breakfast, even while {w} is on.",
        "The other evening {a} called {b} at midnight, laughing, with a story about a goat and a bicycle.",
        "Somebody at the office hung up a picture of {c}, and ever since the printer of {k} refuses to work.",
    ),
    test=(
        "This {d} our {v} moved out of {c}, and while carrying crates up the stairs {a} sang songs about {t}.",
        "There was a long queue at the bakery, so {b} started to explain the plot of {w} to complete strangers.",
        "A friend used to work for {k}, hated every minute, and now breeds rabbits together with {a}.",
        "Our {v} swears that nothing beats {t}, not even an evening with {w} and a pot of soup.",
        "Every {d} the pub across the road holds a quiz, and {a} always wins against {b}, who sulks for days.",
        "The train to {c} broke down halfway, and the conductor handed out biscuits made by {k}.",
    ),
)
LEADS = Phrases(
    train=("Anyway, what I want to know: {q}", "But the thing I came here for is this: {q}", "So my question is: {q}"),
    validation=("Well, to get to the point: {q}", "Now then, I wonder: {q}"),
    test=("Long story short: {q}", "None of that matters, though. {q}", "In the end one thing kept us awake: {q}"),
)
ENDINGS = Phrases(
    train=(
        "Sorry for rambling, I have not slept since {a} came over.",
        "My {v} says {k} would know, but they never pick up.",
        "Thanks a lot, and greetings from {c}!",
        "I promise to stop thinking of {t} after that.",
    ),
    validation=(
        "Excuse the digression, {b} distracted me.",
        "Warm regards, also to everyone in {c}.",
    ),
    test=(
        "Apologies, this got longer than {w}.",
        "If it helps, {a} had no clue either.",
        "Cheers, I owe you a ticket to {c}.",
    ),
)

# Under-specified questions: a description of the subject in place of its mention, and only the type of what is asked
# for in place of the relation. {f} the first word of the name that is not an article, {l} the last, {r} region, {t}
# profession or device type.
PARTIAL_MENTIONS = {
    "person": Phrases(
        train=("{l}", "some {l}", "{f} the {t}"),
        validation=("a certain {l}", "{f}, a {t}"),
        test=("somebody named {l}", "{t} {f}"),
    ),
    "city": Phrases(
        train=("that {r} city", "a city in {r}"),
        validation=("a place in {r}",),
        test=("that {r} town", "a town somewhere in {r}"),
    ),
    "film": Phrases(
        train=("that {l} film", "the {f} film"),
        validation=("a film with {l}", "a film with {f}"),
        test=("some {l} feature", "some {f} feature"),
    ),
    "book": Phrases(
        train=("that {l} novel", "the {f} novel"),
        validation=("a book with {l}", "a book with {f}"),
        test=("some {l} volume", "some {f} volume"),
    ),
    "band": Phrases(
        train=("that {l} band", "the {f} band"),
        validation=("musicians with {l}", "musicians with {f}"),
        test=("some {l} group", "some {f} group"),
    ),
    "company": Phrases(train=("{f}", "the {f} company"), validation=("a certain {f}",), test=("some firm {f}",)),
    "product": Phrases(train=("the {f}", "the {f} {t}"), validation=("a device {f}",), test=("some model by {f}",)),
}
ASKED_TYPES = {  # what a relation leads to, by its type alone
    "person": Phrases(train=("the person of {x}",), validation=("the one for {x}",), test=("whoever goes with {x}",)),
    "city": Phrases(train=("the city of {x}",), validation=("the place for {x}",), test=("the town to do with {x}",)),
    "company": Phrases(
        train=("the company of {x}",), validation=("the enterprise for {x}",), test=("the firm to do with {x}",)
    ),
    "year": Phrases(train=("the year of {x}",), validation=("the year for {x}",), test=("the year to do with {x}",)),
    "river": Phrases(
        train=("the river of {x}",), validation=("the stream for {x}",), test=("the waterway to do with {x}",)
    ),
}
ELLIPSES = Phrases(  # questions without a verb
    train=("{np}?", "and {np}?", "{np}, anyone?"),
    validation=("so {np}?", "hm, {np}?"),
    test=("{np} please", "looking for {np}"),
)

NOISE_WORDS = {
    split: {
        word for one in (CHAT_OPENINGS, CHAT_ENDINGS, INSERTED) for phrase in one.of(split) for word in words(phrase)
    }
    | set(SPELLINGS[split].values())
    | {word for one in (RELATIVES, TIMES) for word in one.of(split)}
    for split in SPELLINGS
}
