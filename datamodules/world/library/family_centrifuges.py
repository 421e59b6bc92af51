"""Laboratory centrifuges of the library."""

from datamodules.world.library.family import Family
from datamodules.world.library.parameters import Parameter, steps

CENTRIFUGES = Family(
    maker="Sedlab",
    series="Rotana",
    unit="centrifuge",
    models=("16", "16R", "22", "22R", "30", "30R", "46", "46R"),
    wording="technical",
    style="booktabs",
    terms={
        "use": "separation of suspensions of different density in laboratories",
        "misuse": "with flammable, explosive or radioactive substances",
        "hazard": "bursting rotors, infectious aerosols and crushing by the lid",
        "design": (
            "A brushless motor drives the rotor through an elastic spindle. The rotor is identified by magnets in its "
            "base, and its permitted speed is monitored twice. Refrigerated models cool the chamber by a compressor. "
            "{figure:blocks} gives an overview of the control."
        ),
        "curve": "Relative centrifugal force over speed",
    },
    parameters={
        "imbalance": Parameter("g", steps(2, 40, 1),
            ("From what imbalance does the {n} switch off?", "What difference in load makes the {n} stop?"),
            ("imbalance for switching off", "difference in load it accepts")),
        "lid": Parameter("s", steps(4, 50, 2),
            ("How long does the lid of the {n} stay locked after standstill?",
                "How many seconds after the end of a run can the {n} be opened?"),
            ("locking time of the lid", "delay before it can be opened")),
        "runup": Parameter("s", steps(11, 95, 2),
            ("How long does the rotor of the {n} take to full speed?",
                "In what time does the {n} accelerate completely?"), ("run-up time", "time to accelerate completely")),
        "autoclave": Parameter("min", steps(8, 40, 1),
            ("How long may a rotor of the {n} be autoclaved?",
                "For how many minutes can the rotor of the {n} be sterilised by steam?"),
            ("autoclaving time of a rotor", "steam time of a rotor")),
        "cycles": Parameter("cycles", steps(8000, 62000, 1500),
            ("After how many cycles must a rotor of the {n} be scrapped?",
                "How many runs does a rotor of the {n} last?"), ("life of a rotor", "runs of a rotor")),
        "rotation": Parameter("rpm", steps(3600, 19800, 300),
            ("What is the maximum speed of the {n}?", "How many revolutions per minute can the {n} reach?"),
            ("maximum speed", "revolutions per minute")),
        "capacity": Parameter("ml", steps(60, 1600, 20),
            ("What is the capacity of the {n}?", "How much liquid can be spun at once in the {n}?"),
            ("capacity", "liquid spun at once")),
    },
    own={
        "description": """
## Imbalance detection
An acceleration sensor at the motor detects uneven loading. The drive is tripped when the imbalance exceeds \
{imbalance}. Opposite places of the rotor shall be loaded with vessels of the same type and the same filling; empty \
places are balanced with water.
""",
        "installation": """
## Bench
The bench shall carry four times the net weight of the {unit} without resonance. A safety zone of thirty centimetres \
around the {unit} is kept free of persons and of hazardous substances during a run.
""",
        "operation": """
## Run
1. Load the rotor symmetrically and fasten its lid.
2. Set speed and time. The run-up takes {runup} at full load.
3. Start the run and remain near until full speed is reached.
4. After standstill the lid is released with a delay of {lid}.
## Emergency release
The lid can be released mechanically after a power failure. The isolator is opened first, and standstill of the rotor \
is verified through the sight glass. The plug on the right side is removed, and the cord behind it is pulled once.
""",
        "maintenance": """
## Rotors
Rotors are subject to fatigue, and corrosion makes it worse. The run counter is compared with the permitted life of \
the rotor: it shall be scrapped after {cycles}. Scratched rotors are scrapped at once.
### Sterilisation
Rotors and their lids may be autoclaved for {autoclave} at 121 degrees. Seals are removed beforehand and replaced \
after ten sterilisations. Rotors are dried upside down.
""",
    },
    specifications=("Maximum speed | {rotation}", "Capacity | {capacity}"),
    components=("Power supply", "Control board", "Motor", "Spindle", "Rotor", "Lid lock"),
    terminals=("Supply L", "Supply N", "Earth", "Lid lock", "Rotor magnet", "Chamber sensor", "Vibration sensor",
        "Door contact"),
    errors=(
        ("Imbalance", "Load the rotor symmetrically"),
        ("Lid not closed", "Press the lid down on both sides"),
        ("Lid lock", "Clean the latches"),
        ("Rotor not identified", "Replace the rotor, check its magnets"),
        ("Overspeed", "Call the service, do not restart"),
        ("Speed signal missing", "Call the service"),
        ("Motor too hot", "Wait, clean the air inlet"),
        ("Chamber too warm", "Defrost and dry the chamber"),
        ("Compressor pressure", "Clean the condenser"),
        ("Undervoltage", "Check the circuit"),
        ("Power failure in the run", "Wait for standstill, then restart"),
        ("Vibration sensor", "Check the cable of the sensor"),
        ("Fieldbus timeout", "Check node address and termination"),
        ("Real-time clock", "Replace the lithium cell"),
    ),
    parts=("Swing-out rotor", "Angle rotor", "Lid seal", "Gas spring", "Lid lock assembly", "Motor damper",
        "Control board", "Chamber gasket", "Rotor nut"),
    jobs=(
        ("Grease the rotor pins", "runs", "Operator"),
        ("Inspect the rotors", "runs", "Operator"),
        ("Clean the chamber", "days", "Operator"),
        ("Clean the condenser", "weeks", "Operator"),
        ("Replace the gas springs", "runs", "Technician"),
        ("Replace the motor dampers", "runs", "Technician"),
        ("Verify the speed", "weeks", "Technician"),
    ),
    joints=(("Rotor nut", "M10"), ("Motor mount", "M8"), ("Lid hinge", "M6"), ("Compressor foot", "M5"),
        ("Chamber ring", "M4")),
    axes=("Speed", "Force"),
    asked={
        "lid": ("Describe how a run is carried out with the {n}.",
            "What are the steps of spinning samples in the {n}?"),
        "imbalance": ("How does the {n} react to uneven loading?",
            "Tell me what the {n} does about a badly balanced load."),
        "autoclave": ("Describe how rotors of the {n} are sterilised.",
            "Tell me how to treat parts of the {n} with steam."),
    },
)  # fmt: skip
