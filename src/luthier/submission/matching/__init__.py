"""Record linkage: which of the jobs that were tuned is this one most like (Robert 2021, chapter 7)."""

from luthier.submission.job import NewJob
from luthier.submission.matching.batch_script import job_of_script
from luthier.submission.matching.fields import Fields, fields_of
from luthier.submission.matching.index import Index, Match
from luthier.submission.matching.learned_weights import learn_weights
from luthier.submission.matching.score import Corpus, Score, Weights, similarity

__all__ = [
    "Corpus",
    "Fields",
    "Index",
    "Match",
    "NewJob",
    "Score",
    "Weights",
    "fields_of",
    "job_of_script",
    "learn_weights",
    "similarity",
]
