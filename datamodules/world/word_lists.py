"""Word parts and lists for names, and a generator of invented words, which are unique and pronounceable."""

from random import Random


def words(text: str) -> list[str]:
    """Split a text into words."""
    return text.split()


# English stems keep names at two or three word pieces, which are short to encode and easy to recognize when repeated.
STEMS = words(
    "alder ash aspen bay bear beech bell birch black blue bold bramble bright brook brown burn cedar chalk "
    "church clay clear cliff cloud coal cold cove crane cross crow dale dark dawn day deep deer dove dry dusk "
    "east edge elder elm fair falcon fall far fern field fire fish flint ford fox frost gate glen gold good "
    "goose grand grass gray green grove hall hard hare hart hawk hay hazel heath high hill holly home hook horn "
    "ice iron ivy jay kemp king kirk lake lamb lang lark laurel leaf light lime lion long loch lock long low "
    "maple marsh mead mill mint moon moor moss new night north oak old orchard otter owl park peak pearl penn "
    "pike pine pond port rain raven red reed rich ridge ring river rock rook rose rush rye sage salt sand sea "
    "shell ship silver sky snow south spring star steel stone storm strong summer sun swan sweet tarn thorn "
    "tide tower vale wall water well west wheat white wild willow wind winter wolf wood wren yew"
)
_ONSETS = words("b br c d dr f g gr h j k l l m m n n p pr r r s s st t t th tr v v w z")
_VOWELS = words("a a a e e e i i o o o u u ai ou")
_CODAS = ["", "", "", *words("l m n r s")]
_STEM_ATTEMPTS = 300  # afterwards random syllables, whose supply is unlimited

GIVEN_NAMES = {
    "she": words(
        "Alice Anna Clara Diana Edith Ellen Emma Eva Grace Helen Ida Irene Jane Julia Laura Lucy Margaret Maria "
        "Martha Nora Olivia Rachel Rosa Ruth Sarah Sophia Susan Vera Victoria Virginia"
    ),
    "he": words(
        "Adam Albert Arthur Carl Charles Daniel David Edgar Felix Frank George Henry Hugo Isaac Jacob John "
        "Joseph Leo Martin Max Oscar Otto Paul Peter Robert Samuel Simon Thomas Victor Walter"
    ),
}
SURNAME_ENDINGS = ("ane", "ov", "eld", "ick", "ard", "ow", "ett", "ini", "ade", "osk")
CITY_ENDINGS = ("burg", "mere", "holm", "ford", "vik", "stad", "mouth", "haven", "ton", "wick")
REGION_ENDINGS = ("ia", "land", "mark", "shire", "esse")
RIVER_ENDINGS = ("a", "e", "une", "iss", "ou")
ROOT_ENDINGS = ("ex", "al", "or", "ine", "on", "um", "ax", "is")

ADJECTIVES = words(
    "Silent Hollow Crimson Distant Broken Golden Frozen Hidden Restless Patient Burning Forgotten Gentle Iron "
    "Paper Salted Velvet Wandering Bitter Quiet Narrow Painted Sleeping Stolen Tender Upper Weary Winter Amber "
    "Brave Copper Drowned Early Faithful Grey Honest Idle Lonely Marble Nameless Pale Rusted Scarlet Tall "
    "Vacant Wicked Yellow Blind"
)


class WordGenerator:
    """Generates invented words without repetition.

    Args:
        random: Source of randomness.
        taken: Casefolded words already used; shared by all splits, so that no word occurs in two of them.
    """

    def __init__(self, random: Random, taken: set[str]) -> None:
        self.random, self.taken = random, taken

    def word(self, endings: tuple[str, ...]) -> str:
        """A new capitalized word of two or more syllables with one of the endings."""
        choice = self.random.choice
        for attempt in range(10_000):
            stem = choice(STEMS) if attempt < _STEM_ATTEMPTS else self._syllables(1 + attempt // 600)
            joint = choice(_ONSETS) if stem[-1] in "aeiou" and endings[0][0] in "aeiou" else ""
            word = (stem + joint + choice(endings)).capitalize()
            if word.casefold() not in self.taken:
                self.taken.add(word.casefold())
                return word
        raise RuntimeError("no new word in 10,000 attempts")  # unreachable: words grow without bound

    def _syllables(self, count: int) -> str:
        choice = self.random.choice
        return "".join(choice(_ONSETS) + choice(_VOWELS) + choice(_CODAS) for _ in range(count))

    def words(self, count: int, endings: tuple[str, ...]) -> list[str]:
        """Several new words."""
        return [self.word(endings) for _ in range(count)]
