"""What somebody wants to share: one plan, run or watch; and the link that somebody else opens."""

from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue

from catalog.document_fields import Document, Label, read_as
from catalog.errors import UnusableInput
from catalog.ownership import Kind

_EXAMPLES: list[JsonValue] = [{"plan": "plan-751d7a5c37e52c2c94da"}]
ObjectId = Annotated[str | None, Label]


class ShareDocument(Document):
    """What `POST /v1/shares` takes: the id of a plan, of a run (a portfolio or a decision), or of a watch."""

    model_config = ConfigDict(json_schema_extra={"examples": _EXAMPLES})

    plan: ObjectId = Field(default=None)
    run: ObjectId = Field(default=None)
    watch: ObjectId = Field(default=None)

    def named(self) -> tuple[Kind, str]:
        """The kind and the id. Raises `UnusableInput` for none or several."""
        by_kind: dict[Kind, str | None] = {"plan": self.plan, "run": self.run, "watch": self.watch}
        given = [(kind, each) for kind, each in by_kind.items() if each is not None]
        if len(given) != 1:
            raise UnusableInput.at(
                message=f"{len(given)} things are named; accepted: one of plan, run, watch with its id"
            )
        return given[0]


class OpenedLinkDocument(Document):
    """What `POST /v1/shares/open` takes: a link as it was sent, or what follows its last slash."""

    link: Annotated[str, Label]


def parse_share(document: object) -> tuple[Kind, str]:
    """What is to be shared. Raises `UnusableInput` naming every field at fault."""
    return read_as(ShareDocument, document).named()


def parse_link(document: object) -> str:
    """The link that is opened. Raises `UnusableInput` naming every field at fault."""
    return read_as(OpenedLinkDocument, document).link
