"""Ventilation units with heat recovery of the library."""

from datamodules.world.library.family import Family
from datamodules.world.library.parameters import Parameter, steps

VENTILATION = Family(
    maker="Aerolind",
    series="VX",
    unit="ventilation unit",
    models=("120", "150", "180", "250", "255", "300", "360", "450"),
    wording="formal",
    style="columns",
    terms={
        "use": "supplying rooms with fresh air and for recovering heat from the extracted air",
        "misuse": "to extract greasy, explosive or aggressive vapours",
        "hazard": "rotating fans, sharp edges of the heat exchanger and hygienic risks from wet filters",
        "design": (
            "Two fans move outside air and extract air through a counterflow heat exchanger, where they pass each "
            "other without mixing. A bypass flap leads outside air around the heat exchanger on summer nights. Filters "
            "on both sides keep dust out of the exchanger. {figure:blocks} shows the air paths."
        ),
        "curve": "Pressure over air flow",
    },
    parameters={
        "bypass": Parameter("°C", steps(17, 28, 0.5),
            ("At what room temperature does the bypass of the {n} open?",
                "How warm must the rooms be until the {n} leads air past its exchanger?"),
            ("opening temperature of the bypass", "room temperature for the bypass")),
        "drain": Parameter("mm", steps(40, 160, 5),
            ("What height must the siphon of the {n} have?", "How tall is the water trap under the {n}?"),
            ("height of the siphon", "height of the water trap")),
        "frost": Parameter("°C", steps(-11, 4, 0.5),
            ("At what outside temperature does the frost protection of the {n} begin?",
                "How cold must it be outdoors until the {n} heats its intake?"),
            ("outside temperature for frost protection", "temperature at which the intake is heated")),
        "boost": Parameter("min", steps(10, 90, 5),
            ("How long does the intensive ventilation of the {n} last?",
                "For how many minutes does the {n} run at full speed on request?"),
            ("duration of intensive ventilation", "time at full speed")),
        "soak": Parameter("min", steps(15, 95, 5),
            ("How long does the heat exchanger of the {n} soak in warm water?",
                "For how many minutes is the exchanger of the {n} left in its bath?"),
            ("soaking time of the heat exchanger", "time of its bath")),
        "airflow": Parameter("m³/h", steps(110, 640, 10),
            ("What is the maximum air flow of the {n}?", "How much air can the {n} move per hour?"),
            ("maximum air flow", "air moved per hour")),
        "pressure": Parameter("Pa", steps(90, 380, 10),
            ("What external pressure can the {n} overcome?", "Against what resistance of ducts can the {n} work?"),
            ("external pressure", "resistance it can work against")),
    },
    own={
        "description": """
## Summer bypass
The bypass flap is opened by a servomotor if the room temperature exceeds {bypass} and the outside air is cooler than \
the room. The flap closes when one of the conditions is no longer met. During the heating period the function is \
blocked.
""",
        "installation": """
## Ducts and condensate
Ducts in unheated rooms must be insulated so that no moisture condenses on them. Flexible hoses are to be laid \
straight and without sharp bends; sound absorbers are fitted in both ducts that lead to the rooms.
### Condensate drain
Connect the condensate drain to the sewer through a siphon. The siphon must have a height of {drain} and must be \
filled with water before the fans are started. A drain that runs dry draws in foul air.
""",
        "operation": """
## Intensive ventilation
Intensive ventilation is started by the push-button in the bathroom or in the kitchen. Both fans run at the highest \
level for {boost}. Afterwards the former level is restored. The function can be ended early by pressing the \
push-button again.
## Frost protection
Below an outside temperature of {frost} the preheater is switched on in steps. If its power is not sufficient, the \
supply fan is slowed down. Open fireplaces require a safety device that switches off both fans.
""",
        "maintenance": """
## Cleaning the heat exchanger
Remove the front cover and pull the heat exchanger out by its strap. Let it soak for {soak} in warm water with a \
little washing-up liquid, and rinse it with clear water from both sides. It must be dry before it is pushed back on \
its rails. The fins must not be touched with tools.
""",
    },
    specifications=("Maximum air flow | {airflow}", "External pressure | {pressure}"),
    components=("Outside filter", "Preheater", "Heat exchanger", "Supply fan", "Extract filter", "Extract fan"),
    terminals=("Supply L", "Supply N", "Earth", "Push-button", "Humidity sensor", "Fire alarm contact", "Preheater",
        "Bus A"),
    errors=(
        ("Supply fan does not turn", "Remove what blocks it, check the plug"),
        ("Extract fan does not turn", "Remove what blocks it, check the plug"),
        ("Outside air sensor", "Replace the sensor"),
        ("Extract air sensor", "Replace the sensor"),
        ("Bypass flap blocked", "Clean the guide of the flap"),
        ("Filter clogged", "Replace both filters"),
        ("Frost protection at its limit", "Check the preheater"),
        ("Condensate level too high", "Clean drain and siphon"),
        ("Front cover open", "Close the cover, check the switch"),
        ("Humidity sensor", "Check the cable of the sensor"),
        ("Preheater too hot", "Check the air flow"),
        ("Bus interrupted", "Check termination and shield"),
        ("Fire alarm active", "Clarify the cause before acknowledging"),
        ("Clock not set", "Replace the buffer battery"),
    ),
    parts=("Outside air filter", "Extract air filter", "Heat exchanger", "Supply fan", "Control board",
        "Bypass servomotor", "Condensate tray", "Cover seal", "Room sensor"),
    jobs=(
        ("Check the filters", "weeks", "Operator"),
        ("Replace the filters", "weeks", "Operator"),
        ("Clean the air valves", "weeks", "Operator"),
        ("Clean drain and siphon", "weeks", "Fitter"),
        ("Clean the heat exchanger", "operating hours", "Fitter"),
        ("Clean the fans", "operating hours", "Fitter"),
        ("Measure the air flow of all rooms", "operating hours", "Customer service"),
    ),
    joints=(("Fan housing", "M6"), ("Wall bracket", "M10"), ("Front cover", "M5"), ("Duct collar", "M4"),
        ("Bypass servomotor", "M3")),
    axes=("Air flow", "Pressure"),
    asked={
        "boost": ("What does intensive ventilation of the {n} do?", "Tell me about full-speed airing with the {n}."),
        "frost": ("How does the {n} protect itself against frost?", "Tell me what the {n} does on icy days."),
        "soak": ("Describe how the heat exchanger of the {n} is cleaned.", "Tell me how to wash the core of the {n}."),
    },
)  # fmt: skip
