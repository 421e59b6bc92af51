"""Relations of companies and products, with phrase templates for passages and questions."""

from datamodules.world.phrases import Phrases, Relation

RELATIONS = {
    "headquarters": Relation(
        "company",
        "city",
        Phrases(
            train=(
                "{s} has its headquarters in {o}",
                "{p} headquarters are in {o}",
                "{s} is based in {o}",
                "the main office is in {o}",
            ),
            validation=("{s} is steered from {o}", "{p} managers sit in {o}"),
            test=("{p} seat is {o}", "{s} operates out of {o}", "the head office stands in {o}"),
        ),
        Phrases(
            train=("the city where {x} is based", "the headquarters city of {x}", "the city of the main office of {x}"),
            validation=("the place from which {x} is steered",),
            test=("the town {x} operates out of", "the seat of {x}"),
        ),
        Phrases(
            train=("In which city is {x} based?", "Where are the headquarters of {x}?"),
            validation=("From what place is {x} steered?",),
            test=("Which town does {x} operate out of?", "In what town does the head office of {x} stand?"),
        ),
    ),
    "founder": Relation(
        "company",
        "person",
        Phrases(
            train=(
                "{s} was founded by {o}",
                "{o} founded {s}",
                "{p} founder is {o}",
                "{s} was started by {o}",
            ),
            validation=("{o} opened {s} with borrowed money", "{s} goes back to the efforts of {o}"),
            test=("{o} established {s}", "{s} was set up by {o}", "{s} is the creation of {o}"),
        ),
        Phrases(
            train=("the founder of {x}", "the person who founded {x}", "the person who started {x}"),
            validation=("the person who opened {x}",),
            test=("the one who established {x}", "the entrepreneur behind {x}"),
        ),
        Phrases(
            train=("Who founded {x}?", "Who is the founder of {x}?"),
            validation=("Who opened {x}?",),
            test=("Who established {x}?", "By whom was {x} set up?"),
        ),
    ),
    "company_year": Relation(
        "company",
        "year",
        Phrases(
            train=("{s} was founded in {o}", "{s} started business in {o}", "{p} founding took place in {o}"),
            validation=("{s} opened its doors in {o}", "{s} has traded ever since {o}"),
            test=("{s} was incorporated in {o}", "{p} establishment followed in {o}", "{s} was set up in {o}"),
        ),
        Phrases(
            train=("the year in which {x} was founded", "the year {x} started business"),
            validation=("the year {x} opened its doors",),
            test=("the year {x} was incorporated", "the year of establishment of {x}"),
        ),
        Phrases(
            train=("When was {x} founded?", "In which year did {x} start business?"),
            validation=("What year did {x} open its doors?",),
            test=("What year was {x} incorporated?", "What year saw the establishment of {x}?"),
        ),
    ),
    "maker": Relation(
        "product",
        "company",
        Phrases(
            train=(
                "{s} is made by {o}",
                "{o} makes {s}",
                "{p} manufacturer is {o}",
                "{s} is manufactured by {o}",
            ),
            validation=("{s} rolls off the lines of {o}", "{o} turns out {s} in small batches"),
            test=("{s} is built by {o}", "{o} markets {s}", "{p} vendor is {o}"),
        ),
        Phrases(
            train=("the maker of {x}", "the company that makes {x}", "the manufacturer of {x}"),
            validation=("the company that turns out {x}",),
            test=("the vendor of {x}", "the firm that builds {x}"),
        ),
        Phrases(
            train=("Which company makes {x}?", "Who is the manufacturer of {x}?"),
            validation=("Which company turns out {x}?",),
            test=("Which firm builds {x}?", "Which firm markets {x}?"),
        ),
    ),
    "designer": Relation(
        "product",
        "person",
        Phrases(
            train=(
                "{s} was designed by {o}",
                "{o} designed {s}",
                "{p} designer is {o}",
                "the design is the work of {o}",
            ),
            validation=("{o} worked out the plans", "{s} was drawn up by {o}"),
            test=("{o} engineered {s}", "{s} was devised by {o}", "{p} blueprint came from {o}"),
        ),
        Phrases(
            train=("the designer of {x}", "the person who designed {x}", "the engineer who designed {x}"),
            validation=("the engineer who drew up {x}",),
            test=("the one who devised {x}", "the engineer behind {x}"),
        ),
        Phrases(
            train=("Who designed {x}?", "Who is the designer of {x}?"),
            validation=("Who drew up {x}?",),
            test=("Who devised {x}?", "Who engineered {x}?"),
        ),
    ),
    "assembly": Relation(
        "product",
        "city",
        Phrases(
            train=(
                "{s} is assembled in {o}",
                "assembly takes place in {o}",
                "the factory is in {o}",
                "{s} comes from a factory in {o}",
            ),
            validation=("the final steps are done in {o}", "{s} leaves a hall in {o}"),
            test=("{s} is put together in {o}", "the plant stands in {o}", "{p} production line is in {o}"),
        ),
        Phrases(
            train=("the city where {x} is assembled", "the factory city of {x}", "the city of the factory of {x}"),
            validation=("the place where the final steps on {x} are done",),
            test=("the town where {x} is put together", "the town with the production line of {x}"),
        ),
        Phrases(
            train=("In which city is {x} assembled?", "Where is the factory of {x}?"),
            validation=("In what place are the final steps on {x} done?",),
            test=("In which town is {x} put together?", "What town has the production line of {x}?"),
        ),
    ),
}
