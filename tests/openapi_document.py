"""The OpenAPI document of a service that is open to all, made once in a process: it takes a second of the processor."""

from functools import cache
from typing import Any

from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services


@cache
def openapi_document() -> dict[str, Any]:
    """The document, which no test may change. It is made from the code alone: no store is opened."""
    document: dict[str, Any] = create_service(open_services(Environment())).openapi()
    return document
