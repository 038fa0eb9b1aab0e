"""`/docs`: all operations as one plain page, generated from the OpenAPI document, without scripts or external
resources.
"""

import json
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from gpuplan.catalog.parsing.json_object import JsonObject

router = APIRouter()


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """The page."""
    from gpuplan.api.web.page_rendering import render

    document = request.app.openapi()
    context = {"section": "Docs", "info": document["info"], "operations": operations(document, _asked_at(request))}
    return render(request, "docs.html", context)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> JSONResponse:
    """The OpenAPI document that the page is generated from."""
    return JSONResponse(request.app.openapi())


def _asked_at(request: Request) -> str:
    """The address by which the reader reached the service: `https://gpuplan.example.com`."""
    return f"{request.url.scheme}://{request.url.netloc}"


def operations(document: JsonObject, service: str) -> list[JsonObject]:
    """Every operation of an OpenAPI document: id, method, path, summary, parameters, example commands, responses.

    The commands call the `service` address.
    """
    return [
        {
            "id": operation["operationId"],
            "method": method.upper(),
            "path": path,
            "summary": operation.get("summary", ""),
            "description": operation.get("description", ""),
            "parameters": [_parameter(parameter) for parameter in operation.get("parameters", [])],
            "examples": _examples(service, method, path, operation),
            "responses": [
                (status, answer["description"], ", ".join(answer.get("content", {})))
                for status, answer in operation["responses"].items()
            ],
        }
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def _parameter(parameter: JsonObject) -> tuple[str, str, str]:
    return (
        parameter["name"],
        parameter["in"],
        parameter.get("description") or parameter["schema"].get("description") or "",
    )


def _examples(service: str, method: str, path: str, operation: JsonObject) -> list[str]:
    """Commands to copy: one for each example of a body, or a single one if the operation takes no body."""
    asked = operation.get("parameters", [])
    required = [parameter for parameter in asked if parameter["required"]]
    query, ids = (
        {parameter["name"]: parameter["schema"]["examples"][0] for parameter in required if parameter["in"] == place}
        for place in ("query", "path")
    )
    url = f"{service}{path.format(**ids)}" + (f"?{urlencode(query)}" if query else "")
    if "requestBody" not in operation:
        return [f"curl -sS {'' if method == 'get' else f'-X {method.upper()} '}{url}"]
    bodies = operation["requestBody"]["content"]["application/json"].get("examples", {})
    return [
        f"curl -sS {url} -H 'content-type: application/json' -d '{json.dumps(body['value'], indent=1)}'"
        for body in bodies.values()
    ]
