"""A finished experiment as a record that new jobs are compared with: the job, and what was found for it."""

from collections.abc import Callable
from datetime import UTC, datetime

from luthier.result.result import Result
from luthier.runners.registry import runner_kind
from luthier.spec.experiment import Experiment
from luthier.spec.script import JobScript
from luthier.store.base import Record
from luthier.submission.job import NewJob
from luthier.submission.matching import job_of_script
from luthier.submission.store.tuned_jobs import TunedConfiguration, keeping_default


def batch_script(experiment: Experiment) -> JobScript | None:
    """The batch script of the user's that an experiment tunes a component for; None if it tunes anything else."""
    script = experiment.command
    if not isinstance(script, JobScript) or not script.application.strip() or experiment.has_front:
        return None
    return script if runner_kind(script.where).program == "sbatch" else None


def job_description(
    record: Record, result: Result, user: str, local: Callable[[datetime], datetime] = datetime.astimezone
) -> tuple[NewJob, TunedConfiguration] | None:
    """The job that an experiment ran, and what to use for jobs like it; None without a batch script or a result.

    That is the best configuration if it is proven to be better than the default, else the default: jobs that are most
    like this one then do not get the configuration of another. `user` is the name of who submits the job; `local` puts
    a time into the time zone of the cluster.
    """
    script = batch_script(result.experiment)
    found = None if script is None else _found(result, script)
    if script is None or found is None:
        return None
    at = local(datetime.fromtimestamp(record.created_at, UTC))
    return job_of_script(script.application, user, at, options=script.component.options, script=script.name), found


def _found(result: Result, script: JobScript) -> TunedConfiguration | None:
    """What is known about the component; None if nothing is."""
    if result.default is None or result.winner is None:
        return None
    before, after = result.default.estimate, result.winner.estimate
    if before is None or after is None:
        return None
    measure = result.experiment.objective.measure
    if result.improved and result.speedup is not None:
        batch = script.batch(result.experiment.space, result.winner.config)
        return TunedConfiguration(
            component=script.component_name,
            config=dict(result.winner.config),
            environment=dict(batch.environment),
            options=tuple(batch.options),
            measure=measure,
            default_value=before.value,
            best_value=after.value,
            speedup=result.speedup,
        )
    if result.comparison is None and result.winner.config != result.default.config:
        return None  # it was not compared with the default
    return keeping_default(script.component_name, measure, before.value)
