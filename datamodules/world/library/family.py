"""What the manuals of one product family have in common."""

from dataclasses import dataclass, field

from datamodules.world.library.parameters import Parameter


@dataclass(frozen=True, slots=True)
class Family:
    """A maker's product family.

    Rows of tables lack what is drawn for each product: codes, numbers, prices, intervals, torques.
    """

    maker: str
    series: str  # a model is "SERIES NUMBER"
    unit: str  # what the text calls a product, e.g. "pump"
    models: tuple[str, ...]  # eight
    wording: str  # formal, brief or technical
    style: str  # a key of `styles.STYLES`
    terms: dict[str, str]  # use, misuse, hazard, design, curve
    parameters: dict[str, Parameter]  # of this family alone
    own: dict[str, tuple[str, ...]]  # place in the wording's template -> lines of sections of this family alone
    specifications: tuple[str, ...]  # rows of the table of electrical data: "Label | {parameter}"
    components: tuple[str, ...]  # boxes of the block diagram, in the order of flow
    terminals: tuple[str, ...]  # signals of the terminal block
    errors: tuple[tuple[str, str], ...]  # fault and remedy
    parts: tuple[str, ...]
    jobs: tuple[tuple[str, str, str], ...]  # maintenance: work, unit of its interval, by whom
    joints: tuple[tuple[str, str], ...]  # screw connection and thread
    axes: tuple[str, str]  # of the curve
    asked: dict[str, tuple[str, str]] = field(default_factory=dict)  # parameter -> what its paragraph describes
