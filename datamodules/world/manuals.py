"""Product manuals in Markdown, with questions.  All have the same headings but different values, so that a section
alone does not identify its product."""

from random import Random

from datamodules.world.entities import Entity

# (section, sub-section, sentence, question); {n} product, {v} value
_TOPICS = (
    ("Installation", "Mounting", "Leave a gap of {v} on every side.", "How much room must be left around the {n}?"),
    ("Installation", "Power supply", "Connect the unit to {v}.", "What supply does the {n} need?"),
    ("Operation", "First start", "Hold the main button for {v}.", "How long is the main button of the {n} held down?"),
    ("Operation", "Modes", "The quiet mode is limited to {v}.", "What is the limit of the quiet mode of the {n}?"),
    ("Maintenance", "Cleaning", "Clean the inlet every {v}.", "How often should the inlet of the {n} be cleaned?"),
    ("Maintenance", "Spare parts", "Order seals as part {v}.", "What is the part number of seals for the {n}?"),
    ("Technical data", "Weight", "The unit weighs {v}.", "What is the weight of the {n}?"),
    ("Technical data", "Range", "It works from 5 °C up to {v}.", "Up to what temperature does the {n} work?"),
)


def _value(sub_section: str, random: Random) -> str:
    number = random.randrange
    return {
        "Mounting": f"{number(11, 99)} mm",
        "Power supply": f"{number(12, 480)} V",
        "First start": f"{number(3, 30)} seconds",
        "Modes": f"{number(100, 999)} revolutions per minute",
        "Cleaning": f"{number(20, 400)} hours",
        "Spare parts": f"{random.choice('ABCDEFGH')}-{number(1000, 9999)}",
        "Weight": f"{number(10, 99)}.{number(0, 10)} kg",
        "Range": f"{number(30, 90)} °C",
    }[sub_section]


def write_manual(product: Entity, random: Random) -> tuple[str, list[dict]]:
    """A manual's Markdown text, and FlashRAG question rows without `id` (`metadata` has the heading path)."""
    about = f"Manual of the {product.name}, a {product.category} of {product.year}."
    lines = [f"# {product.name} user manual", "", about]
    rows = []
    section = ""
    for heading, sub_heading, sentence, question in _TOPICS:
        if heading != section:
            section = heading
            lines += ["", f"## {heading}"]
        value = _value(sub_heading, random)
        lines += ["", f"### {sub_heading}", "", sentence.format(v=value), "Switch the unit off before you begin."]
        rows.append(
            {
                "question": question.format(n=product.name),
                "golden_answers": [value],
                "metadata": {"manual": file_name(product), "headings": [lines[0][2:], heading, sub_heading]},
            }
        )
    return "\n".join(lines) + "\n", rows


def file_name(product: Entity) -> str:
    """File name of a product's manual."""
    return product.name.lower().replace(" ", "-") + ".md"
