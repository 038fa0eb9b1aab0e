"""`/docs`: the operations as one plain page, made from the OpenAPI document; no script, nothing from elsewhere."""

import json
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse

router = APIRouter()

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}"
    "pre{background:#f4f4f4;padding:.75rem;overflow:auto}code{font-family:ui-monospace,monospace}"
    "h2{border-top:1px solid #ccc;padding-top:1rem}.method{color:#05603a}td,th{text-align:left;padding:.1rem 1rem .1rem 0}"
)
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Referrer-Policy": "no-referrer",
}


@router.get("/docs", include_in_schema=False, response_class=HTMLResponse)
async def docs(request: Request) -> HTMLResponse:
    """The page."""
    return HTMLResponse(page(request.app.openapi()), headers=_HEADERS)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> JSONResponse:
    """The document that the page is made from."""
    return JSONResponse(request.app.openapi())


def page(document: dict[str, Any]) -> str:
    """The HTML for an OpenAPI document."""
    operations = [
        _operation(method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    info = document["info"]
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(info['title'])}</title>"
        f"<style>{_STYLE}</style><h1>{escape(info['title'])} {escape(info['version'])}</h1>"
        f"<p>{escape(info.get('description', ''))} <a href=/openapi.json>OpenAPI document</a></p>{''.join(operations)}"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    return (
        f"<h2 id={escape(operation['operationId'])}><span class=method>{method.upper()}</span> <code>{escape(path)}</code></h2>"
        f"<p><strong>{escape(operation.get('summary', ''))}.</strong> {escape(operation.get('description', ''))}</p>"
        f"{_parameters(operation.get('parameters', []))}{_examples(path, operation)}{_responses(operation['responses'])}"
    )


def _parameters(parameters: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code><td>{escape(each['in'])}"
        f"<td>{escape(each.get('description') or each['schema'].get('description') or '')}"
        for each in parameters
    )
    return f"<table><tr><th>parameter<th>in<th>meaning{rows}</table>" if rows else ""


def _examples(path: str, operation: dict[str, Any]) -> str:
    """Each example of a body as a command that can be pasted."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return "".join(
        f"<pre>curl -sS http://127.0.0.1:8080{escape(path)} -H 'content-type: application/json' -d '"
        f"{escape(json.dumps(each['value'], indent=1))}'</pre>"
        for each in content.get("examples", {}).values()
    )


def _responses(responses: dict[str, dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td>{escape(status)}<td>{escape(answer['description'])}<td>{escape(', '.join(answer.get('content', {})))}"
        for status, answer in responses.items()
    )
    return f"<table><tr><th>status<th>meaning<th>content{rows}</table>"
