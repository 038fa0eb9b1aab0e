"""Converts a job's name, which is user input, to names and labels that other tools accept.

Two jobs may get the same cleaned name, so names of resources also contain the plan's id. The full name is in
`GPUPLAN_JOB`, on one line.
"""

import re
import unicodedata

from gpuplan.api.exports.plan_handover import Handover, Phase

#: dstack accepts run names of at most 41 characters, and a pod of a JobSet adds `-worker-0-99999` to its name within 63.
LONGEST_NAME = 40
#: Longest label of Kubernetes and Google Cloud.
LONGEST_LABEL = 63
#: https://docs.aws.amazon.com/tag-editor/latest/userguide/tagging.html and Azure's tag values.
LONGEST_TAG = 256


def run_name(handover: Handover, phase: Phase) -> str:
    """`llama-3-8b-642b3a-1`: the job, six digits of the plan's id, the number of the phase.

    Lower-case ASCII letters, digits and single dashes, starting with a letter. Accents are removed, other
    characters become dashes; an empty result is `job`.
    """
    ending = f"-{handover.plan_id.removeprefix('plan-')[:6]}-{phase.number}"
    return _dashed(handover.job)[: LONGEST_NAME - len(ending)].rstrip("-") + ending


def _dashed(text: str) -> str:
    clean = re.sub(r"[^a-z0-9]+", "-", _ascii(text).lower()).strip("-")
    return clean if clean[:1].isalpha() else f"job-{clean}".rstrip("-")


def label(text: str) -> str:
    """A value for a label of Kubernetes or Google Cloud: lower-case ASCII letters, digits, `-` and `_`, at most 63.

    It starts and ends with a letter or digit, as Kubernetes requires; other characters become dashes.
    """
    return re.sub(r"[^a-z0-9_]+", "-", _ascii(text).lower())[:LONGEST_LABEL].strip("-_")


def tag(text: str) -> str:
    """A value for a tag of AWS, Azure or dstack: ASCII letters and digits, spaces and `_.:/=+-@`, at most 256.

    Accents are removed; other characters become underscores.
    """
    return re.sub(r"[^A-Za-z0-9 _.:/=+@-]+", "_", _ascii(text))[:LONGEST_TAG].strip()


def _ascii(text: str) -> str:
    """The text without accents; remaining non-ASCII becomes a control character, which all rules replace."""
    base_characters = (char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return "".join(char if char.isascii() else "\x1a" for char in base_characters)


def facts(handover: Handover, phase: Phase) -> dict[str, str]:
    """Metadata of every resource, before the tool's rules are applied."""
    return {
        "gpuplan-plan": handover.plan_id,
        "gpuplan-phase": str(phase.number),
        "gpuplan-job": handover.job,
        "gpuplan-kind": phase.kind.name,
    }


def labels(handover: Handover, phase: Phase) -> dict[str, str]:
    """The metadata as labels of Kubernetes and Google Cloud, without empty ones."""
    return {name: label(value) for name, value in facts(handover, phase).items() if label(value)}


def tags(handover: Handover, phase: Phase) -> dict[str, str]:
    """The metadata as tags of AWS and Azure, with the name that consoles show."""
    values = {name: tag(value) for name, value in facts(handover, phase).items() if tag(value)}
    return {"Name": run_name(handover, phase)} | values
