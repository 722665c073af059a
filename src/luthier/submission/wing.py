"""Jobs at submission, as the core knows them."""

from luthier.plugins import Wing

WING = Wing(
    "submission",
    commands="luthier.submission.commands:register",
    server="luthier.submission.server.pages:PART",
    options="luthier.submission.commands:SubmissionServeOptions",
    tables="luthier.submission.store:TABLES",
)
