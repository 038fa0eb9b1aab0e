"""A pasted or uploaded text: a job file, or a configuration of another tool."""

from gpuplan.api.imports.job_from_facts import Given, ImportedJob, job_of
from gpuplan.api.imports.reading import read_texts
from gpuplan.api.imports.rendering import job_file
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

#: A document with one of these is a job file.
_OF_A_JOB = frozenset({"workload", "training", "constraints"})


class IncompleteConfigError(UnusableInput):
    """A configuration that does not state all that a job needs.

    `missing` is what it lacks, `job_file` what it does state, to be completed.
    """

    def __init__(self, made: ImportedJob) -> None:
        """With a fault for everything that is missing."""
        super().__init__(*(Fault(("workload", one.field), f"is missing: {one.why}") for one in made.missing))
        self.missing = tuple(made.missing)
        self.job_file = job_file(made)


def pasted_job(text: str, name: str, given: Given | None = None) -> JsonObject:
    """The job of a job file, or of a configuration in a format of `gpuplan import`, completed by what is given beside it.

    Raises `IncompleteConfigError` for a configuration that lacks something, else `UnusableInput`.
    """
    try:
        document = read_document(text, name=name)
    except UnusableInput as error:
        return _imported(text, name, error, given)
    if _OF_A_JOB.isdisjoint(document):
        document = _imported(text, name, None, given) or document
    elif given is not None:
        raise UnusableInput.at("plan", message="a job file takes no words beside it; write them into the file")
    return document


def _imported(text: str, name: str, error: UnusableInput | None, given: Given | None) -> JsonObject:
    """The job of another tool's configuration; if it is none, an empty document, or `error` where there is one."""
    try:
        made = job_of(read_texts({name: text}), given or Given())
    except UnusableInput:
        if error is not None:
            raise error from None
        return {}
    if made.missing:
        raise IncompleteConfigError(made)
    return made.document
