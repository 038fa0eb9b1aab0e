"""`/docs`: the operations as one plain page, made from the OpenAPI document; no script, nothing from elsewhere."""

import json
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

router = APIRouter()


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """The page."""
    from api.web.pages import render

    document = request.app.openapi()
    context = {"section": "Docs", "info": document["info"], "operations": operations(document, _asked_at(request))}
    return render(request, "docs.html", context)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> JSONResponse:
    """The document that the page is made from."""
    return JSONResponse(request.app.openapi())


def _asked_at(request: Request) -> str:
    """The address at which the reader reached the service: `https://gpuplan.example.com`."""
    return f"{request.url.scheme}://{request.url.netloc}"


def operations(document: dict[str, Any], service: str) -> list[dict[str, Any]]:
    """Every operation of an OpenAPI document: id, method, path, what it is, parameters, commands to paste, answers.

    The commands ask the `service` at that address.
    """
    return [
        {
            "id": operation["operationId"],
            "method": method.upper(),
            "path": path,
            "summary": operation.get("summary", ""),
            "description": operation.get("description", ""),
            "parameters": [_parameter(each) for each in operation.get("parameters", [])],
            "examples": _examples(service, method, path, operation),
            "responses": [
                (status, answer["description"], ", ".join(answer.get("content", {})))
                for status, answer in operation["responses"].items()
            ],
        }
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def _parameter(each: dict[str, Any]) -> tuple[str, str, str]:
    return each["name"], each["in"], each.get("description") or each["schema"].get("description") or ""


def _examples(service: str, method: str, path: str, operation: dict[str, Any]) -> list[str]:
    """Commands that can be pasted: one for each example of a body, or the question alone where there is no body."""
    asked = operation.get("parameters", [])
    names = {each["name"]: each["example"] for each in asked if each["in"] == "path"}
    query = {
        each["name"]: each["schema"]["examples"][0] for each in asked if each["in"] == "query" and each["required"]
    }
    url = f"{service}{path.format(**names)}" + (f"?{urlencode(query)}" if query else "")
    if "requestBody" not in operation:
        return [f"curl -sS {'' if method == 'get' else f'-X {method.upper()} '}{url}"]
    bodies = operation["requestBody"]["content"]["application/json"].get("examples", {})
    return [
        f"curl -sS {url} -H 'content-type: application/json' -d '{json.dumps(each['value'], indent=1)}'"
        for each in bodies.values()
    ]
