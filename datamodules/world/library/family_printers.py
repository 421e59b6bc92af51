"""Label printers of the library."""

from datamodules.world.library.family import Family
from datamodules.world.library.parameters import Parameter, steps

PRINTERS = Family(
    maker="Kelso",
    series="LabelPro",
    unit="printer",
    models=("204", "206", "208", "304", "306", "404", "406", "608"),
    wording="brief",
    style="letter",
    terms={
        "use": "printing labels of paper and plastic film by thermal transfer in shops, warehouses and factories",
        "misuse": "in rooms with explosive dust, or with labels whose glue melts",
        "hazard": "the hot print head, the cutter and rollers that can catch hair and sleeves",
        "design": (
            "A motor pulls the labels under the print head. Hundreds of tiny heaters in the head melt the ink of the "
            "ribbon onto the label. A light barrier finds the gap between two labels, and the cutter separates them. "
            "{figure:blocks} shows the path of the labels."
        ),
        "curve": "Darkness at rising speed",
    },
    parameters={
        "head_temp": Parameter("°C", steps(44, 78, 1),
            ("At what head temperature does the {n} pause printing?",
                "How hot may the print head of the {n} get until it takes a break?"),
            ("temperature at which printing pauses", "head heat for a break")),
        "ribbon": Parameter("m", steps(70, 600, 10),
            ("How long may a ribbon for the {n} be?", "What length of ink foil fits into the {n}?"),
            ("maximum ribbon length", "length of ink foil")),
        "core": Parameter("mm", steps(150, 310, 5),
            ("What diameter may a roll of labels in the {n} have?", "How thick a roll of labels fits into the {n}?"),
            ("maximum roll diameter", "thickness of the label roll")),
        "alcohol": Parameter("min", steps(2, 18, 1),
            ("How long must the head of the {n} dry after it was wiped with alcohol?",
                "For how many minutes does alcohol evaporate from the {n} before it prints again?"),
            ("drying time of the head", "evaporation time of alcohol")),
        "feed": Parameter("mm", steps(40, 200, 4),
            ("How far does the {n} feed labels when it measures the gap?",
                "What length of labels does the {n} pull through while it looks for gaps?"),
            ("length fed while measuring the gap", "labels pulled through for the gap")),
        "speed": Parameter("mm/s", steps(76, 356, 7),
            ("How fast does the {n} print?", "What is the top speed of labels in the {n}?"),
            ("printing speed", "top speed of labels")),
        "print_width": Parameter("mm", steps(54, 216, 6),
            ("What is the printing width of the {n}?", "How broad may a picture on a label of the {n} be?"),
            ("printing width", "breadth of the picture")),
    },
    own={
        "description": """
## Labels and ribbons
The {unit} takes rolls of labels with a diameter of up to {core}. Ribbons may be {ribbon} long at most. Choose a \
ribbon that is a little wider than the labels, because bare paper wears out the head. Wax is for paper, resin is for \
plastic film, and mixtures of both are in between.
""",
        "installation": """
## Computer
Connect a computer with a network cable or a USB cable, but not with both. Install the driver before you plug the \
cable in.
### Measuring the gap
The {unit} must know how long your labels are. Choose "Measure" in the menu; it pulls {feed} of labels through and \
looks for gaps. Do this each time you change to another kind of label.
""",
        "operation": """
## Loading labels
1. Open the cover and push the green lever up.
2. Put the roll on the holder, printed side up.
3. Pull the labels under the light barrier and close the lever.
4. Slide the guides until they touch the labels.
## When the head gets hot
Dark pictures and high speed heat the head. Printing pauses at {head_temp} and goes on by itself after a short while. \
If it happens often, lower the darkness or the speed. Never cool the head with a spray.
""",
        "maintenance": """
## Print head
Switch off and open the lever. Wipe the head with a cloth and pure alcohol, always in one direction, and do not touch \
the heaters with your fingers. Give the alcohol {alcohol} to evaporate before you print again. Glue on the roller \
comes off with the same cloth.
""",
    },
    specifications=("Speed | {speed}", "Printing width | {print_width}"),
    components=("Label roll", "Light barrier", "Ribbon", "Print head", "Roller", "Cutter"),
    terminals=("Supply L", "Supply N", "Earth", "Start signal", "Ready signal", "Label taken", "Cutter", "Lamp"),
    errors=(
        ("No labels", "Load a new roll"),
        ("No ribbon", "Load a new ribbon"),
        ("Gap not found", "Measure the gap again"),
        ("Lever is open", "Close the lever"),
        ("Head is too hot", "Wait until it goes on by itself"),
        ("Head is not recognised", "Check the plug of the head"),
        ("Cutter is stuck", "Switch off and free the blade"),
        ("Ribbon wound the wrong way", "Turn the ribbon around"),
        ("Light barrier is dirty", "Blow out the dust"),
        ("Memory is full", "Delete fonts or pictures"),
        ("Unknown command", "Check the driver"),
        ("Label was not taken", "Take the label or turn the sensor off"),
        ("No network", "Check the wires to the controller"),
        ("Clock not set", "Have the battery replaced"),
    ),
    parts=("Print head", "Rubber roller", "Cutter blade", "Ribbon core", "Light barrier", "Label guide", "Drive belt",
        "Main board", "Cover window"),
    jobs=(
        ("Wipe the print head", "rolls", "You"),
        ("Wipe the roller", "rolls", "You"),
        ("Blow out the light barrier", "days", "You"),
        ("Clean the cutter", "days", "You"),
        ("Replace the cutter blade", "rolls", "Our service"),
        ("Replace the drive belt", "operating hours", "Our service"),
        ("Replace the print head", "operating hours", "You"),
    ),
    joints=(("Print head carrier", "M4"), ("Motor plate", "M5"), ("Cutter frame", "M3"), ("Base plate", "M6"),
        ("Roller bearing", "M2.5")),
    axes=("Speed", "Darkness"),
    asked={
        "head_temp": ("What happens when the print head of the {n} becomes too hot?",
            "Tell me how the {n} copes with a heated head."),
        "feed": ("Describe how the gap between labels is measured with the {n}.",
            "Tell me how the {n} learns the length of labels."),
        "alcohol": ("Describe how the print head of the {n} is cleaned.",
            "Tell me how to wipe what prints in the {n}."),
    },
)  # fmt: skip
