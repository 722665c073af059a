"""Record linkage: which of the jobs that were tuned is this one most like (Robert 2021, chapter 7)."""

from luthier.matching.batch_script import job_of_script
from luthier.matching.fields import Fields, fields_of
from luthier.matching.index import Index, Match
from luthier.matching.learned_weights import learn_weights
from luthier.matching.score import Corpus, Score, Weights, similarity
from luthier.submission import Job

__all__ = [
    "Corpus",
    "Fields",
    "Index",
    "Job",
    "Match",
    "Score",
    "Weights",
    "fields_of",
    "job_of_script",
    "learn_weights",
    "similarity",
]
