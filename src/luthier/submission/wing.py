"""Jobs at submission, as the core knows them."""

from luthier.plugins import Wing

WING = Wing(
    "submission",
    commands="luthier.submission.job.commands:register",
    server="luthier.submission.job.server.pages:PART",
    options="luthier.submission.job.commands:SubmissionServeOptions",
    tables="luthier.submission.job.store:TABLES",
)
