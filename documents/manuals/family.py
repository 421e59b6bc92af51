"""The common content of one product family's manuals, from a file `family_NAME.json`."""

from dataclasses import dataclass, field

from documents.manuals.parameters import Parameter, parameters_of, read_table


@dataclass(frozen=True, slots=True)
class Family:
    """A maker's product family.

    Rows of tables lack the values that differ by product: codes, numbers, prices, intervals, torques.
    """

    maker: str
    series: str  # a model is "SERIES NUMBER"
    unit: str  # what the text calls a product, e.g. "pump"
    models: list[str]  # eight
    wording: str  # formal, brief or technical
    style: str  # a key of `styles.STYLES`
    terms: dict[str, str]  # use, misuse, hazard, design, curve
    parameters: dict[str, Parameter]  # of this family alone
    own: dict[str, list[str]]  # place in the wording's template -> lines of sections of this family alone
    specifications: list[str]  # rows of the table of electrical data: "Label | {parameter}"
    components: list[str]  # boxes of the block diagram, in the order of flow
    terminals: list[str]  # signals of the terminal block
    errors: list[list[str]]  # fault and remedy
    parts: list[str]
    jobs: list[list[str]]  # maintenance: work, unit of its interval, by whom
    joints: list[list[str]]  # screw connection and thread
    axes: list[str]  # of the curve
    asked: dict[str, list[str]] = field(default_factory=dict)  # parameter -> what its paragraph describes


def read_family(name: str) -> Family:
    """A family by the name in its file's."""
    table = read_table(f"family_{name}")
    return Family(**table | {"parameters": parameters_of(table["parameters"])})


FAMILIES = tuple(map(read_family, ("pumps", "ventilation", "coffee", "printers", "drives", "centrifuges")))
