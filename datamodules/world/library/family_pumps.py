"""Circulation pumps of the library."""

from datamodules.world.library.family import Family
from datamodules.world.library.parameters import Parameter, steps

PUMPS = Family(
    maker="Norvik",
    series="CP",
    unit="pump",
    models=("210", "215", "240", "245", "320", "325", "410", "480"),
    wording="formal",
    style="ruled",
    terms={
        "use": "circulating heating water and water-glycol mixtures in closed systems",
        "misuse": "for drinking water, fuels or abrasive liquids",
        "hazard": "hot surfaces, escaping hot liquid and unexpected starting",
        "design": (
            "The pump has a wet rotor, whose bearings are lubricated by the pumped liquid. Its motor is supplied by a "
            "frequency converter, which adapts the speed to the demand of the system. Sensors in the volute measure "
            "temperature and differential pressure. The principal components are shown in {figure:blocks}."
        ),
        "curve": "Head over flow rate",
    },
    parameters={
        "prefill": Parameter("bar", steps(0.6, 3.2, 0.1),
            ("What static pressure does the system with the {n} need before it is bled?",
                "To what pressure is the plant filled before air is let out of the {n}?"),
            ("static pressure before bleeding", "filling pressure")),
        "bleed": Parameter("min", steps(4, 28, 1),
            ("How long does the venting routine of the {n} run?",
                "How many minutes does the {n} take to get rid of air?"),
            ("duration of the venting routine", "time to get rid of air")),
        "glycol": Parameter("%", steps(15, 58, 1),
            ("What glycol content may the liquid in the {n} have?",
                "How much antifreeze does the {n} tolerate in the water?"),
            ("permitted glycol content", "share of antifreeze")),
        "dry_run": Parameter("s", steps(6, 60, 2),
            ("How fast does the dry-running protection of the {n} respond?",
                "After how many seconds without liquid does the {n} stop itself?"),
            ("response time of the dry-running protection", "time until it stops without liquid")),
        "seal_wait": Parameter("h", steps(1, 12, 0.5),
            ("How long must the new seal of the {n} rest before the system is filled?",
                "For how many hours does a replaced seal of the {n} settle?"),
            ("resting time of a new seal", "time for a seal to settle")),
        "head": Parameter("m", steps(4, 24, 0.5),
            ("What is the maximum head of the {n}?", "How high can the {n} lift the liquid?"),
            ("maximum head", "lift of the liquid")),
        "flow": Parameter("m³/h", steps(2.5, 48, 0.5),
            ("What is the maximum flow rate of the {n}?", "How much liquid can the {n} move per hour?"),
            ("maximum flow rate", "liquid moved per hour")),
    },
    own={
        "description": """
## Control modes
The control mode is selected at the control panel. With constant pressure the differential pressure is kept at its set \
value irrespective of the flow. With variable pressure it falls in proportion to the flow, which saves energy in \
systems with radiators. With constant speed the pump is not controlled at all, and is intended for loading storage \
tanks.
""",
        "installation": """
## Pipework
Install shut-off valves on both sides of the pump, and support the pipes so that no forces act on the flanges. The \
arrow on the volute points in the direction of flow.
### Permitted liquids
Heating water must comply with the regulations for its treatment. The glycol content must not exceed {glycol}. \
Mixtures with more than a fifth of glycol require a correction of the duty point.
""",
        "operation": """
## Venting
1. Fill the system to a static pressure of {prefill}.
2. Start the venting routine in the menu. It runs for {bleed} at changing speed.
3. Close the air vent when liquid without bubbles emerges.
4. Fill up the system if the pressure has fallen.
## Dry-running protection
Running without liquid destroys the bearings. The electronics detect it by the motor current and switch the motor off \
after {dry_run}. The fault is stored, and the pump must be vented before it is acknowledged.
""",
        "maintenance": """
## Replacing the shaft seal
Close the shut-off valves, let the pump cool down and release the pressure. Remove the motor head after the four \
screws have been loosened crosswise, and replace the seal together with its counter ring. Leave the new seal at rest \
for {seal_wait} before the system is filled. Do not use oil or grease on the faces of the seal.
""",
    },
    specifications=("Maximum head | {head}", "Maximum flow rate | {flow}"),
    components=("Mains filter", "Converter", "Motor", "Rotor", "Impeller", "Volute"),
    terminals=("Supply L", "Supply N", "Earth", "Fault relay", "Temperature sensor", "External release",
        "Analogue input", "Bus A"),
    errors=(
        ("Motor temperature too high", "Let the motor cool, check the liquid temperature"),
        ("Rotor blocked", "Remove deposits from the impeller"),
        ("Dry running", "Fill and vent the system"),
        ("Undervoltage", "Check the supply line"),
        ("Overvoltage", "Check the supply line and the surge arrester"),
        ("Differential pressure sensor", "Replace the sensor cable"),
        ("Temperature sensor open", "Check the plug of the sensor"),
        ("Reverse flow", "Check the non-return valve"),
        ("Converter overcurrent", "Call the customer service"),
        ("Fan of the electronics", "Clean or replace the fan"),
        ("Bus interrupted", "Check termination and shield"),
        ("Twin pump not found", "Check the link cable"),
        ("Memory error", "Load the factory settings"),
        ("Clock not set", "Replace the buffer battery"),
    ),
    parts=("Motor head", "Shaft seal", "Impeller", "Volute gasket", "Control board", "Pressure sensor", "Air vent",
        "Flange set", "Thermal insulation"),
    jobs=(
        ("Check noise and vibration", "weeks", "Operator"),
        ("Clean the strainer", "weeks", "Operator"),
        ("Vent the system", "weeks", "Operator"),
        ("Check the glycol content", "weeks", "Fitter"),
        ("Replace the shaft seal", "operating hours", "Fitter"),
        ("Replace the bearings", "operating hours", "Customer service"),
        ("Inspect the insulation of the winding", "operating hours", "Electrician"),
    ),
    joints=(("Motor head to volute", "M8"), ("Flange bolts", "M16"), ("Air vent", "G 3/8"),
        ("Cover of the electronics", "M4"), ("Pressure sensor", "G 1/4")),
    axes=("Flow rate", "Head"),
    asked={
        "dry_run": ("What happens when the {n} runs without liquid?",
            "Tell me how the {n} reacts when it has run empty."),
        "bleed": ("Describe how air is removed from the {n}.", "What are the steps of getting the air out of the {n}?"),
        "seal_wait": ("Describe how the shaft seal of the {n} is replaced.",
            "Tell me how to put a new seal into the {n}."),
    },
)  # fmt: skip
