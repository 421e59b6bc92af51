"""The common style of all plots: figures without a display, grid, legend, size."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def axes_of(panels: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side."""
    figure = Figure(figsize=(9 if panels == 1 else 7 * panels, 5.5), dpi=120, layout="constrained")
    return figure, [figure.add_subplot(1, panels, place + 1) for place in range(panels)]


def save(figure: Figure, panels: Sequence[Axes], path: Path) -> None:
    """Add grids and legends, and write a PNG; `Figure.savefig` would draw it twice."""
    for axes in panels:
        axes.grid(alpha=0.3)
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    FigureCanvasAgg(figure).print_png(path)


def plot_recall(curves: Mapping[str, Sequence[tuple[int, float]]], title: str, path: Path) -> None:
    """Recall in per cent by k, one line per row."""
    figure, panels = axes_of()
    for name, points in curves.items():
        panels[0].plot(*zip(*points, strict=True), marker="o", label=name)
    panels[0].set(xlabel="k", ylabel="recall, %", title=title)
    panels[0].set_xticks(sorted({k for points in curves.values() for k, _ in points}))
    save(figure, panels, path)
