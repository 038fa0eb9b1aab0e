"""The metadata of a job field: what it takes, what it means, and where interfaces show it."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from gpuplan.catalog.parsing.document_fields import Reads

#: Groups of fields in forms.
Group = Literal["work", "dimensions", "training", "deadline", "machines", "places"]


@dataclass(frozen=True, slots=True)
class JobField:
    """Annotation of a field that job documents have.

    `reads` reads a value, or an entry of a list, and says what is accepted; None for a part with fields of its own. `key` is
    the field's name in documents where it differs. `optional` fields may be left out although the planner always has a value.

    Fields with a `group` are in the page's form, those `in_modal` in Slack's; `label` names a field there if its own name
    would not do. `choices` are the names that a form offers, with their labels; `suggests` is the list of names that it
    proposes. `words` are short names for `word=value`, beside the field's own; the first one is written in messages.
    """

    reads: Reads | None
    help: str
    _: KW_ONLY
    key: str = ""
    optional: bool = False
    label: str = ""
    example: str = ""
    group: Group | None = None
    in_modal: bool = False
    choices: Callable[[], Mapping[str, str]] | None = None
    suggests: Literal["", "presets", "accelerators", "places"] = ""
    words: tuple[str, ...] = ()
