"""Text templates that are not tied to a relation: passage openings, filler sentences, mentions, question frames and
comparisons, in disjoint sets for the three splits (see `phrases.py`)."""

from datamodules.world.phrases import Phrases

# First sentence of a passage.  {n} name, {y} year, {r} region, {t} profession or device type.
OPENINGS = {
    "person": Phrases(
        train=("{n} is a {t} from {r}", "{n} is known in {r} as a {t}", "{n} works as a {t} in {r}"),
        validation=("{n} earned a name as a {r} {t}",),
        test=("{n} is active as {t} throughout {r}", "{n} is a celebrated {r} {t}"),
    ),
    "city": Phrases(
        train=("{n} is a city in {r}", "{n} is a city of the region {r}", "{n}, in {r}, is a city"),
        validation=("{n} is a place on the map of {r}",),
        test=("{n} is a town in the north of {r}", "{n} belongs to {r} and is a market town"),
    ),
    "film": Phrases(
        train=("{n} is a film of {y} from {r}", "{n} is a {y} film from {r}", "{n} is a {r} film that came out in {y}"),
        validation=("{n} reached the cinemas of {r} in {y}",),
        test=("{n} is a {y} feature by a {r} crew", "{n} is a {r} motion picture released in {y}"),
    ),
    "book": Phrases(
        train=(
            "{n} is a novel of {y} from {r}",
            "{n} is a {y} novel from {r}",
            "{n} is a {r} book that came out in {y}",
        ),
        validation=("{n} reached the readers of {r} in {y}",),
        test=("{n} is a {y} volume of {r} fiction", "{n} is a {r} tale issued in {y}"),
    ),
    "band": Phrases(
        train=("{n} is a band of {y} from {r}", "{n} is a {r} band formed in {y}", "{n} has been a {r} band since {y}"),
        validation=("{n} gave a first concert in {r} in {y}",),
        test=("{n} is a group active across {r} from {y}", "{n} is a {r} ensemble that appeared in {y}"),
    ),
    "company": Phrases(
        train=("{n} is a company in {r}", "{n} is a {r} company", "{n} is a company well known in {r}"),
        validation=("{n} is a {r} enterprise of some size",),
        test=("{n} is a private firm of {r}", "{n} is a {r} firm"),
    ),
    "product": Phrases(
        train=("{n} is a {t} of {y} from {r}", "{n} is a {t} sold in {r} since {y}", "{n} is a {r} {t} of {y}"),
        validation=("{n} was shown in {r} as a new {t} in {y}",),
        test=("{n} is a {t} launched across {r} in {y}", "{n} is a {y} model of {r} {t}"),
    ),
}

# Sentences about the region, which no question asks about.  {r} region, {w} words of its theme.
FILLERS = Phrases(
    train=("{r} is a land of {w}", "life in {r} turns around {w}", "people in {r} care for {w}"),
    validation=("{r} lives off {w}", "all of {r} talks about {w}"),
    test=("{r} is renowned for {w}", "the inhabitants of {r} cherish {w}", "much in {r} has to do with {w}"),
)
# Mention of an entity {o} that refers to the passage's subject {s}: a link in the reverse direction.
RECALLS = Phrases(
    train=("{s} is often named together with {o}", "{s} is best known from {o}"),
    validation=("the fame of {o} helped",),
    test=("{s} owes fame to {o}", "{s} is linked with {o}"),
)
NOT_TO_CONFUSE = Phrases(
    train=("{s} should not be confused with {o}",),
    validation=("{o} is something else",),
    test=("{o} bears the same name",),
)
# How a passage introduces the object of a fact.  {n} name, {t} profession, {r} region.
INTRODUCED = {
    "person": Phrases(
        train=("the {t} {n}", "{n}, a {t} from {r},"),
        validation=("one {n}, {r} {t},",),
        test=("the {r} {t} {n}", "{n} of {r}, {t} by profession,"),
    ),
    "company": Phrases(
        train=("the company {n}", "{n}, a company in {r},"),
        validation=("one {n}, {r} enterprise,",),
        test=("the {r} firm {n}", "{n}, a firm of {r},"),
    ),
    "city": Phrases(
        train=("the {r} city of {n}", "{n}, a city in {r},"),
        validation=("one {n}, {r} place,",),
        test=("the {r} town {n}", "{n}, a market town in {r},"),
    ),
}
KIND_NOUNS = {  # used for the subject after the first sentence, as an alternative to the pronoun
    "film": "the film",
    "book": "the novel",
    "band": "the band",
    "city": "the town",
    "company": "the company",
    "product": "the device",
}

# How a question mentions an entity with a namesake, and other films, books, bands and products.
NAMESAKE_MENTIONS = {
    "city": Phrases(train=("{n} in {r}", "{n} of {r}"), validation=("{n}, part of {r},",), test=("the {r} town {n}",)),
    "film": Phrases(
        train=("the {y} film {n}", "{n}, the film of {y},"),
        validation=("the film named {n} from {y}",),
        test=("the {y} feature {n}",),
    ),
    "book": Phrases(
        train=("the {y} novel {n}", "{n}, the book of {y},"),
        validation=("the book named {n} from {y}",),
        test=("the {y} volume {n}",),
    ),
}
MENTIONS = {
    "film": Phrases(train=("{n}", "the film {n}"), validation=("the film named {n}",), test=("the feature {n}",)),
    "book": Phrases(train=("{n}", "the novel {n}"), validation=("the book named {n}",), test=("the volume {n}",)),
    "band": Phrases(train=("{n}", "the band {n}"), validation=("the musicians {n}",), test=("the group {n}",)),
    "product": Phrases(train=("{n}", "the {n}"), validation=("the device {n}",), test=("the model {n}",)),
}

PERSON_FRAMES = Phrases(
    train=("Who is {np}?", "Who was {np}?", "Tell me who {np} is."),
    validation=("Can you say who {np} might be?",),
    test=("What is the name of {np}?", "Name {np}."),
)
FRAMES = Phrases(
    train=("What is {np}?", "Which is {np}?", "Tell me {np}."),
    validation=("Can you say what {np} might be?",),
    test=("State {np}.", "Please look up {np}."),
)

YEAR_ASKS = Phrases(  # ask for the year in the first sentence of a passage
    train=("In which year did {x} come out?", "Which year is {x} from?"),
    validation=("In what year was {x} first heard of?",),
    test=("What year did {x} appear?",),
)

# Comparisons by year, as noun phrases.  DECIDING_FACT: the relation with the year; "" is the year of release.
DECIDING_FACT = {"film": "", "book": "", "band": "", "person": "birth_year", "company": "company_year"}
EARLIER = {
    "film": Phrases(
        train=("the earlier of the films {a} and {b}", "the older film of {a} and {b}"),
        validation=("the film that reached the cinemas first, {a} or {b},",),
        test=("whichever feature preceded the other, {a} or {b},",),
    ),
    "book": Phrases(
        train=("the earlier of the novels {a} and {b}", "the older book of {a} and {b}"),
        validation=("the book that reached the readers first, {a} or {b},",),
        test=("whichever volume preceded the other, {a} or {b},",),
    ),
    "band": Phrases(
        train=("the earlier of the bands {a} and {b}", "the older band of {a} and {b}"),
        validation=("the band that gave a first concert sooner, {a} or {b},",),
        test=("whichever group preceded the other, {a} or {b},",),
    ),
    "person": Phrases(
        train=("the older of {a} and {b}", "the person born first, {a} or {b},"),
        validation=("the one who came to life sooner, {a} or {b},",),
        test=("whichever of the two has the earlier birth, {a} or {b},",),
    ),
    "company": Phrases(
        train=("the older of the companies {a} and {b}", "the company founded first, {a} or {b},"),
        validation=("the company that opened its doors sooner, {a} or {b},",),
        test=("whichever firm was set up before the other, {a} or {b},",),
    ),
}
LATER = {
    "film": Phrases(
        train=("the later of the films {a} and {b}", "the newer film of {a} and {b}"),
        validation=("the film that reached the cinemas last, {a} or {b},",),
        test=("whichever feature followed the other, {a} or {b},",),
    ),
    "book": Phrases(
        train=("the later of the novels {a} and {b}", "the newer book of {a} and {b}"),
        validation=("the book that reached the readers last, {a} or {b},",),
        test=("whichever volume followed the other, {a} or {b},",),
    ),
    "band": Phrases(
        train=("the later of the bands {a} and {b}", "the newer band of {a} and {b}"),
        validation=("the band whose first concert came last, {a} or {b},",),
        test=("whichever group followed the other, {a} or {b},",),
    ),
    "person": Phrases(
        train=("the younger of {a} and {b}", "the person born last, {a} or {b},"),
        validation=("the one who came to life afterwards, {a} or {b},",),
        test=("whichever of the two has the later birth, {a} or {b},",),
    ),
    "company": Phrases(
        train=("the younger of the companies {a} and {b}", "the company founded last, {a} or {b},"),
        validation=("the company that opened its doors afterwards, {a} or {b},",),
        test=("whichever firm was set up after the other, {a} or {b},",),
    ),
}
SAME = {  # yes-no questions: whether two entities have the same object of a relation
    "director": Phrases(
        train=("Were {a} and {b} directed by the same person?", "Did one person direct both {a} and {b}?"),
        validation=("Were {a} and {b} made under the same direction?",),
        test=("Was it a single film-maker who helmed {a} and {b}?",),
    ),
    "publisher": Phrases(
        train=("Were {a} and {b} published by the same company?", "Did one company publish both {a} and {b}?"),
        validation=("Were {a} and {b} put into print by the same company?",),
        test=("Was it a single house that issued {a} and {b}?",),
    ),
    "label": Phrases(
        train=("Are {a} and {b} signed to the same company?", "Is one company behind the records of {a} and {b}?"),
        validation=("Does one company press the albums of both {a} and {b}?",),
        test=("Is it a single label that {a} and {b} record for?",),
    ),
    "birthplace": Phrases(
        train=("Were {a} and {b} born in the same city?", "Is one city the birthplace of both {a} and {b}?"),
        validation=("Do {a} and {b} have the same place of birth?",),
        test=("Is it a single town that {a} and {b} hail from?",),
    ),
}
