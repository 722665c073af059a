"""A finished experiment as a record that new jobs are compared with: the job, and what was found for it."""

from collections.abc import Callable
from datetime import UTC, datetime

from luthier.analysis.result import Result
from luthier.matching import job_of_script
from luthier.runners.registry import runner_kind
from luthier.spec.experiment import Experiment
from luthier.spec.script import JobScript
from luthier.store.base import Record
from luthier.store.tuned_jobs import Tuned
from luthier.submission import Job


def batch_script(experiment: Experiment) -> JobScript | None:
    """The batch script of the user's that an experiment tunes a component for; None if it tunes anything else."""
    script = experiment.command
    if not isinstance(script, JobScript) or not script.application.strip() or experiment.has_front:
        return None
    return script if runner_kind(script.where).program == "sbatch" else None


def job_description(
    record: Record, result: Result, user: str, local: Callable[[datetime], datetime] = datetime.astimezone
) -> tuple[Job, Tuned] | None:
    """The job that an experiment ran, and the best configuration; None unless it is proven to be better.

    `user` is the name of who submits the job; `local` puts a time into the time zone of the cluster.
    """
    script = batch_script(result.experiment)
    if script is None or not result.improved or result.default is None or result.winner is None:
        return None
    before, after = result.default.estimate, result.winner.estimate
    if before is None or after is None or result.speedup is None:
        return None
    at = local(datetime.fromtimestamp(record.created_at, UTC))
    batch = script.batch(result.experiment.space, result.winner.config)
    job = job_of_script(script.application, user, at, options=script.component.options, script=script.name)
    return job, Tuned(
        component=script.component_name,
        config=dict(result.winner.config),
        environment=dict(batch.environment),
        options=tuple(batch.options),
        measure=result.experiment.objective.measure,
        default_value=before.value,
        best_value=after.value,
        speedup=result.speedup,
    )
