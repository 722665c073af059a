"""How alike two values of a field are, from 0 to 1 (Robert 2021, section 7.4.2)."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

CLOSE = 0.9
"""Two words of a path are close at this Jaro-Winkler similarity and above (Cohen, Ravikumar and Fienberg 2003)."""

_MOST_WORDS = 64
_WORD = re.compile(r"[^\W\d_]{1,100}|\d{1,100}")


def exact(one: object, other: object) -> float:
    """1 if both are the same, else 0."""
    return 1.0 if one == other else 0.0


def levenshtein(one: str, other: str) -> float:
    """1 minus the number of single-character edits, as a share of the longer text."""
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.normalized_similarity(one, other)


def circular(one: int, other: int, period: int) -> float:
    """Nearness of two points on a circle: 1 minus their Euclidean distance, as a share of the diameter."""
    return 1.0 - abs(math.sin(math.pi * (one - other) / period))


def absolute(one: int, other: int, largest: int) -> float:
    """1 minus the distance, as a share of the largest; 0 if it is larger."""
    return max(0.0, 1.0 - abs(one - other) / largest)


def option_ratio(one: Sequence[tuple[str, tuple[str, ...]]], other: Sequence[tuple[str, tuple[str, ...]]]) -> float:
    """For each option of either, the values in common as a share of all its values; the mean over the options."""
    ones, others = dict(one), dict(other)
    names = sorted(ones.keys() | others.keys())
    if not names:
        return 1.0
    return sum(_ratio(ones.get(name, ()), others.get(name, ())) for name in names) / len(names)


def words_of_path(path: str) -> Counter[str]:
    """How often a path contains each word: a run of letters or of digits; of a long path only the end."""
    return Counter(_WORD.findall(path[-4096:])[-_MOST_WORDS:])


def soft_tfidf(one: Mapping[str, int], other: Mapping[str, int], rarity: Callable[[str], float]) -> float:
    """The weights of the close words of two texts, multiplied (Cohen, Ravikumar and Fienberg 2003).

    Rare words weigh more than frequent ones. Numbers are only close to themselves.
    """
    ones, others = weights_of(one, rarity), weights_of(other, rarity)
    total = 0.0
    for word, weight in ones.items():
        near, closeness = _closest(word, others)
        if closeness >= CLOSE:
            total += weight * others[near] * closeness
    return min(1.0, total)


def weights_of(words: Mapping[str, int], rarity: Callable[[str], float]) -> dict[str, float]:
    """The weight of each word: its frequency times its rarity, over a sum of squares of 1."""
    raw = {word: math.log(1 + count) * rarity(word) for word, count in words.items()}
    length = math.sqrt(math.fsum(weight**2 for weight in raw.values()))
    return {word: weight / length for word, weight in raw.items()}


def _closest(word: str, others: Mapping[str, float]) -> tuple[str, float]:
    from rapidfuzz.distance import JaroWinkler

    if word in others:
        return word, 1.0
    if word[0].isdigit():
        return "", 0.0
    best, closeness = "", 0.0
    for other in sorted(others):
        if (found := JaroWinkler.similarity(word, other)) > closeness and not other[0].isdigit():
            best, closeness = other, found
    return best, closeness


def _ratio(ones: Sequence[str], others: Sequence[str]) -> float:
    return len({*ones} & {*others}) / max(1, len({*ones} | {*others}))
