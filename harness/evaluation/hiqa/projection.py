"""Vectors in the plane: principal components, and t-SNE where scikit-learn is installed.

Shape legend: N vectors, D dimensions.
"""

import importlib.util

import numpy as np
from numpy.typing import NDArray

PERPLEXITY = 30  # of t-SNE, van der Maaten's usual choice; less for few vectors
_FEWEST = 4  # vectors that t-SNE takes


def principal_components(vectors_ND: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first two principal components of every vector, (N, 2), with a sign that does not depend on the machine.

    Args:
        vectors_ND: At least two dimensions.
    """
    centred_ND = vectors_ND - vectors_ND.mean(axis=0)
    axes_2D = np.linalg.svd(centred_ND, full_matrices=False)[2][:2]
    if len(axes_2D) < 2:  # a single vector
        axes_2D = np.eye(2, vectors_ND.shape[1])
    signs_2 = np.sign(axes_2D[np.arange(2), np.abs(axes_2D).argmax(axis=1)])
    return centred_ND @ (axes_2D * signs_2[:, None]).T


def has_tsne() -> bool:
    """Whether scikit-learn is installed."""
    return importlib.util.find_spec("sklearn") is not None


def tsne(vectors_ND: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """t-SNE (van der Maaten and Hinton 2008) by scikit-learn, (N, 2); principal components of very few vectors.

    Args:
        vectors_ND: Of length 1, so that distances are those of their cosines.
        seed: Of the optimization.
    """
    if len(vectors_ND) < _FEWEST:
        return principal_components(vectors_ND)
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, (len(vectors_ND) - 1) / 3)
    return TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(vectors_ND)
