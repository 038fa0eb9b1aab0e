"""A job's name, which is anyone's text, as the names and labels that other tools accept. Each rule stands at its function.

Cleaning may make two names alike, so what names something also carries the plan's id; the name itself travels as
`GPUPLAN_JOB`, in full and on one line.
"""

import re
import unicodedata

from api.export.handover import Handover, Phase

#: dstack takes run names of at most 41 characters, and a pod of a JobSet adds `-worker-0-99999` to its name within 63.
LONGEST_NAME = 40
#: Kubernetes and Google Cloud both end labels there.
LONGEST_LABEL = 63
#: https://docs.aws.amazon.com/tag-editor/latest/userguide/tagging.html and Azure's tag values.
LONGEST_TAG = 256


def run_name(handover: Handover, phase: Phase) -> str:
    """`llama-3-8b-642b3a-1`: the job, six digits of the plan's id, the number of the phase.

    Lower-case ASCII letters, digits and single dashes, beginning with a letter: whatever else is in the job's name
    becomes a dash, after accents are taken off; a name of nothing else is `job`.
    """
    ending = f"-{handover.plan_id.removeprefix('plan-')[:6]}-{phase.number}"
    return _dashed(handover.job)[: LONGEST_NAME - len(ending)].rstrip("-") + ending


def _dashed(text: str) -> str:
    clean = re.sub(r"[^a-z0-9]+", "-", _ascii(text).lower()).strip("-")
    return clean if clean[:1].isalpha() else f"job-{clean}".rstrip("-")


def label(text: str) -> str:
    """A value for a label of Kubernetes or Google Cloud: lower-case ASCII letters, digits, `-` and `_`, at most 63.

    It begins and ends with a letter or digit, as Kubernetes wants; everything else becomes a dash.
    """
    return re.sub(r"[^a-z0-9_]+", "-", _ascii(text).lower())[:LONGEST_LABEL].strip("-_")


def tag(text: str) -> str:
    """A value for a tag of AWS, Azure or dstack: ASCII letters and digits, spaces and `_.:/=+-@`, at most 256.

    Accents are taken off; everything else becomes an underscore.
    """
    return re.sub(r"[^A-Za-z0-9 _.:/=+@-]+", "_", _ascii(text))[:LONGEST_TAG].strip()


def _ascii(text: str) -> str:
    """The text with accents taken off; what is not ASCII even then becomes a control character, which no rule lets pass."""
    kept = (char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return "".join(char if char.isascii() else "\x1a" for char in kept)


def facts(handover: Handover, phase: Phase) -> dict[str, str]:
    """What every resource is marked with, before the rules of the tool at hand."""
    return {
        "gpuplan-plan": handover.plan_id,
        "gpuplan-phase": str(phase.number),
        "gpuplan-job": handover.job,
        "gpuplan-kind": phase.kind.name,
    }


def labels(handover: Handover, phase: Phase) -> dict[str, str]:
    """The same as labels of Kubernetes and Google Cloud; what has nothing left is left out."""
    return {name: label(value) for name, value in facts(handover, phase).items() if label(value)}


def tags(handover: Handover, phase: Phase) -> dict[str, str]:
    """The same as tags of AWS and Azure, and the name that consoles show."""
    found = {name: tag(value) for name, value in facts(handover, phase).items() if tag(value)}
    return {"Name": run_name(handover, phase)} | found
