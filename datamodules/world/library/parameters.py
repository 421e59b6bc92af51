"""Quantities that a product of the library has: their unit, the values they can have, and how questions name them."""

from dataclasses import dataclass
from random import Random

UNIT_WORDS = {
    "mm": "millimetres", "cm": "centimetres", "m": "metres", "kg": "kilograms", "g": "grams", "l": "litres",
    "ml": "millilitres", "V": "volts", "A": "amperes", "mA": "milliamperes", "W": "watts", "kHz": "kilohertz",
    "Pa": "pascals", "bar": "bar", "Nm": "newton metres", "°C": "degrees Celsius", "%": "per cent", "s": "seconds",
    "min": "minutes", "h": "hours",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """A number with its unit."""

    amount: float
    unit: str = ""

    @property
    def number(self) -> str:
        """The number as manuals print it: "12,000", "7.5"."""
        return f"{self.amount:,.10g}" if self.amount >= 10_000 else f"{self.amount:.10g}"

    @property
    def text(self) -> str:
        """As manuals print it: "12,000 rpm"."""
        return f"{self.number} {self.unit}".strip()

    @property
    def answers(self) -> list[str]:
        """The text, and other natural ways to write it."""
        forms = [self.text]
        if word := UNIT_WORDS.get(self.unit):
            forms += [f"{self.number}{self.unit}", f"{self.number} {word}"]
        return list(dict.fromkeys(forms + [form.replace(",", "") for form in forms]))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A quantity.  Pairs of texts are for test and for validation questions; {n} is the product's name."""

    unit: str
    values: tuple[float, ...]  # siblings have different ones
    ask: tuple[str, str]
    noun: tuple[str, str]  # fits "Which has the highest ...?" and "...: 5 mm"

    def draw(self, count: int, random: Random) -> list[Value]:
        """Different values for `count` siblings."""
        return [Value(amount, self.unit) for amount in random.sample(self.values, count)]


def steps(low: float, high: float, step: float) -> tuple[float, ...]:
    """Values from `low` to `high`."""
    return tuple(round(low + n * step, 4) for n in range(round((high - low) / step) + 1))


FUSES = (6, 10, 13, 16, 20, 25, 32, 35, 40, 50)
SHARED = {  # what manuals of every family state, each in one place
    "clearance": Parameter("mm", steps(60, 480, 15),
        ("How much free space must be left on every side of the {n}?",
            "What gap to walls has to be kept all around the {n}?"),
        ("clearance on all sides", "free space around it")),
    "slope": Parameter("mm", steps(1, 9, 0.5),
        ("By how many millimetres per metre may the floor under the {n} slope at most?",
            "How uneven may the ground be, per metre, where the {n} is set up?"),
        ("permitted slope per metre", "allowed unevenness of the ground per metre")),
    "mount_torque": Parameter("Nm", steps(6, 48, 1.5),
        ("With what torque are the fastening bolts of the {n} tightened?",
            "How tight must the bolts that hold the {n} in place be?"),
        ("tightening torque of the fastening bolts", "torque for fixing it in place")),
    "cable": Parameter("mm²", (0.75, 1, 1.5, 2.5, 4, 6, 10, 16, 25),
        ("What cross-section must the supply cable of the {n} have at least?",
            "How thick must the wires that feed the {n} be?"),
        ("minimum cross-section of the supply cable", "wire size of the feed")),
    "terminal_torque": Parameter("Nm", steps(0.4, 2.6, 0.1),
        ("How tight are the screws of the supply terminals of the {n}?",
            "What torque do the clamping screws for the mains wires of the {n} need?"),
        ("torque of the supply terminals", "torque of the clamping screws")),
    "fuse": Parameter("A", FUSES, ("What back-up fuse does the {n} need?",
        "How should the line that feeds the {n} be fused?"),
    ("rating of the back-up fuse", "fuse of the feeding line")),
    "storage_low": Parameter("°C", steps(-38, -6, 1),
        ("What is the lowest temperature at which the {n} may be stored?",
            "How cold may a warehouse get in which the {n} is kept?"),
        ("lower limit of the storage temperature", "temperature to which a warehouse may fall")),
    "storage_months": Parameter("months", steps(5, 30, 1),
        ("After how long in storage must the {n} be inspected before use?",
            "For how many months can the {n} be kept unused without an inspection?"),
        ("storage time without inspection", "time in storage before an inspection")),
    "acclimatise": Parameter("h", steps(2, 30, 1),
        ("How long does the {n} stay unpacked before it is switched on after cold transport?",
            "For how many hours must the {n} warm up to the room after it came in from the cold?"),
        ("waiting time after cold transport", "time to adapt to the room")),
    "warmup": Parameter("s", steps(12, 110, 2),
        ("How long does the {n} need to initialise after it is switched on for the first time?",
            "How many seconds go by until the {n} is initialised?"),
        ("initialisation time", "time until it is initialised")),
    "selftest": Parameter("s", steps(9, 95, 3),
        ("How long does the function check of the {n} take?", "For how many seconds does the {n} check itself?"),
        ("duration of the function check", "length of the automatic check")),
    "code": Parameter("", steps(1002, 9987, 17),
        ("Which code opens the service menu of the {n}?",
            "What number must be typed in to get to the protected settings of the {n}?"),
        ("code of the service menu", "number for the protected settings")),
    "standby_delay": Parameter("min", steps(4, 60, 2),
        ("After how many idle minutes does the {n} change to standby?",
            "When does an unused {n} start to save energy by itself?"),
        ("idle time before standby", "delay before it saves energy")),
    "standby_power": Parameter("W", steps(0.6, 9.8, 0.2),
        ("What power does the {n} draw in standby?",
            "How many watts does the {n} still consume when it is saving energy?"),
        ("power in standby", "consumption while it saves energy")),
    "cooldown": Parameter("min", steps(5, 55, 2),
        ("For how long does the fan of the {n} run on after it is switched off?",
            "How many minutes of cooling follow when the {n} is turned off?"),
        ("run-on time of the fan", "cooling time after it is turned off")),
    "address": Parameter("", steps(3, 126, 3),
        ("What is the bus address of the {n} on delivery?",
            "Under which address does a new {n} answer on the network?"),
        ("bus address on delivery", "preset network address")),
    "cable_length": Parameter("m", steps(15, 600, 15),
        ("How long may the data line of the {n} be?", "Over what distance can the {n} be wired to a controller?"),
        ("maximum length of the data line", "distance to the controller")),
    "log_entries": Parameter("entries", steps(50, 990, 10),
        ("How many entries does the event log of the {n} hold?", "How many past messages does the {n} remember?"),
        ("size of the event log", "number of messages it remembers")),
    "reset_hold": Parameter("s", steps(2, 19, 1),
        ("For how long is the acknowledge button of the {n} held down?",
            "How many seconds must the key be pressed to clear a fault of the {n}?"),
        ("holding time of the acknowledge button", "pressing time to clear a fault")),
    "restarts": Parameter("", steps(2, 14, 1),
        ("How often does the {n} try to restart by itself after a fault?",
            "After how many attempts does a faulty {n} stay off?"),
        ("number of automatic restarts", "count of attempts to start again")),
    "discharge": Parameter("min", steps(3, 32, 1),
        ("How long must one wait before the cover of the {n} is opened?",
            "How many minutes must pass before it is safe to reach inside the {n}?"),
        ("waiting time before the cover is opened", "safety delay before reaching inside")),
    "dilution": Parameter("ml", steps(8, 95, 3),
        ("How much cleaning agent per litre of water is used on the {n}?",
            "How strong is the solution for wiping the {n}, in millilitres per litre?"),
        ("dose of cleaning agent per litre", "strength of the wiping solution")),
    "warranty": Parameter("months", steps(12, 66, 2),
        ("How long is the warranty of the {n}?",
            "For how many months is the buyer of the {n} covered against defects?"),
        ("warranty period", "cover against defects")),
    "availability": Parameter("years", steps(5, 25, 1),
        ("For how many years after the end of production are spare parts of the {n} supplied?",
            "How long can replacement parts be had once the {n} is no longer made?"),
        ("supply of spare parts after the end of production", "time for which replacement parts can be had")),
    "battery_years": Parameter("years", steps(2, 15, 1),
        ("How long does the buffer battery of the {n} last?",
            "When is the battery that keeps the clock of the {n} running used up?"),
        ("life of the buffer battery", "battery life of the clock")),
    "supply": Parameter("V", (100, 110, 115, 120, 127, 200, 208, 220, 230, 240, 277, 380, 400, 440, 480),
        ("What is the rated voltage of the {n}?", "Which mains voltage is the {n} made for?"),
        ("rated voltage", "mains voltage")),
    "power": Parameter("W", steps(180, 3900, 20),
        ("What is the rated power of the {n}?", "How many watts does the {n} take at full load?"),
        ("rated power", "consumption at full load")),
    "leakage": Parameter("mA", steps(0.3, 6.8, 0.1),
        ("What leakage current does the {n} have?", "How much current does the {n} let flow to earth?"),
        ("leakage current", "current to earth")),
    "ambient_low": Parameter("°C", steps(-12, 12, 1),
        ("From what ambient temperature may the {n} be operated?", "What is the coldest room in which the {n} works?"),
        ("lower limit of the ambient temperature", "temperature to which its room may fall")),
    "ambient_high": Parameter("°C", steps(31, 62, 1),
        ("Up to what ambient temperature may the {n} be operated?", "How hot may the room with the {n} become?"),
        ("upper limit of the ambient temperature", "temperature to which its room may rise")),
    "humidity": Parameter("%", steps(55, 95, 1),
        ("What relative humidity may the {n} be exposed to?", "How damp may the air around the {n} be?"),
        ("permitted relative humidity", "dampness of the air it stands")),
    "altitude": Parameter("m", steps(900, 4300, 50),
        ("Up to what altitude may the {n} be used?", "How high above the sea may the {n} be set up?"),
        ("maximum altitude", "height above the sea for its use")),
    "weight": Parameter("kg", steps(6.4, 79, 0.3),
        ("How much does the {n} weigh?", "What is the mass of the {n} without its packaging?"), ("weight", "mass")),
    "packed": Parameter("kg", steps(80.1, 118, 0.4),
        ("What is the shipping weight of the {n}?", "How heavy is the boxed {n}?"),
        ("shipping weight", "mass in its box")),
    "width": Parameter("mm", steps(210, 890, 5),
        ("How wide is the {n}?", "What does the {n} measure from left to right?"),
        ("width", "extent from left to right")),
    "height": Parameter("mm", steps(190, 1450, 5),
        ("How tall is the {n}?", "What does the {n} measure from bottom to top?"),
        ("height", "extent from bottom to top")),
    "depth": Parameter("mm", steps(150, 870, 5),
        ("How deep is the {n}?", "What does the {n} measure from front to back?"),
        ("depth", "extent from front to back")),
    "noise": Parameter("dB(A)", steps(31, 76, 1),
        ("What is the sound pressure level of the {n}?", "How loud is the {n}?"), ("sound pressure level", "loudness")),
}  # fmt: skip
