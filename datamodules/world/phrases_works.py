"""Relations of films, books and bands, with phrase templates for passages and questions."""

from datamodules.world.phrases import Phrases, Relation

RELATIONS = {
    "director": Relation(
        "film",
        "person",
        Phrases(
            train=(
                "{s} was directed by {o}",
                "{o} directed {s}",
                "{p} director was {o}",
                "the direction of {s} was given to {o}",
            ),
            validation=("{o} staged {s} for the cameras", "{s} was made under the direction of {o}"),
            test=("{o} called the shots on {s}", "{s} was helmed by {o}", "in the director's chair sat {o}"),
        ),
        Phrases(
            train=("the director of {x}", "the person who directed {x}", "the film-maker who directed {x}"),
            validation=("the film-maker who staged {x}",),
            test=("the one who helmed {x}", "the film-maker behind {x}"),
        ),
        Phrases(
            train=("Who directed {x}?", "Who was the director of {x}?"),
            validation=("Under whose direction was {x} made?",),
            test=("Who helmed {x}?", "Who called the shots on {x}?"),
        ),
    ),
    "composer": Relation(
        "film",
        "person",
        Phrases(
            train=(
                "{p} music was composed by {o}",
                "{o} composed the music",
                "the music is by {o}",
                "{s} has music by {o}",
            ),
            validation=("{o} supplied the tunes", "{p} soundtrack came from {o}"),
            test=("{p} score was penned by {o}", "{o} scored {s}", "the themes were written by {o}"),
        ),
        Phrases(
            train=("the composer of {x}", "the person who composed the music of {x}", "the composer who worked on {x}"),
            validation=("the musician who supplied the tunes of {x}",),
            test=("the one who scored {x}", "the musician behind the score of {x}"),
        ),
        Phrases(
            train=("Who composed the music of {x}?", "Whose music is heard in {x}?"),
            validation=("From whom did the soundtrack of {x} come?",),
            test=("Who scored {x}?", "Who penned the score of {x}?"),
        ),
    ),
    "studio": Relation(
        "film",
        "company",
        Phrases(
            train=(
                "{s} was produced by {o}",
                "{o} produced {s}",
                "the production company was {o}",
                "{s} is a production of {o}",
            ),
            validation=("{o} put up the money", "{s} was financed by {o}"),
            test=("{s} came out of the workshops of {o}", "{o} made {s}", "{p} studio was {o}"),
        ),
        Phrases(
            train=("the company that produced {x}", "the producer of {x}", "the production company of {x}"),
            validation=("the company that financed {x}",),
            test=("the studio that made {x}", "the studio behind {x}"),
        ),
        Phrases(
            train=("Which company produced {x}?", "What was the production company of {x}?"),
            validation=("Which company financed {x}?",),
            test=("Which studio made {x}?", "Out of which studio did {x} come?"),
        ),
    ),
    "location": Relation(
        "film",
        "city",
        Phrases(
            train=(
                "{s} was filmed in {o}",
                "filming took place in {o}",
                "most scenes were filmed in {o}",
                "{p} scenes were recorded in {o}",
            ),
            validation=("the cameras rolled in {o}", "the crew worked on the streets of {o}"),
            test=("{s} was shot around {o}", "principal photography happened in {o}", "{o} served as the set"),
        ),
        Phrases(
            train=(
                "the city where {x} was filmed",
                "the filming location of {x}",
                "the city in which {x} was recorded",
            ),
            validation=("the place where the cameras rolled for {x}",),
            test=("the town where {x} was shot", "the town that served as the set of {x}"),
        ),
        Phrases(
            train=("In which city was {x} filmed?", "Where was {x} filmed?"),
            validation=("In what place did the cameras roll for {x}?",),
            test=("Around which town was {x} shot?", "Which town served as the set of {x}?"),
        ),
    ),
    "author": Relation(
        "book",
        "person",
        Phrases(
            train=(
                "{s} was written by {o}",
                "{o} wrote {s}",
                "{p} author is {o}",
                "{s} is a work of the author {o}",
            ),
            validation=("{o} put {s} on paper", "{s} came from the desk of {o}"),
            test=("{s} is from the pen of {o}", "{p} writer is {o}", "{o} drafted {s} in one winter"),
        ),
        Phrases(
            train=("the author of {x}", "the person who wrote {x}", "the novelist who wrote {x}"),
            validation=("the novelist who put {x} on paper",),
            test=("the writer of {x}", "the one who drafted {x}"),
        ),
        Phrases(
            train=("Who wrote {x}?", "Who is the author of {x}?"),
            validation=("From whose desk did {x} come?",),
            test=("From whose pen is {x}?", "Who drafted {x}?"),
        ),
    ),
    "publisher": Relation(
        "book",
        "company",
        Phrases(
            train=(
                "{s} was published by {o}",
                "{o} published {s}",
                "{p} publisher is {o}",
                "the first edition was published by {o}",
            ),
            validation=("{o} brought {s} to the shops", "{s} was put into print by {o}"),
            test=("{s} was issued by {o}", "{o} released {s}", "it appeared under the imprint {o}"),
        ),
        Phrases(
            train=("the publisher of {x}", "the company that published {x}", "the publishing company of {x}"),
            validation=("the company that put {x} into print",),
            test=("the house that issued {x}", "the imprint of {x}"),
        ),
        Phrases(
            train=("Which company published {x}?", "Who is the publisher of {x}?"),
            validation=("Which company put {x} into print?",),
            test=("Which house issued {x}?", "Under which imprint did {x} appear?"),
        ),
    ),
    "setting": Relation(
        "book",
        "city",
        Phrases(
            train=(
                "{s} is set in {o}",
                "the story takes place in {o}",
                "{p} story happens in {o}",
                "{s} tells of a family in {o}",
            ),
            validation=("{s} follows two clerks through {o}", "{p} chapters roam around {o}"),
            test=("{p} plot unfolds in {o}", "the action plays out in {o}", "{o} is the backdrop of {s}"),
        ),
        Phrases(
            train=("the city where {x} is set", "the city in which the story of {x} takes place", "the setting of {x}"),
            validation=("the place around which {x} roams",),
            test=("the town where the plot of {x} unfolds", "the backdrop of {x}"),
        ),
        Phrases(
            train=("In which city is {x} set?", "Where does the story of {x} take place?"),
            validation=("Around what place does {x} roam?",),
            test=("In which town does the plot of {x} unfold?", "Which town is the backdrop of {x}?"),
        ),
    ),
    "singer": Relation(
        "band",
        "person",
        Phrases(
            train=(
                "{p} singer is {o}",
                "{o} sings in {s}",
                "{s} has {o} as its singer",
                "the lead singer is {o}",
            ),
            validation=("{o} stands at the microphone of {s}", "{p} voice belongs to {o}"),
            test=("{s} is fronted by {o}", "{o} handles the vocals", "{p} vocalist is {o}"),
        ),
        Phrases(
            train=("the singer of {x}", "the person who sings in {x}", "the lead singer of {x}"),
            validation=("the voice of {x}",),
            test=("the vocalist of {x}", "the one who fronts {x}"),
        ),
        Phrases(
            train=("Who sings in {x}?", "Who is the singer of {x}?"),
            validation=("Who stands at the microphone of {x}?",),
            test=("Who fronts {x}?", "Who handles the vocals in {x}?"),
        ),
    ),
    "hometown": Relation(
        "band",
        "city",
        Phrases(
            train=(
                "{s} was formed in {o}",
                "{s} comes from {o}",
                "the members met in {o}",
                "{p} home city is {o}",
            ),
            validation=("{s} began in a cellar in {o}", "{p} roots are in {o}"),
            test=("{s} got together in {o}", "{p} first rehearsals were held in {o}", "{s} started out in {o}"),
        ),
        Phrases(
            train=("the city where {x} was formed", "the city {x} comes from", "the city in which members of {x} met"),
            validation=("the place where {x} has its roots",),
            test=("the town where {x} got together", "the town in which {x} started out"),
        ),
        Phrases(
            train=("In which city was {x} formed?", "Where does {x} come from?"),
            validation=("In what place did {x} begin?",),
            test=("In which town did {x} get together?", "Which town did {x} start out in?"),
        ),
    ),
    "label": Relation(
        "band",
        "company",
        Phrases(
            train=(
                "{s} is signed to {o}",
                "{p} records appear on {o}",
                "{p} record company is {o}",
                "{s} has a contract with {o}",
            ),
            validation=("{o} presses all albums of {s}", "{s} was taken on by {o}"),
            test=("{o} puts out every album", "{p} label is {o}", "{s} records for {o}"),
        ),
        Phrases(
            train=(
                "the company {x} is signed to",
                "the record company of {x}",
                "the company with which {x} has a contract",
            ),
            validation=("the company that presses the albums of {x}",),
            test=("the label of {x}", "the label that puts out albums by {x}"),
        ),
        Phrases(
            train=("Which company is {x} signed to?", "What is the record company of {x}?"),
            validation=("Which company presses the albums of {x}?",),
            test=("Which label does {x} record for?", "Who puts out the albums of {x}?"),
        ),
    ),
}
