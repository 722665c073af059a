"""Extremely randomised trees with a mean and a standard deviation, grown level by level, all trees at once."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from luthier.arrays import BoolArray, FloatArray, IntArray
from luthier.learn.points import PointSet

_DEEPEST = 64  # levels; reached only if cuts separate nearly nothing
_AT_ONCE = 8_192  # points looked up together, over all trees: few enough for the processor's cache
_WORD = 64  # bits


class Forest:
    """Trees whose cuts are drawn at random, one per column, and the best is kept (Geurts et al. 2006).

    `grow` the trees first; then `fill` their leaves with whatever is known. An ordered column is cut at a uniform
    position between the values present, an unordered one separates one category from the rest; every tree sees its own
    bootstrap sample. Nodes are numbered over all trees, roots first; children have successive numbers, and a leaf is
    its own left child.
    """

    def __init__(self, ordered: BoolArray, trees: int = 32) -> None:
        self.trees, self.generation = trees, 0
        self._ordered = ordered
        self._grown = np.empty((0, len(ordered)))
        self._x, self._y = self._grown, np.empty(0)
        self._times = np.empty((trees, 0))  # how often each tree has drawn each observation
        self._drawn: dict[bytes, FloatArray] = {}
        self._leaf: dict[bytes, IntArray] = {}
        self._clear(0)
        self._where = self.leaves(self._x)
        self._weigh()

    def _clear(self, most: int) -> None:
        """Make every tree a single leaf, with room for `most` nodes more."""
        self._nodes, self._depth = self.trees, 0
        self._leaf.clear()
        self._column = np.zeros(self.trees + most, dtype=np.intp)
        self._cut = np.full(self.trees + most, np.inf)
        self._left = np.arange(self.trees + most)
        self._find_below()

    def _find_below(self) -> None:
        """Values above the cut go right; so do those below it where one category is separated. A leaf has no cut."""
        self._below = np.where(self._ordered[self._column] | np.isinf(self._cut), -np.inf, self._cut)

    def grow(self, x: FloatArray, y: FloatArray) -> None:
        """Grow new trees from targets `y` at the rows of `x`, and fill their leaves with them.

        The trees depend only on `x` and `y`: the random numbers are seeded by the number of observations.
        """
        n, rng = len(y), np.random.default_rng(len(y))
        self._x, self._y, self._grown = x, y, x
        self.generation += 1
        drawn: IntArray = rng.integers(n, size=(self.trees, n)) if n else np.empty((self.trees, 0), dtype=np.intp)
        tree = np.repeat(np.arange(self.trees), n)
        self._times = np.zeros((self.trees, n))
        np.add.at(self._times, (tree, drawn.ravel()), 1.0)
        self._drawn = {row.tobytes(): self._times[:, at] for at, row in enumerate(x)}
        # n samples make at most n leaves, so a tree gets fewer than 2n nodes.
        self._clear(self.trees * 2 * n)
        sample, node = drawn.ravel(), tree
        while len(sample) and self._depth < _DEEPEST:
            sample, node = self._split(sample, node, rng)
            self._depth += 1
        self._column, self._left = self._column[: self._nodes], self._left[: self._nodes]
        self._cut = self._cut[: self._nodes]
        self._find_below()
        self._where = self.leaves(x)
        self._weigh()

    def fill(self, x: FloatArray, y: FloatArray) -> None:
        """Replace all known data by targets `y` at the rows of `x`; the trees stay as they are.

        An observation the trees were grown from counts in each of them as often as it was drawn, another one once.
        """
        kept = _agreeing(self._x, x)
        once = np.ones(self.trees)
        times = [self._drawn.get(row.tobytes(), once) for row in np.ascontiguousarray(x[kept:])]
        self._where = np.concatenate((self._where[:, :kept], self.known_leaves(x[kept:])), axis=1)
        self._times = np.concatenate((self._times[:, :kept], np.array(times).reshape(len(times), self.trees).T), axis=1)
        self._x, self._y = np.concatenate((self._x[:kept], x[kept:])), y
        self._weigh()

    def add(self, leaves: IntArray, y: FloatArray) -> None:
        """Add targets `y` at points given by their `leaves`, until `remove_added` or `fill`."""
        touched = np.unique(leaves)
        parts = (self._count, self._sum, self._square, self._mean, self._variance)
        self._undo.append((touched, [part[touched] for part in parts]))
        targets = np.broadcast_to(y, leaves.shape).ravel()
        np.add.at(self._count, leaves.ravel(), 1.0)
        np.add.at(self._sum, leaves.ravel(), targets)
        np.add.at(self._square, leaves.ravel(), targets * targets)
        self._average(touched)

    def remove_added(self) -> None:
        """Undo every `add` since the last `grow` or `fill`."""
        while self._undo:
            touched, before = self._undo.pop()
            for part, values in zip(
                (self._count, self._sum, self._square, self._mean, self._variance), before, strict=True
            ):
                part[touched] = values

    def known_leaves(self, x: FloatArray) -> IntArray:
        """`leaves` of points that are asked for again, such as those of active runs; they are kept."""
        keys = [row.tobytes() for row in np.ascontiguousarray(x)]
        new = [at for at, key in enumerate(keys) if key not in self._leaf]
        if new:
            self._leaf.update(zip([keys[at] for at in new], self.leaves(x[new]).T, strict=True))
        return np.array([self._leaf[key] for key in keys], dtype=np.intp).reshape(len(x), self.trees).T

    def _split(self, sample: IntArray, node: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Split the nodes of one level (`node` is sorted); return the samples in those that split, by their child."""
        # The samples of a node are neighbours, so each node is a stretch from one of `starts` on.
        starts = np.flatnonzero(np.concatenate(([True], node[1:] != node[:-1])))
        counts = np.diff(np.append(starts, len(node)))
        own = np.repeat(np.arange(len(starts)), counts)
        values, targets = self._x[sample], self._y[sample]
        cuts = _random_cuts(self._ordered, values, starts, counts, rng)
        is_left = np.where(self._ordered, values <= cuts[own], values == cuts[own])
        # Geurts et al. 2006, table 1, with one random cut in every column (their K is the number of columns).
        gain = _explained(is_left, targets, starts, counts)
        best = np.argmax(gain, axis=1)
        # A node with equal targets, or without a cut that separates anything, becomes a leaf.
        varied = np.maximum.reduceat(targets, starts) > np.minimum.reduceat(targets, starts)
        splits = varied & np.isfinite(gain[np.arange(len(starts)), best])

        parents, columns = node[starts[splits]], best[splits]
        children = self._nodes + 2 * np.arange(len(parents))
        self._nodes += 2 * len(parents)
        self._column[parents], self._left[parents] = columns, children
        self._cut[parents] = cuts[splits, columns]

        first = np.zeros(len(starts), dtype=np.intp)
        first[splits] = children
        stays = splits[own]
        mine = own[stays]
        # The right child has the number after the left one.
        child = first[mine] + ~is_left[stays, best[mine]]
        order = np.argsort(child, kind="stable")
        return sample[stays][order], child[order]

    def _weigh(self) -> None:
        """Mean and variance of the targets in every leaf."""
        leaf, times = self._where.ravel(), self._times.ravel()
        y = np.tile(self._y, self.trees)
        targets = times * y
        self._undo: list[tuple[IntArray, list[FloatArray]]] = []
        self._count, self._sum, self._square = (
            np.asarray(np.bincount(leaf, weights=weights, minlength=self._nodes), dtype=np.float64)
            for weights in (times, targets, targets * y)
        )
        self._mean, self._variance = np.empty(self._nodes), np.empty(self._nodes)
        self._average(slice(None))

    def _average(self, nodes: IntArray | slice) -> None:
        count = np.maximum(self._count[nodes], 1.0)
        mean = self._sum[nodes] / count
        self._mean[nodes] = mean
        # E[y²] - E[y]²; rounding may make it negative.
        self._variance[nodes] = np.maximum(self._square[nodes] / count - mean * mean, 0.0)

    def leaves(self, x: FloatArray) -> IntArray:
        """The leaf of every row of `x` in every tree, an array (trees, rows); good until `generation` changes."""
        rows, values = np.arange(len(x)), np.ascontiguousarray(x.T).ravel()
        leaves = np.empty((self.trees, len(x)), dtype=np.intp)
        together = max(1, _AT_ONCE // max(len(x), 1))
        for tree in range(0, self.trees, together):
            roots = np.arange(tree, min(tree + together, self.trees))
            node = np.repeat(roots[:, None], len(x), axis=1)
            # Points that have arrived stay: a leaf is its own left child, and nothing is above its infinite cut.
            for _ in range(self._depth):
                value = values.take(self._column.take(node) * len(x) + rows)
                node = self._left.take(node) + ((value > self._cut.take(node)) | (value < self._below.take(node)))
            leaves[roots] = node
        return leaves

    def leaves_of(self, points: PointSet) -> IntArray:
        """`leaves`, by a table for each column where the columns have few values and the trees few leaves."""
        parts = [points.part(column) for column in range(points.rows.shape[1])]
        which = [part.which for part in parts if part.which is not None]
        lookups, words = self.trees * len(points), -(-len(self._grown) // _WORD)
        # Rough counts of operations; a level of a tree costs about four times what a column of a table costs.
        tables = self._nodes * sum(len(part.rows) for part in parts) + lookups * words * (len(parts) + 4)
        if len(which) < len(parts) or tables > 4 * self._depth * lookups:
            return self.leaves(points.rows)
        return self._leaves_by_tables([part.rows[:, 0] for part in parts], which)

    def _leaves_by_tables(self, values: Sequence[FloatArray], which: Sequence[IntArray]) -> IntArray:
        """`leaves` of the points whose value in column c is `values[c][which[c]]`.

        A table has for each value the leaves it may lead to, a bit for each; only one leaf has its bit in every column.
        (The bits are those of Lucchese et al. 2015, who keep more of them and take the first.)
        """
        column = np.repeat(np.arange(len(values)), [len(own) for own in values])
        # Which nodes a single value leaves possible; then the leaves, numbered within each tree, become bits.
        open_to, tree = self._open(np.concatenate(values), column)
        leaf = np.flatnonzero(self._left == np.arange(self._nodes))
        leaf = leaf[np.argsort(tree[leaf], kind="stable")]
        counts = np.bincount(tree[leaf])
        first = np.cumsum(counts) - counts
        words = -(-int(counts.max()) // _WORD)
        bits = np.zeros((self.trees, _WORD * words, len(column)), dtype=np.bool_)
        bits[tree[leaf], np.arange(len(leaf)) - first[tree[leaf]]] = open_to[leaf]
        # Words of 64 bits: the bits of all columns are combined by one instruction for 64 leaves.
        packed = np.packbits(bits, axis=1, bitorder="little").transpose(0, 2, 1)
        tables = np.split(np.ascontiguousarray(packed).view("<u8"), np.flatnonzero(np.diff(column)) + 1, axis=1)
        leaves = np.empty((self.trees, len(which[0])), dtype=np.intp)
        for at in range(self.trees):
            for word in range(words):
                position = _only_bit([table[at, :, word] for table in tables], which)
                here = position > 0
                leaves[at, here] = leaf[first[at] + word * _WORD + position[here] - 1]
        return leaves

    def _open(self, values: FloatArray, column: IntArray) -> tuple[BoolArray, IntArray]:
        """Which nodes a point may come to, given one of its `values` (nodes in rows), and the tree of each node."""
        open_to = np.ones((self._nodes, len(values)), dtype=np.bool_)
        tree = np.arange(self._nodes)
        level = np.arange(self.trees)
        while len(level := level[self._left[level] != level]):
            left, cut, own = self._left[level], self._cut[level, None], self._column[level, None]
            is_right = np.where(self._ordered[own], values > cut, values != cut)
            open_to[left] = open_to[level] & ((column != own) | ~is_right)
            open_to[left + 1] = open_to[level] & ((column != own) | is_right)
            tree[left] = tree[left + 1] = tree[level]
            level = np.concatenate((left, left + 1))
        return open_to, tree

    def predict(self, leaves: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation at points given by their `leaves`, by the law of total variance over the trees."""
        means = self._mean[leaves]
        centre = means.mean(axis=0)
        between = np.einsum("ij,ij->j", means, means) / len(means) - centre * centre
        return centre, np.sqrt(np.maximum(between, 0.0) + self._variance[leaves].mean(axis=0))

    def out_of_bag(self) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation at each observation the trees were just grown from, by the trees that did not draw it."""
        n = len(self._grown)
        # Breiman 2001, section 3.1: predictions by the trees without the observation are free of its influence.
        unseen = self._times[:, :n] == 0.0
        count = np.maximum(unseen.sum(axis=0), 1)
        means, variances = self._mean[self._where[:, :n]], self._variance[self._where[:, :n]]
        centre = (unseen * means).sum(axis=0) / count
        total = (unseen * (variances + (means - centre) ** 2)).sum(axis=0) / count
        return centre, np.sqrt(total)


def _agreeing(first: FloatArray, second: FloatArray) -> int:
    """How many rows at the beginning are the same."""
    known = min(len(first), len(second))
    same = np.all(first[:known] == second[:known], axis=1)
    return known if same.all() else int(np.argmin(same))


def _only_bit(words: Sequence[npt.NDArray[np.uint64]], which: Sequence[IntArray]) -> IntArray:
    """The position, from 1 on, of the only bit that is set for a point in the words of every column; 0 without one."""
    left_over = words[0].take(which[0])
    for word, place in zip(words[1:], which[1:], strict=True):
        left_over &= word.take(place)
    # frexp gives the exponent k + 1 for the number 2^k, and 0 for 0.
    return np.asarray(np.frexp(left_over.astype(np.float64))[1], dtype=np.intp)


def _random_cuts(
    ordered: BoolArray, values: FloatArray, starts: IntArray, counts: IntArray, rng: np.random.Generator
) -> FloatArray:
    """One random cut per node and column; the samples of a node stand together from `starts` on."""
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    # Below the highest value, so that both sides have a sample.
    between = np.minimum(low + rng.random(low.shape) * (high - low), np.nextafter(high, low))
    picked = values[starts + (rng.random(len(starts)) * counts).astype(np.intp)]
    return np.where(ordered, between, picked)


def _explained(is_left: BoolArray, targets: FloatArray, starts: IntArray, counts: IntArray) -> FloatArray:
    """How much of the targets' squares each cut explains, per node and column; -inf if it separates nothing."""
    lefts = np.add.reduceat(is_left, starts, dtype=np.float64)
    rights = counts[:, None] - lefts
    sums = np.add.reduceat(is_left * targets[:, None], starts)
    rest = np.add.reduceat(targets, starts)[:, None] - sums
    with np.errstate(divide="ignore", invalid="ignore"):
        # The sum of squares between the two sides, up to a constant; the rest is within them.
        gain = sums * sums / lefts + rest * rest / rights
    return np.where((lefts > 0.0) & (rights > 0.0), gain, -np.inf)
