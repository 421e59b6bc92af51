"""Validation plots: precision-recall curve, reliability diagram, confusion matrix.  Matplotlib without a display."""

from pathlib import Path
from typing import TYPE_CHECKING

from common.files import write_atomically
from trainers.run.classification_metrics import Floats, average_precision, confusion, precision_recall, reliability

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARGINS = {"left": 0.16, "bottom": 0.13, "right": 0.96, "top": 0.91}  # fixed: to compute them takes as long as to draw


def validation_figures(probabilities_P: Floats, labels_P: Floats, threshold: float) -> dict[str, "Figure"]:
    """Figures by name, for P examples and the decision threshold."""
    from matplotlib.figure import Figure  # no pyplot: no global state, no display

    figures = {name: Figure(figsize=(5, 4), dpi=120) for name in ("precision_recall", "reliability", "confusion")}
    for figure in figures.values():
        figure.subplots_adjust(**MARGINS)
    precision, recall = precision_recall(probabilities_P, labels_P)
    axes = figures["precision_recall"].subplots()
    axes.step(recall, precision, where="post")  # recall falls along the curve: the area drawn is the average precision
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
    axes.set_title(f"average precision {average_precision(probabilities_P, labels_P):.3f}")

    mean, share, counts = reliability(probabilities_P, labels_P)
    axes = figures["reliability"].subplots()
    axes.plot([0, 1], [0, 1], linestyle=":", color="grey")
    axes.scatter(mean, share, s=20 + 180 * counts / counts.max())
    axes.set(xlabel="predicted probability", ylabel="share of positives", xlim=(0, 1), ylim=(0, 1))
    axes.set_title("reliability (area: number of examples)")

    counts_22 = confusion(probabilities_P, labels_P, threshold)
    axes = figures["confusion"].subplots()
    axes.imshow(counts_22, cmap="Blues")
    for true in (0, 1):
        for decided in (0, 1):
            shade = "white" if counts_22[true, decided] > counts_22.max() / 2 else "black"
            axes.text(decided, true, str(counts_22[true, decided]), ha="center", va="center", color=shade)
    axes.set(xticks=[0, 1], yticks=[0, 1], xticklabels=["negative", "positive"], yticklabels=["negative", "positive"])
    axes.set(xlabel="decided", ylabel="true", title=f"at threshold {threshold:.3f}")
    return figures


def save_figures(figures: dict[str, "Figure"], folder: Path) -> None:
    """Write each figure to `folder/<name>.png`, atomically."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for name, figure in figures.items():  # by a canvas: `savefig` would draw each figure twice
        write_atomically(folder / f"{name}.png", FigureCanvasAgg(figure).print_png)
