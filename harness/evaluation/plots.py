"""The common style of all plots: figures without a display, grid, legend, size."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def axes_of(panels: int = 1, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side, or in several equal rows."""
    columns = panels // rows
    figure = Figure(figsize=(9 if columns == 1 else 7 * columns, 5.5 * rows), dpi=120, layout="constrained")
    return figure, [figure.add_subplot(rows, columns, place + 1) for place in range(panels)]


def save(figure: Figure, panels: Sequence[Axes], path: Path) -> None:
    """Add grids and legends, and write a PNG."""
    for axes in panels:
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize="small")
    write_png(figure, path)


def write_png(figure: Figure, path: Path) -> None:
    """Write a figure; `Figure.savefig` would draw it twice."""
    FigureCanvasAgg(figure).print_png(path)


def plot_recall(curves: Mapping[str, Sequence[tuple[int, float]]], title: str, path: Path) -> None:
    """Recall in per cent by k, one line per row."""
    figure, (axes,) = axes_of()
    for name, points in curves.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set(xlabel="k", ylabel="recall, %", title=title)
    axes.set_xticks(sorted({k for points in curves.values() for k, _ in points}))
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    write_png(figure, path)
