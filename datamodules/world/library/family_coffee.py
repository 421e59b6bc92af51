"""Coffee machines of the library."""

from datamodules.world.library.family import Family
from datamodules.world.library.parameters import Parameter, steps

COFFEE = Family(
    maker="Brisanti",
    series="Duo",
    unit="coffee machine",
    models=("S1", "S2", "S3", "M2", "M4", "L4", "L6", "XL"),
    wording="brief",
    style="shaded",
    terms={
        "use": "making coffee, steam and hot water in offices, canteens and small restaurants",
        "misuse": "outdoors or without somebody in charge of it",
        "hazard": "hot steam, hot water and the moving blades of the grinder",
        "design": (
            "A grinder above each brewing unit grinds fresh beans. The pump pushes water through the heat exchanger in "
            "the boiler, and from there through the ground coffee. Steam for milk comes from the upper part of the "
            "boiler. See {figure:blocks} for the way that the water takes."
        ),
        "curve": "Water temperature after the first cup",
    },
    parameters={
        "brew": Parameter("°C", steps(86, 97, 0.5),
            ("At what temperature does the {n} brew?", "How hot is the water when it meets the coffee in the {n}?"),
            ("brewing temperature", "water heat for coffee")),
        "dose": Parameter("g", steps(6.5, 21, 0.5),
            ("How much coffee does the {n} grind for a cup?",
                "What amount of ground beans goes into one portion of the {n}?"),
            ("dose of coffee per cup", "ground beans per portion")),
        "descale": Parameter("l", steps(60, 900, 20),
            ("After how much water does the {n} have to be descaled?",
                "How many litres may pass through the {n} until lime must be removed?"),
            ("water between two descalings", "litres until lime must be removed")),
        "hardness": Parameter("°dH", steps(3, 18, 0.5),
            ("Up to what water hardness can the {n} be used without a softener?",
                "How hard may the tap water for the {n} be?"),
            ("permitted water hardness", "hardness of tap water it can take")),
        "soak_night": Parameter("min", steps(10, 60, 2),
            ("How long are the milk parts of the {n} left in cleaning liquid?",
                "For how many minutes do the hoses for milk of the {n} lie in the bath?"),
            ("cleaning time of the milk parts", "bath of the milk hoses")),
        "tank": Parameter("l", steps(2.5, 14, 0.5),
            ("How much water does the tank of the {n} hold?", "What volume of water can be filled into the {n}?"),
            ("content of the water tank", "volume of water it takes")),
        "boiler": Parameter("bar", steps(0.8, 2.6, 0.1),
            ("What is the pressure in the boiler of the {n}?", "Under what pressure is the steam of the {n}?"),
            ("boiler pressure", "steam pressure")),
    },
    own={
        "description": """
## Choosing beans
Fill in beans only, never ground coffee, sugar or instant powder. Very dark beans are oily and make the grinder slip. \
Each {unit} leaves our house with {dose} of coffee set for a cup. You can make it stronger or milder in the menu.
""",
        "installation": """
## Water
You can use the tank, or a fixed line with a stop valve and a backflow preventer. Let two litres run through before \
the first cup.
### Hard water
Lime is the enemy of every boiler. Without a softener the water may have {hardness} at most. Test strips are in the \
box. Ask your waterworks if you are not sure.
""",
        "operation": """
## Making coffee
1. Put a cup under the spout and slide the spout down.
2. Choose a drink. The water is heated to {brew} first.
3. Press the button again if you want to stop early.
4. Empty the drawer when the screen asks for it.
## Frothing milk
Fill the jug to a third with cold milk. Hold the steam wand just below the surface until the milk has doubled, then a \
little deeper until the jug becomes too hot to touch. Wipe the wand at once and let steam out for a moment, otherwise \
milk dries inside.
""",
        "maintenance": """
## Lime
The {unit} counts the water and reminds you. Descaling is due after {descale}. Use our tablets only, since vinegar \
eats the seals. The programme takes half an hour and must not be interrupted.
## Milk parts
Take the milk parts off every evening. Put them into cleaning liquid for {soak_night} and rinse them under the tap. \
Look through the hoses against a lamp: no white film may be left.
""",
    },
    specifications=("Water tank | {tank}", "Pressure in the boiler | {boiler}"),
    components=("Water tank", "Pump", "Flow meter", "Boiler", "Grinder", "Brewing unit"),
    terminals=("Supply L", "Supply N", "Earth", "Pump", "Boiler heater", "Level probe", "Grinder motor",
        "Coin checker"),
    errors=(
        ("Tank is empty", "Fill in fresh water"),
        ("Drawer is full", "Empty and rinse the drawer"),
        ("No beans", "Fill the hopper, stir the beans"),
        ("Grinder is blocked", "Remove the beans, look for stones"),
        ("Boiler too hot", "Let it cool down, then call service"),
        ("Boiler does not heat", "Call service"),
        ("No flow of water", "Clean the sieve of the pump"),
        ("Brewing unit is missing", "Push it in until it clicks"),
        ("Drip tray is missing", "Push it in until it clicks"),
        ("Lime in the boiler", "Run the descaling programme"),
        ("Milk cleaning is overdue", "Clean the milk parts"),
        ("Probe for the level", "Wipe the probe, check its wire"),
        ("No network", "Check the wires to the controller"),
        ("Clock not set", "Have the battery replaced"),
    ),
    parts=("Brewing unit", "Grinding discs", "Boiler gasket", "Steam wand", "Water tank lid", "Milk hose set",
        "Drip tray", "Bean hopper", "Pump"),
    jobs=(
        ("Empty and rinse the drawer", "days", "You"),
        ("Clean the milk parts", "days", "You"),
        ("Rinse the brewing unit", "days", "You"),
        ("Grease the brewing unit", "cups", "You"),
        ("Replace the boiler gasket", "cups", "Our service"),
        ("Replace the grinding discs", "cups", "Our service"),
        ("Replace the water filter", "cups", "You"),
    ),
    joints=(("Boiler flange", "M8"), ("Grinder carrier", "M6"), ("Pump bracket", "M5"), ("Steam valve", "G 3/8"),
        ("Side panels", "M4")),
    axes=("Seconds", "Temperature"),
    asked={
        "brew": ("Describe how a drink is made with the {n}.", "What are the steps to a cup from the {n}?"),
        "descale": ("What must be observed when the {n} is descaled?", "Tell me about getting rid of lime in the {n}."),
        "soak_night": ("Describe how the milk parts of the {n} are cleaned.",
            "Tell me what to do with the hoses for milk of the {n} in the evening."),
    },
)  # fmt: skip
