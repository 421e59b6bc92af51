"""Frequency inverters of the library."""

from datamodules.world.library.family import Family
from datamodules.world.library.parameters import Parameter, steps

DRIVES = Family(
    maker="Tessin Drives",
    series="FD",
    unit="inverter",
    models=("1007", "1015", "1022", "1040", "2055", "2075", "2110", "2150"),
    wording="technical",
    style="compact",
    terms={
        "use": "speed control of three-phase motors in fans, conveyors and machine tools",
        "misuse": "on motors in explosive atmospheres or for lifting persons",
        "hazard": "arcs caused by unplugging under load, hot heat sinks and moving machine parts",
        "design": (
            "A rectifier charges the intermediate circuit. From it, the output stage generates a voltage of variable "
            "frequency by pulse width modulation. Regenerative energy is dissipated by a brake chopper. Control "
            "electronics and power section are separated by optocouplers; see {figure:blocks}."
        ),
        "curve": "Output current over switching frequency",
    },
    parameters={
        "switching": Parameter("kHz", steps(2, 16, 0.5),
            ("What switching frequency is preset on the {n}?", "How fast do the transistors of a new {n} switch?"),
            ("preset switching frequency", "switching rate of the transistors")),
        "ramp": Parameter("s", steps(0.8, 30, 0.4),
            ("What acceleration time is preset on the {n}?",
                "In how many seconds does a motor on a new {n} come up to speed?"),
            ("preset acceleration time", "time to come up to speed")),
        "brake": Parameter("ohm", steps(18, 220, 4),
            ("What is the minimum value of the brake resistor of the {n}?",
                "How small may the resistor for braking on the {n} be?"),
            ("minimum brake resistor", "limit of the resistor for braking")),
        "motor_cable": Parameter("m", steps(10, 160, 5),
            ("How long may the motor cable of the {n} be?", "Over what distance can the motor be wired to the {n}?"),
            ("maximum length of the motor cable", "distance to the motor")),
        "reform": Parameter("h", steps(1, 9, 0.5),
            ("How long does reforming the capacitors of the {n} take?",
                "For how many hours is reduced voltage applied to the {n} to revive its capacitors?"),
            ("duration of reforming", "time at reduced voltage")),
        "current": Parameter("A", steps(2.2, 38, 0.4),
            ("What is the rated output current of the {n}?", "How many amperes can the {n} deliver to a motor?"),
            ("rated output current", "amperes for the motor")),
        "overload": Parameter("%", steps(120, 215, 5),
            ("What overload does the {n} permit for a minute?",
                "How far beyond its rating can the {n} go for a minute?"),
            ("overload for a minute", "reserve beyond the rating")),
    },
    own={
        "description": """
## Modulation
The switching frequency of the output stage is preset to {switching}. A higher value lowers the noise of the motor, \
but raises losses, so that the output current must be derated as shown in {figure:curve}. The value is reduced \
automatically when the heat sink becomes hot.
""",
        "installation": """
## Motor connection
Motor and {unit} shall share one earthing bar. A shielded cable is connected with a clamp over its full circumference.
### Motor cable
The motor cable shall not exceed {motor_cable}. Longer cables require an output choke, because reflected waves stress \
the winding. Contactors in the motor cable are operated without current only.
### Brake resistor
The resistance of the brake resistor shall be {brake} or higher. It is mounted on a surface that does not burn, and \
its thermal contact is wired to the digital input. A short-circuited chopper trips the input fuse.
""",
        "operation": """
## Ramps
The motor reaches its nominal speed in {ramp} unless the parameter is changed. S-shaped ramps reduce jerk on \
conveyors. Deceleration is extended automatically when the voltage of the intermediate circuit rises, unless a brake \
resistor is configured.
## Automatic tuning
1. Enter the figures of the motor's rating plate.
2. Decouple the load, if possible.
3. Start the measurement and keep clear of the shaft.
4. Store the measured values.
""",
        "maintenance": """
## Reforming capacitors
Electrolytic capacitors lose their oxide layer without voltage. The {unit} is connected to a variable transformer and \
held at a reduced voltage for {reform}. The voltage is then raised to its nominal value in three steps. Capacitors \
that become warm are replaced.
""",
    },
    specifications=("Output current | {current}", "Overload, 60 s | {overload}"),
    components=("Line filter", "Rectifier", "DC link", "Brake chopper", "Output stage", "Motor"),
    terminals=("Phase L1", "Phase L2", "Phase L3", "Motor contactor", "Thermal contact", "Enable input", "Set value",
        "Alarm relay"),
    errors=(
        ("Overcurrent in acceleration", "Extend the ramp, check the motor"),
        ("Overcurrent at constant speed", "Check the load"),
        ("Overvoltage of the DC link", "Extend the deceleration, fit a resistor"),
        ("Undervoltage of the DC link", "Check the line phases"),
        ("Earth fault", "Measure the insulation of cable and motor"),
        ("Heat sink too hot", "Clean the fan, lower the switching frequency"),
        ("Motor too hot", "Reduce the load, fit forced cooling"),
        ("Brake resistor too hot", "Extend the deceleration"),
        ("Phase loss at the output", "Check motor cable and contactor"),
        ("Set value below 4 mA", "Check the sensor loop"),
        ("Encoder signal", "Check shield and supply of the encoder"),
        ("Fieldbus timeout", "Check node address and termination"),
        ("Parameter memory", "Load the factory setting"),
        ("Real-time clock", "Replace the lithium cell"),
    ),
    parts=("Cooling fan", "Control board", "Output module", "Capacitor bank", "Display unit", "Fieldbus card",
        "Shield clamp", "Terminal cover", "Line choke"),
    jobs=(
        ("Clean the heat sink", "weeks", "Operator"),
        ("Check the terminals", "weeks", "Electrician"),
        ("Replace the filter mat", "weeks", "Operator"),
        ("Replace the cooling fan", "operating hours", "Technician"),
        ("Replace the capacitor bank", "operating hours", "Manufacturer"),
        ("Save the parameters", "weeks", "Technician"),
        ("Measure the insulation", "operating hours", "Electrician"),
    ),
    joints=(("Power module", "M5"), ("Busbar", "M8"), ("Earth bolt", "M6"), ("Fan frame", "M4"),
        ("Housing cover", "M3")),
    axes=("Switching frequency", "Current"),
    asked={
        "brake": ("What must be observed when a brake resistor is fitted to the {n}?",
            "Tell me about resistors for slowing down with the {n}."),
        "ramp": ("Describe how the {n} accelerates and decelerates a motor.",
            "Tell me how the {n} brings a motor up to speed and down."),
        "reform": ("Describe how the capacitors of the {n} are reformed.",
            "Tell me how to revive the capacitors of an {n} that was long without voltage."),
    },
)  # fmt: skip
