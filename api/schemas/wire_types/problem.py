"""What goes wrong, as RFC 9457 problem details."""

from typing import NotRequired, TypedDict

FieldProblem = TypedDict("FieldProblem", {"pointer": str, "detail": str, "in": NotRequired[str]})
"""One field at fault: an RFC 6901 pointer into the body, or into the query, path or headers, as `in` says."""


class Problem(TypedDict):
    """RFC 9457 problem details."""

    type: str
    title: str
    status: int
    detail: str
    request_id: NotRequired[str]
    errors: NotRequired[list[FieldProblem]]
