"""The words of many paths, for soft TF-IDF of one path with all of them at a time."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from luthier.arrays import FloatArray, IntArray
from luthier.submission.matching.growth import distinct, with_capacity
from luthier.submission.matching.score import Corpus
from luthier.submission.matching.similarities import CLOSE, weights_of, words_of_path

_ROUNDING = 1e-5  # rapidfuzz may drop a similarity that is just the one asked for; bounds may be a little too high


class PathWords:
    """The words of the distinct paths of records; a path is known by its number, in the order of adding.

    `frequencies` says how many records have a path with a word.
    """

    def __init__(self) -> None:
        self.frequencies = Counter[str]()
        self._codes: dict[str, int] = {}
        self._vocabulary: list[str] = []
        self._ends = [0]  # where the words of each path end, after those of the path before it
        self._words = np.zeros(1, dtype=np.int32)
        self._counts = np.zeros(1, dtype=np.int16)

    def add(self, path: str) -> None:
        """Add the next path."""
        words, start = words_of_path(path), self._ends[-1]
        self._ends.append(end := start + len(words))
        self._words, self._counts = with_capacity(self._words, end), with_capacity(self._counts, end)
        for place, (word, count) in enumerate(words.items(), start):
            code = self._codes.setdefault(word, len(self._vocabulary))
            if code == len(self._vocabulary):
                self._vocabulary.append(word)
            self._words[place], self._counts[place] = code, count

    def count(self, path: int, change: int) -> None:
        """Count a record with this path that was added (1) or removed (-1)."""
        for code in self._words[self._ends[path] : self._ends[path + 1]].tolist():
            self.frequencies[self._vocabulary[code]] += change

    def bounds(self, path: str, paths: IntArray, records: int) -> FloatArray:
        """How similar some paths are at most to a new one; but for ties of close words, this is the similarity."""
        own = words_of_path(path)
        if not own:
            return np.zeros(len(paths))
        corpus = Corpus(records, self.frequencies)
        owners, words, counts = self._of(paths)
        known, position = distinct(words, len(self._vocabulary))
        texts = [self._vocabulary[word] for word in known.tolist()]
        weights = np.log1p(counts) * np.array([corpus.rarity(text) for text in texts])[position[words]]
        weights /= np.sqrt(np.bincount(owners, weights**2, minlength=len(paths)))[owners]
        bounds = np.zeros(len(paths))
        for (word, weight), close in zip(
            weights_of(own, corpus.rarity).items(), closeness(list(own), texts), strict=True
        ):
            near = close[position[words]]
            hits = np.flatnonzero(near)
            exact = self._codes.get(word)
            best = np.zeros(len(paths))
            np.maximum.at(best, owners[hits], near[hits] * weights[hits])
            if exact is not None:  # where a path has the very word, no other counts
                same = np.flatnonzero(words == exact)
                best[owners[same]] = weights[same]
            bounds += weight * best
        return np.minimum(bounds, 1.0)

    def _of(self, paths: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The words of some paths in a row: the position of the path, the word, and how often it is in the path."""
        numbers = paths.tolist()
        starts = np.array([self._ends[number] for number in numbers], dtype=np.intp)
        lengths = np.array([self._ends[number + 1] for number in numbers], dtype=np.intp) - starts
        owners = np.repeat(np.arange(len(numbers)), lengths)
        places = np.arange(owners.size) + np.repeat(starts - lengths.cumsum() + lengths, lengths)
        return owners, self._words[places].astype(np.intp), self._counts[places].astype(float)


def closeness(words: Sequence[str], others: Sequence[str]) -> FloatArray:
    """How close each word is to each other word; 0 below `CLOSE`. Numbers are only close to themselves."""
    from rapidfuzz.distance import JaroWinkler
    from rapidfuzz.process import cdist

    if not others:
        return np.zeros((len(words), 0))
    near = cdist(words, others, scorer=JaroWinkler.similarity, score_cutoff=CLOSE - _ROUNDING, dtype=np.float64)
    is_number = np.array([other[0].isdigit() for other in others])
    near[:, is_number] = 0.0
    near[[word[0].isdigit() for word in words]] = 0.0
    places = {other: place for place, other in enumerate(others)}
    for row, word in enumerate(words):
        if word in places:
            near[row, places[word]] = 1.0
    return near
