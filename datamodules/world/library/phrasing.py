"""Phrasings of the library's questions.

The first of each pair for test, the second for validation. {n} is a product's name, {x} the entry of a table or a
drawing.
"""

Pair = tuple[str, str]
ENTRIES: dict[str, Pair] = {  # first word of a fact's key -> question about a table's row
    "error": ("What does the code {x} on the display of the {n} mean?", "The {n} shows {x}: what has happened?"),
    "remedy": ("What should be done when the {n} reports {x}?", "How do I get rid of {x} on the {n}?"),
    "part": (
        "What is the order number of this part of the {n}: {x}?",
        "Under which number can I buy this for the {n}: {x}?",
    ),
    "price": ("What does this part of the {n} cost: {x}?", "How much money is asked for this part of the {n}: {x}?"),
    "job": (
        "At what interval is this work due on the {n}: {x}?",
        "How often does the plan for the {n} ask for this: {x}?",
    ),
    "torque": (
        "What torque does the table for the {n} give for this joint: {x}?",
        "How tight must this be on the {n}: {x}?",
    ),
}
FIGURES: dict[str, Pair] = {
    "figure blocks": (
        "Which figure shows how the parts inside the {n} belong together?",
        "Where is a drawing of the inner structure of the {n}?",
    ),
    "figure terminals": (
        "Which figure shows how the {n} is wired?",
        "Where is a drawing of the connections of the {n}?",
    ),
    "figure front": ("Which figure shows what the {n} looks like?", "Where is a picture of the {n} from outside?"),
    "figure curve": (
        "Which figure shows a characteristic curve of the {n}?",
        "Where is a chart with measured values of the {n}?",
    ),
    "terminal": (
        "To which terminal of the {n} does this signal belong: {x}?",
        "At which clamp of the {n} is this connected: {x}?",
    ),
}
DESCRIBED: dict[str, Pair] = {  # parameter -> what the paragraph, or the steps, that state it describe
    "reset_hold": (
        "Describe how a fault of the {n} is acknowledged.",
        "What are the steps to make the {n} work again after a fault?",
    ),
    "storage_low": ("Under what conditions is the {n} stored?", "Tell me how to keep an unused {n} in a warehouse."),
    "acclimatise": (
        "What must be observed when the {n} has arrived from the cold?",
        "Tell me what to do with the {n} when it was unpacked on a winter day.",
    ),
    "mount_torque": ("Describe how the {n} is fastened to its base.", "What are the steps to bolt down the {n}?"),
    "fuse": (
        "What are the requirements for the supply line of the {n}?",
        "Tell me what a circuit for the {n} must be like.",
    ),
    "standby_delay": ("How does the {n} go into standby, and what ends it?", "Tell me about energy saving of the {n}."),
    "cooldown": ("Describe how the {n} is switched off.", "What are the steps to turn off the {n} properly?"),
    "warmup": (
        "Describe the initial start of the {n}.",
        "What are the steps when the {n} is turned on for the first time?",
    ),
    "selftest": ("What does the function check of the {n} do?", "Tell me how the {n} tests its own parts."),
    "dilution": ("How is the outside of the {n} cleaned?", "Tell me with what to wipe the {n}."),
    "address": (
        "What must be observed when the {n} is connected to a network?",
        "Tell me how the {n} is hooked up to a controller.",
    ),
    "restarts": ("How does the {n} behave after a fault?", "Tell me what a faulty {n} does by itself."),
    "warranty": ("What does the warranty of the {n} cover?", "Tell me about repairs free of charge of the {n}."),
    "availability": (
        "What must be stated in an order of parts for the {n}?",
        "Tell me how to get replacements for the {n}.",
    ),
    "battery_years": ("How is the {n} disposed of?", "Tell me what to do with the battery of an old {n}."),
    "clearance": (
        "What are the requirements for the place of installation of the {n}?",
        "Tell me where the {n} may be put.",
    ),
}
CALCULATIONS: dict[str, Pair] = {  # an expression of parameters; the result has the unit of the first
    "{warmup} + {selftest}": (
        "How many seconds does it take in total until the {n} has initialised and then passed its function check?",
        "First the {n} initialises, then it checks itself. How many seconds are these together?",
    ),
    "{ambient_high} - {ambient_low}": (
        "How many degrees lie between the lowest and the highest permitted ambient temperature of the {n}?",
        "How wide, in degrees, is the range of room temperatures that the {n} is made for?",
    ),
    "{width} + 2 * {clearance}": (
        "How wide must a niche for the {n} be, with the required free space on its left and right?",
        "The {n} stands between two walls with the gaps that it needs. How far are the walls apart?",
    ),
    "{power} / {supply}": (
        "What is the rated power of the {n} divided by its rated voltage, in amperes to one decimal place?",
        "How many amperes, to one decimal place, are the watts at full load of the {n} over its mains voltage?",
    ),
    "{packed} - {weight}": (
        "How much does the packaging of the {n} weigh?",
        "What remains of the boxed mass of the {n} when the device is taken out?",
    ),
    "{cooldown} + {discharge}": (
        "The fan of the {n} runs on after switching off, and only then is it disconnected: after how many minutes in "
        "total may its cover be opened?",
        "Cooling after it was turned off, then the safety delay: how many minutes is it until one can reach inside the "
        "{n}?",
    ),
    "{depth} + 2 * {clearance}": (
        "How deep must a room for the {n} be, with the required free space in front and behind?",
        "How much floor, from front to back, does the {n} take up with its gaps on both sides?",
    ),
    "{width} + {depth}": (
        "What do width and depth of the {n} add up to?",
        "How long is the way along the front and then along one side of the {n}?",
    ),
}
PRICES: Pair = (
    "What do {count} pieces of {x} and one piece of {y} for the {n} cost together, in EUR?",
    "I buy {count} times {x} and once {y} for the {n}. How many euros is that?",
)
ONE_CHOICE: Pair = ("{question} Choose one: {options}", "{question} Only one of these is right: {options}")
SEVERAL_CHOICES: Pair = (
    "Which of these statements about the {n} are correct? {options}",
    "What is true of the {n}? There may be several: {options}",
)
COMPARISON: Pair = ("Which has the {most} {noun}: {names}?", "Compare {names}. Whose {noun} is the {most}?")
MOST: dict[str, Pair] = {"max": ("highest", "greatest"), "min": ("lowest", "smallest")}
BOTH: Pair = (
    "What is the {noun} of the {n}, and what is it of the {other}?",
    "There are the {n} and the {other}. What is the {noun} of the one, and of the other?",
)
TOTALS: dict[str, Pair] = {  # parameter -> sum over products
    "weight": (
        "What do the {n} and the {other} weigh together, without packaging?",
        "What is the mass of the {n} plus the {other}, unpacked?",
    ),
    "packed": (
        "The {n} and the {other} are shipped together. What is their total shipping weight?",
        "What mass must a pallet with the boxed {n} and the boxed {other} carry?",
    ),
    "power": (
        "What is the rated power of the {n} and the {other} together?",
        "How many watts do the {n} and the {other} take at full load, added up?",
    ),
    "standby_power": (
        "What power do the {n} and the {other} draw together in standby?",
        "How many watts do the {n} and the {other} take while both save energy?",
    ),
}
ROOM: Pair = (
    "Which of these may be operated at an ambient temperature of {limit}: {names}?",
    "A room gets as hot as {limit}. Which of these can work there: {names}?",
)
