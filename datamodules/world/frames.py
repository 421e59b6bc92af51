"""What surrounds the facts: passage openings and fillers, ways to mention a thing in a question, question frames,
comparisons.  All in three disjoint sets, as `phrases.py` says."""

from datamodules.world.phrases import Phrases

# First sentence of a passage.  {n} name, {y} year, {r} region, {t} trade.
OPENINGS = {
    "person": Phrases(
        train=("{n} is a {t}", "{n} is known as a {t}", "{n} works as a {t}"),
        validation=("{n} earned a name as a {t}",),
        test=("{n} is active as a {t}", "{n} is a celebrated {t}"),
    ),
    "city": Phrases(
        train=("{n} is a city in {r}", "{n} is a city of the region {r}", "{n}, in {r}, is a city"),
        validation=("{n} is a place on the map of {r}",),
        test=("{n} is a town in the north of {r}", "{n} belongs to {r} and is a market town"),
    ),
    "film": Phrases(
        train=("{n} is a film of {y}", "{n} is a {y} film", "{n} is a film that came out in {y}"),
        validation=("{n} reached the cinemas in {y}",),
        test=("{n} is a {y} feature", "{n} is a motion picture released in {y}"),
    ),
    "book": Phrases(
        train=("{n} is a novel of {y}", "{n} is a {y} novel", "{n} is a book that came out in {y}"),
        validation=("{n} reached the readers in {y}",),
        test=("{n} is a {y} volume of fiction", "{n} is a tale issued in {y}"),
    ),
    "band": Phrases(
        train=("{n} is a band of {y}", "{n} is a band formed in {y}", "{n} has been a band since {y}"),
        validation=("{n} gave a first concert in {y}",),
        test=("{n} is a group active from {y}", "{n} is an ensemble that appeared in {y}"),
    ),
    "company": Phrases(
        train=("{n} is a company", "{n} is a company with a long history", "{n} is a well known company"),
        validation=("{n} is an enterprise of some size",),
        test=("{n} is a private firm", "{n} is a firm trading in many countries"),
    ),
    "product": Phrases(
        train=("{n} is a {t} of {y}", "{n} is a {t} on sale since {y}", "{n} is a {y} {t}"),
        validation=("{n} was shown as a new {t} in {y}",),
        test=("{n} is a {t} launched in {y}", "{n} is a {y} model of {t}"),
    ),
}

# Sentences that say nothing anybody asks for.
FILLERS = {
    "person": Phrases(
        train=("{s} likes long walks", "{s} has given many interviews", "{s} collects old maps"),
        validation=("{s} is fond of chess", "{s} seldom speaks in public"),
        test=("{s} keeps bees", "{s} has received several prizes", "{s} speaks four languages"),
    ),
    "city": Phrases(
        train=("{s} has a large market square", "visitors like the old bridge", "{p} streets are narrow"),
        validation=("{s} is quiet in winter", "a fair is held every autumn"),
        test=("{s} has two theatres", "{p} towers can be seen from afar", "tourism has grown of late"),
    ),
    "film": Phrases(
        train=("critics praised the photography", "{s} was a success", "{s} runs for two hours"),
        validation=("audiences were divided", "a restored copy exists"),
        test=("{s} won a prize at a festival", "reviewers admired the costumes", "the budget was modest"),
    ),
    "book": Phrases(
        train=("{s} sold well", "{s} has been translated often", "readers liked the ending"),
        validation=("a new edition is planned", "{s} is read in schools"),
        test=("{s} received warm reviews", "the cover shows a ship", "{s} runs to forty chapters"),
    ),
    "band": Phrases(
        train=("{s} has toured widely", "{p} songs are often slow", "{s} has five members"),
        validation=("{s} plays every summer", "fans travel far to hear the songs"),
        test=("{s} rarely gives interviews", "{p} concerts sell out", "the drummer left after a quarrel"),
    ),
    "company": Phrases(
        train=("{s} has many employees", "{s} grew fast", "{p} shares are not traded"),
        validation=("{s} pays its staff well", "a strike shook the workforce"),
        test=("{s} runs a small museum", "{p} turnover has doubled", "an apprentice school is attached to it"),
    ),
    "product": Phrases(
        train=("{s} sells well abroad", "{s} is quiet in use", "{s} comes in three colours"),
        validation=("{s} is covered by a guarantee", "spare parts are cheap"),
        test=("{s} won an award for its looks", "testers liked the handle", "{s} is praised for low weight"),
    ),
}
NOT_TO_CONFUSE = Phrases(
    train=("{s} should not be confused with {o}",),
    validation=("{o} is something else",),
    test=("{o} bears the same name",),
)
KIND_NOUNS = {  # stand for the subject from the second sentence on, beside the pronoun
    "film": "the film",
    "book": "the novel",
    "band": "the band",
    "city": "the town",
    "company": "the company",
    "product": "the device",
}

# How a question mentions a thing whose name another one shares, and how any other film, book, band or product.
TWIN_MENTIONS = {
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

# The earlier or later of two things of a kind, as a noun phrase.  -> the fact that decides ("" for the year of release)
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
SAME = {  # yes or no: is the object of the relation one and the same?
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
