"""SyntheticModel2: one group that is hard and soon learnt, one that is easy and gains from many examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from evenhand.sources.synthetic_stream import SyntheticStream

__all__ = ["SyntheticModel2"]

Floats = NDArray[np.float64]
Pair = tuple[float, float]


@dataclass(frozen=True)
class SyntheticModel2:
    """Groups u and v in the plane, labels 0 and 1 equally likely.

    u lies on the first axis, uniform on (c_y, c_y + a): the intervals of the two labels overlap, so no linear rule
    does well and few examples suffice. v is a mixture of three round Gaussians per label, turned by θ: a central
    cluster with most of the mass, and two sparse ones, top left and bottom right, that lie close to those of the other
    label. Label 1's clusters are label 0's mirrored at the line from top left to bottom right.

    The paper gives no numbers; the defaults were found by the search that `docs/reproduction.md` tells of.

    Args:
        c: left ends of u's intervals, label 0 and label 1.
        a: their length.
        centre: distance of v's central clusters from the dividing line.
        sparse: distance of v's sparse clusters from the dividing line.
        far: distance of v's sparse clusters from the middle, along the dividing line.
        weight: share of v in each of the two sparse clusters.
        spread: standard deviations of v's central and sparse clusters.
        theta: angle v is turned by, counterclockwise, in degrees.
        shares: the population's shares of u and v.

    >>> model = SyntheticModel2()
    >>> model.groups
    ('u', 'v')
    >>> float(model.linear_accuracies([1.0, 0.0], 0.0)[0].round(3)) == model.best_on_u
    True
    """

    c: Pair = (-2.5, -1.5)
    a: float = 4.0
    centre: float = 1.5
    sparse: float = 0.6
    far: float = 4.0
    weight: float = 0.15
    spread: Pair = (0.5, 0.5)
    theta: float = 0.0
    shares: Pair = (0.5, 0.5)
    name: str = "synthetic2"

    def __post_init__(self) -> None:
        if self.a <= 0 or not abs(self.c[1] - self.c[0]) < self.a:
            raise ValueError(f"u's intervals must overlap: |c_1 − c_0| < a, got c={self.c} and a={self.a}")
        if not 0 < self.weight < 0.5:
            raise ValueError(f"weight must lie strictly between 0 and 0.5, got {self.weight}")
        if min(self.spread) <= 0:
            raise ValueError(f"spread must be two numbers above 0, got {self.spread}")
        if min(self.shares) < 0 or not np.isclose(sum(self.shares), 1):
            raise ValueError(f"shares must be two numbers ≥ 0 that sum to 1, got {self.shares}")

    @property
    def groups(self) -> tuple[str, ...]:
        """u and v."""
        return ("u", "v")

    @property
    def classes(self) -> NDArray[np.int64]:
        """The labels, 0 and 1."""
        return np.array([0, 1])

    @property
    def population(self) -> Floats:
        """Each group's share of the population."""
        return np.array(self.shares, dtype=float)

    @property
    def dimension(self) -> int:
        """Number of features."""
        return 2

    @property
    def normals(self) -> int:
        """Standard normal numbers behind one example: label, place or cluster, and two of noise."""
        return 4

    @property
    def best_on_u(self) -> float:
        """The largest accuracy a linear rule can have on u: half of the overlap goes wrong."""
        return 0.5 + abs(self.c[1] - self.c[0]) / (2 * self.a)

    @cached_property
    def means(self) -> Floats:
        """Means of v's clusters after the turn: label, cluster, feature."""
        across, along = np.array([1.0, 1.0]) / np.sqrt(2), np.array([-1.0, 1.0]) / np.sqrt(2)
        upper = np.array([self.centre * across, self.sparse * across + self.far * along])
        upper = np.vstack([upper, self.sparse * across - self.far * along])
        lower = np.vstack([-upper[0], -upper[2], -upper[1]])
        angle = np.deg2rad(self.theta)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        turned: Floats = np.stack([lower, upper]) @ turn.T
        return turned

    @property
    def weights(self) -> Floats:
        """Share of each of v's three clusters."""
        return np.array([1 - 2 * self.weight, self.weight, self.weight])

    @property
    def deviations(self) -> Floats:
        """Standard deviation of each of v's three clusters."""
        return np.array([self.spread[0], self.spread[1], self.spread[1]])

    def examples(self, group: int, normals: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """Features and labels of a group, a row of normals each."""
        y = (normals[:, 0] > 0).astype(np.int64)
        place = ndtr(normals[:, 1])
        if group == 0:
            X = np.zeros((len(y), 2))
            X[:, 0] = np.asarray(self.c)[y] + self.a * place
            return X, y
        cluster = np.searchsorted(np.cumsum(self.weights)[:-1], place)
        return self.means[y, cluster] + self.deviations[cluster, None] * normals[:, 2:], y

    def open(self, seed: int, trials: Sequence[int]) -> "_Stream2":
        """The draws of these trials."""
        return _Stream2(self, seed, trials)

    def linear_accuracies(self, coef: ArrayLike, intercept: ArrayLike) -> Floats:
        """Exact accuracy of the rules "1 where x·coef + intercept > 0" on both groups, (…, 2)."""
        w, b = np.asarray(coef, dtype=float), np.asarray(intercept, dtype=float)
        return np.stack([self._on_u(w[..., 0], b), self._on_v(w, b)], axis=-1)

    def _on_u(self, slope: Floats, intercept: Floats) -> Floats:
        """The share of each interval on its label's side of the point where the rule changes."""
        flat = slope == 0
        change = -intercept / np.where(flat, 1.0, slope)
        above = [1 - np.clip((change - c) / self.a, 0, 1) for c in self.c]
        above = [np.where(flat, intercept > 0, np.where(slope > 0, part, 1 - part)) for part in above]
        accuracy: Floats = (above[1] + 1 - above[0]) / 2
        return accuracy

    def _on_v(self, coef: Floats, intercept: Floats) -> Floats:
        score = np.einsum("ykf,...f->...yk", self.means, coef) + intercept[..., None, None]
        norm = np.linalg.norm(coef, axis=-1)[..., None, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            above = np.where(norm > 0, ndtr(score / (norm * self.deviations)), score > 0)
        right = (above * self.weights).sum(axis=-1)
        accuracy: Floats = (right[..., 1] + 1 - right[..., 0]) / 2
        return accuracy


class _Stream2(SyntheticStream):
    """Draws of SyntheticModel2, evaluated in closed form where the rule is linear."""

    def __init__(self, model: SyntheticModel2, seed: int, trials: Sequence[int]) -> None:
        super().__init__(model, seed, trials)
        self._exact = model

    def linear_accuracies(self, coef: ArrayLike, intercept: ArrayLike) -> Floats:
        """Exact accuracies of linear rules, (T, …, 2)."""
        return self._exact.linear_accuracies(coef, intercept)
