"""Requests to share a plan, run or watch by link, and to open a link."""

from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue

from gpuplan.catalog.parsing.document_fields import Document, Label, read_as
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.ownership import Kind

_EXAMPLES: list[JsonValue] = [{"plan": "plan-751d7a5c37e52c2c94da"}]
ObjectId = Annotated[str | None, Label]


class ShareDocument(Document):
    """The body of `POST /v1/shares`: the id of a plan, of a run (a portfolio or a decision), or of a watch."""

    model_config = ConfigDict(json_schema_extra={"examples": _EXAMPLES})

    plan: ObjectId = Field(default=None)
    run: ObjectId = Field(default=None)
    watch: ObjectId = Field(default=None)

    def named(self) -> tuple[Kind, str]:
        """The kind and the id. Raises `UnusableInput` unless exactly one is given."""
        by_kind: dict[Kind, str | None] = {"plan": self.plan, "run": self.run, "watch": self.watch}
        given = [(kind, object_id) for kind, object_id in by_kind.items() if object_id is not None]
        if len(given) != 1:
            raise UnusableInput.at(message=f"{len(given)} ids are given; accepted: one of plan, run, watch with its id")
        return given[0]


class ShareLinkDocument(Document):
    """The body of `POST /v1/shares/open`: a link, or the part after its last slash."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"link": f"/shared/gpl_0a1b2c3d4e5f_{'x' * 43}"}]})

    link: Annotated[str, Label]


def parse_share(document: object) -> tuple[Kind, str]:
    """Read the kind and the id to share. Raises `UnusableInput` naming every field at fault."""
    return read_as(ShareDocument, document).named()


def parse_link(document: object) -> str:
    """Read the link to open. Raises `UnusableInput` naming every field at fault."""
    return read_as(ShareLinkDocument, document).link
