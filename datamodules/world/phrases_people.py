"""Relations of people and cities, with phrase templates for passages and questions."""

from datamodules.world.phrases import Phrases, Relation

RELATIONS = {
    "birthplace": Relation(
        "person",
        "city",
        Phrases(
            train=(
                "{s} was born in {o}",
                "{p} birthplace is {o}",
                "{s} came into the world in {o}",
                "a native of {o}, {s} left early",
            ),
            validation=("{s} was a child of {o} by birth", "{p} place of birth was {o}"),
            test=("{s} hails from {o}", "{s} first saw daylight in {o}", "{p} native town is {o}"),
        ),
        Phrases(
            train=("the city where {x} was born", "the birthplace of {x}", "the birth city of {x}"),
            validation=("the place of birth of {x}",),
            test=("the native town of {x}", "the town {x} hails from"),
        ),
        Phrases(
            train=("In which city was {x} born?", "Where was {x} born?"),
            validation=("What is the place where {x} was born?",),
            test=("Which town does {x} hail from?", "From what town does {x} originally come?"),
        ),
    ),
    "birth_year": Relation(
        "person",
        "year",
        Phrases(
            train=("{s} was born in {o}", "{p} year of birth is {o}", "{s} has lived since {o}"),
            validation=("{s} came to life in {o}", "{p} birth fell in the year {o}"),
            test=("{p} birth dates to {o}", "{s} entered the world in {o}", "{p} parents welcomed the child in {o}"),
        ),
        Phrases(
            train=("the year in which {x} was born", "the birth year of {x}"),
            validation=("the year of the birth of {x}",),
            test=("the year that {x} entered the world", "the year the parents of {x} welcomed the child"),
        ),
        Phrases(
            train=("When was {x} born?", "In which year was {x} born?"),
            validation=("What was the year of birth for {x}?",),
            test=("What year did {x} enter the world?", "To which year does the birth of {x} date?"),
        ),
    ),
    "mentor": Relation(
        "person",
        "person",
        Phrases(
            train=(
                "{s} was taught by {o}",
                "{p} teacher was {o}",
                "{s} studied under {o}",
                "{s} was a student of {o}",
            ),
            validation=("{o} gave lessons to the young talent", "{s} was instructed by {o}"),
            test=("{s} learned the craft from {o}", "{p} mentor was {o}", "{o} tutored the beginner"),
        ),
        Phrases(
            train=("the teacher of {x}", "the person under whom {x} studied", "the person who taught {x}"),
            validation=("the instructor of {x}",),
            test=("the mentor of {x}", "the one from whom {x} learned the craft"),
        ),
        Phrases(
            train=("Who taught {x}?", "Under whom did {x} study?"),
            validation=("Who instructed {x}?",),
            test=("Who tutored {x}?", "From whom did {x} learn the craft?"),
        ),
    ),
    "residence": Relation(
        "person",
        "city",
        Phrases(
            train=(
                "{s} lives in {o}",
                "{p} home is in {o}",
                "{s} moved to {o} later on",
                "{s} settled in {o} with a family",
            ),
            validation=("{s} dwells in {o} nowadays", "{s} keeps a flat in {o}"),
            test=("{s} resides in {o}", "{s} has made a home in {o}", "{p} house stands in {o}"),
        ),
        Phrases(
            train=("the city where {x} lives", "the home city of {x}", "the city {x} moved to"),
            validation=("the place where {x} dwells",),
            test=("the town {x} resides in", "the town of residence of {x}"),
        ),
        Phrases(
            train=("In which city does {x} live?", "Where does {x} live?"),
            validation=("In what place does {x} dwell?",),
            test=("Which town does {x} reside in?", "In which town has {x} made a home?"),
        ),
    ),
    "mayor": Relation(
        "city",
        "person",
        Phrases(
            train=(
                "{p} mayor is {o}",
                "{o} is the mayor of {s}",
                "{s} is governed by mayor {o}",
                "{s} elected {o} as mayor",
            ),
            validation=("{o} heads the town hall of {s}", "{p} head of council is {o}"),
            test=("{o} leads the administration of {s}", "{p} burgomaster is {o}", "{s} is run by {o}"),
        ),
        Phrases(
            train=("the mayor of {x}", "the person elected mayor of {x}", "the person who governs {x}"),
            validation=("the head of council in {x}",),
            test=("the burgomaster of {x}", "the one who leads the administration of {x}"),
        ),
        Phrases(
            train=("Who is the mayor of {x}?", "Who governs {x}?"),
            validation=("Who heads the town hall of {x}?",),
            test=("Who leads the administration of {x}?", "By whom is {x} run?"),
        ),
    ),
    "river": Relation(
        "city",
        "river",
        Phrases(
            train=(
                "{s} lies on the river {o}",
                "the {o} flows through {s}",
                "{p} river is the {o}",
                "{s} was built on the banks of the {o}",
            ),
            validation=("the stream called {o} crosses {s}", "{s} stands beside the waters of the {o}"),
            test=("the {o} winds past {s}", "{s} straddles the {o}", "{p} waterway is named the {o}"),
        ),
        Phrases(
            train=("the river that flows through {x}", "the river of {x}", "the river on which {x} lies"),
            validation=("the stream that crosses {x}",),
            test=("the waterway of {x}", "the waterway that winds past {x}"),
        ),
        Phrases(
            train=("Which river flows through {x}?", "On which river does {x} lie?"),
            validation=("What stream crosses {x}?",),
            test=("What waterway winds past {x}?", "Which waterway does {x} straddle?"),
        ),
    ),
    "city_year": Relation(
        "city",
        "year",
        Phrases(
            train=("{s} was founded in {o}", "{s} was settled in {o}", "{p} founding dates from {o}"),
            validation=("{s} goes back to {o}", "{s} was laid out in {o}"),
            test=("{p} charter was sealed in {o}", "{s} has existed since {o}", "settlers arrived at {s} in {o}"),
        ),
        Phrases(
            train=("the year in which {x} was founded", "the year {x} was settled"),
            validation=("the year {x} goes back to",),
            test=("the year of the charter of {x}", "the year since which {x} has existed"),
        ),
        Phrases(
            train=("When was {x} founded?", "In which year was {x} settled?"),
            validation=("To what year does {x} go back?",),
            test=("What year was the charter of {x} sealed?", "Since what year has {x} existed?"),
        ),
    ),
}
