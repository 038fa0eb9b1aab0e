"""Calls of the service by HTTP method, path below `/v1`, body and query; parameters that are None are not sent."""

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote

from gpuplan_client.call import Call

type Document = Mapping[str, Any]
type Prices = Literal["expected", "as-observed"]
type ExportFormat = Literal[
    "skypilot",
    "dstack",
    "terraform",
    "kubernetes",
    "jobset",
    "slurm",
    "aws-cli",
    "gcloud",
    "az",
    "lambda",
    "nebius",
    "runpod",
    "docker",
    "focus",
    "json",
]


def _at(*parts: str) -> str:
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def get[Answer](*path: str, **query: Any) -> Call[Answer]:
    """A call that reads."""
    return Call(method="GET", path=_at(*path), query=query)


def text(*path: str, **query: Any) -> Call[str]:
    """A call that reads a file."""
    return Call(method="GET", path=_at(*path), query=query, text=True)


def post[Answer](
    *path: str,
    body: Document | None = None,
    headers: Mapping[str, str] | None = None,
    single_try: bool = False,
    **query: Any,
) -> Call[Answer]:
    """A call that asks or adds."""
    return Call(method="POST", path=_at(*path), query=query, body=body, headers=headers or {}, single_try=single_try)


def put[Answer](*path: str, body: Document | None = None) -> Call[Answer]:
    """A call that sets."""
    return Call(method="PUT", path=_at(*path), body=body)


def delete[Answer](*path: str) -> Call[Answer]:
    """A call that removes or ends."""
    return Call(method="DELETE", path=_at(*path))


def stated(document: Document) -> Document:
    """What has a value."""
    return {name: value for name, value in document.items() if value is not None}
