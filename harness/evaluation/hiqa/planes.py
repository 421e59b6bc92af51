"""Figures 13 to 16 of HiQA (Appendix C.2 to C.5).

Segments in the plane with and without metadata, by principal components and t-SNE.

Shape legend: N points, D dimensions.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from common.records import Question
from harness.evaluation.hiqa.distribution import WITH, WITHOUT, Embedded, Vectors, gold_places, most_shared, unit
from harness.evaluation.hiqa.projection import has_tsne, principal_components, tsne
from harness.evaluation.plots import axes_of, save

MOST_POINTS = 1000  # beside those that a plot is about: t-SNE of more takes minutes
DOCUMENTS = 5  # of Figure 14
NO_TSNE = "t-SNE: not drawn, scikit-learn is not installed: pip install 'lightning-rag[plots]'"

Groups = Mapping[str, NDArray[np.int64]]  # legend -> positions of its points


def planes(
    embedded: Embedded, questions: Sequence[Question], queries: Callable[[Sequence[str]], NDArray], seed: int
) -> dict[str, Callable[[Path], None]]:
    """The four plots by file name.

    Args:
        embedded: The segments.
        questions: With gold segments.
        queries: Embeds the texts of questions.
        seed: Of the draw of documents, of the question and of the other segments, and of t-SNE.
    """
    documents, random = embedded.places_by_document(), Random(seed)
    drawn = sorted(random.sample(sorted(documents), min(DOCUMENTS, len(documents))))
    own = documents[drawn[0]]
    plots: dict[str, Callable[[Path], None]] = {
        "c2_single_document.png": partial(
            draw_together, embedded, {"": own}, None, np.empty(0, dtype=np.int64), f"One document: {drawn[0]}", seed
        ),
        "c3_several_documents.png": partial(
            draw_apart,
            embedded,
            {name: documents[name] for name in drawn},
            np.empty(0, dtype=np.int64),
            "Documents",
            seed,
        ),
    }
    if heading := most_shared(embedded):
        same = embedded.places_by_heading()[heading]
        rest = _others(len(embedded.passages), same, random)
        plots["c4_homologous_sections.png"] = partial(
            draw_apart, embedded, {f'"{heading}"': same}, rest, "Sections of one heading", seed
        )
    gold = gold_places(embedded, questions)
    if known := [number for number, places in enumerate(gold) if places]:
        number = random.choice(known)
        target = np.array(gold[number], dtype=np.int64)
        rest = _others(len(embedded.passages), target, random)
        query_D = unit(queries([questions[number].text]))[0]
        plots["c5_question_and_context.png"] = partial(
            draw_together, embedded, {"gold, ": target}, query_D, rest, f"Question: {questions[number].text[:80]}", seed
        )
    return plots


def draw_together(
    embedded: Embedded,
    groups: Groups,
    query_D: Vectors | None,
    others: NDArray[np.int64],
    title: str,
    seed: int,
    path: Path,
) -> None:
    """Segments with and without metadata in the same plane, and a question.

    Args:
        embedded: The segments.
        groups: What is drawn in colour, with and without metadata.
        query_D: Of the question; None without one.
        others: Positions of further segments, which are drawn grey.
        title: Of the figure.
        seed: Of t-SNE.
        path: The file.
    """
    every = embedded.vectors.items()
    points = {f"other segments, {name}": vectors_ND[others] for name, vectors_ND in every if len(others)}
    points |= {f"{group}{name}": vectors_ND[own] for name, vectors_ND in every for group, own in groups.items()}
    if query_D is not None:
        points["question"] = query_D[None]
    projections = _projections(seed)
    figure, panels = axes_of(len(projections))
    for axes, (method, project) in zip(panels, projections.items(), strict=True):
        _scatter(axes, points, project)
        axes.set(title=method)
    figure.suptitle(title)
    save(figure, panels, path)


def draw_apart(
    embedded: Embedded, groups: Groups, others: NDArray[np.int64], title: str, seed: int, path: Path
) -> None:
    """Segments without metadata in one plane, with metadata in another; arguments as of `draw_together`."""
    projections = _projections(seed)
    figure, panels = axes_of(2 * len(projections), rows=len(projections))
    free = iter(panels)
    for method, project in projections.items():
        for name in (WITHOUT, WITH):
            vectors_ND = embedded.vectors[name]
            points = {"other segments": vectors_ND[others]} if len(others) else {}
            points |= {group: vectors_ND[places] for group, places in groups.items()}
            axes = next(free)
            _scatter(axes, points, project)
            axes.set(title=f"{title}, {name}: {method}")
    save(figure, panels, path)


def _projections(seed: int) -> dict[str, Callable[[Vectors], Vectors]]:
    found: dict[str, Callable[[Vectors], Vectors]] = {"principal components": principal_components}
    return found | ({"t-SNE": partial(tsne, seed=seed)} if has_tsne() else {})


def _scatter(axes: Axes, points: Mapping[str, Vectors], project: Callable[[Vectors], Vectors]) -> None:
    """All points projected together, one colour for each group."""
    flat = project(np.concatenate([*points.values()]))
    start = 0
    for name, each in points.items():
        own = flat[start : start + len(each)]
        start += len(each)
        grey, star = name.startswith("other"), name == "question"
        shade = "lightgrey" if name.endswith(WITH) or name == "other segments" else "tan"
        style = {"color": shade, "s": 6} if grey else {"marker": "*", "s": 200, "color": "black"} if star else {"s": 18}
        axes.scatter(own[:, 0], own[:, 1], label=name, **style)


def _others(count: int, own: NDArray[np.int64], random: Random) -> NDArray[np.int64]:
    """Positions of other segments, at most MOST_POINTS, in order."""
    rest = sorted({*range(count)} - {int(place) for place in own})
    return np.array(sorted(random.sample(rest, min(MOST_POINTS, len(rest)))), dtype=np.int64)
