"""The OpenAPI document as those use it who read it: generators of clients, and people who try its examples."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from jsonschema import FormatChecker

from gpuplan.api.http.docs_page import operations as docs_operations
from tests.openapi_document import openapi_document

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
FORMATS = FormatChecker(())
FORMATS.checks("date-time")(lambda value: not isinstance(value, str) or _RFC_3339.fullmatch(value) is not None)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_document()


@pytest.fixture(scope="module")
def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def validator(document: dict[str, Any], schema: dict[str, Any]) -> jsonschema.Draft202012Validator:
    """With all components beside the schema, where its references point."""
    whole = {"components": document["components"]} | schema
    return jsonschema.Draft202012Validator(whole, format_checker=FORMATS)


def examples(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Name, schema and value of every example of a body, an answer, a parameter and a schema."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            for kind, body in operation.get("requestBody", {}).get("content", {}).items():
                for name, example in body.get("examples", {}).items():
                    yield f"{where} {kind} {name}", body["schema"], example["value"]
            for status, answer in operation["responses"].items():
                for kind, content in answer.get("content", {}).items():
                    if "example" in content:
                        yield f"{where} {status} {kind}", content["schema"], content["example"]
            for parameter in operation.get("parameters", []):
                for example in parameter["schema"].get("examples", ()):
                    yield f"{where} {parameter['name']}", parameter["schema"], example
    for name, schema in document["components"]["schemas"].items():
        for number, example in enumerate(schema.get("examples", [])):
            yield f"{name} {number}", schema, example


def test_every_example_is_one_that_its_schema_allows(document: dict[str, Any]) -> None:
    wrong = [
        f"{name}: {error.json_path} {error.message[:200]}"
        for name, schema, value in examples(document)
        for error in validator(document, schema).iter_errors(value)
    ]
    assert not wrong


def test_every_operation_says_what_it_does_and_has_a_name_of_its_own(
    operations: list[tuple[str, dict[str, Any]]],
) -> None:
    assert [
        name for name, operation in operations if not operation.get("summary") or not operation.get("description")
    ] == []
    names = [operation["operationId"] for _, operation in operations]
    assert len(set(names)) == len(names)


def test_every_operation_shows_how_it_is_asked_or_what_it_answers(
    document: dict[str, Any], operations: list[tuple[str, dict[str, Any]]]
) -> None:
    def shows(operation: dict[str, Any]) -> bool:
        asked = operation.get("parameters", [])
        parts = [parameter | parameter["schema"] for parameter in asked]
        parts += operation.get("requestBody", {}).get("content", {}).values()
        parts += [
            content for answer in operation["responses"].values() for content in answer.get("content", {}).values()
        ]
        return any("example" in part or "examples" in part for part in parts)

    assert [name for name, operation in operations if not shows(operation)] == []
    in_paths = [
        parameter
        for _, operation in operations
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "path"
    ]
    assert [in_path["name"] for in_path in in_paths if "examples" not in in_path["schema"]] == []


def test_every_operation_with_a_body_has_an_example_of_it(operations: list[tuple[str, dict[str, Any]]]) -> None:
    bodies = [
        (name, operation["requestBody"]["content"]) for name, operation in operations if "requestBody" in operation
    ]
    assert bodies
    assert [name for name, content in bodies if not all(media.get("examples") for media in content.values())] == []


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            for child in node.values():
                yield from references(child)
        elif isinstance(node, list):
            for child in node:
                yield from references(child)

    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(references(document)) <= known


def test_a_generator_of_clients_reads_the_document(document: dict[str, Any], tmp_path: Path) -> None:
    source, made = tmp_path / "openapi.json", tmp_path / "models.py"
    source.write_text(json.dumps(document))
    arguments = ["--input-file-type", "openapi", "--output-model-type", "typing.TypedDict", "--formatters", "builtin"]
    subprocess.run(
        [sys.executable, "-m", "datamodel_code_generator", "--input", source, "--output", made, *arguments], check=True
    )
    scope: dict[str, Any] = {"__name__": "models"}
    exec(compile(made.read_text(), "models.py", "exec"), scope)
    assert {"Plan", "Phase", "Certificate", "JobDocument"} <= set(scope)


def test_links_lead_to_operations_that_take_what_the_answer_names(
    document: dict[str, Any], operations: list[tuple[str, dict[str, Any]]]
) -> None:
    takes = {
        operation["operationId"]: {parameter["name"] for parameter in operation.get("parameters", [])}
        for _, operation in operations
    }
    links = [
        (response, link)
        for _, operation in operations
        for response in operation["responses"].values()
        for link in response.get("links", {}).values()
    ]
    assert {link["operationId"] for _, link in links} == {name for name in takes if "_id" in "".join(takes[name])} - {
        "saved_portfolio",
        "snapshot_diff",
    }
    for response, link in links:
        for parameter, expression in link["parameters"].items():
            assert parameter in takes[link["operationId"]]
            schema = response["content"]["application/json"]["schema"]
            for step in expression.removeprefix("$response.body#/").split("/"):
                schema = next(
                    variant["properties"][step]
                    for variant in variants(document, schema)
                    if step in variant["properties"]
                )


def variants(document: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects that a schema allows, references followed."""
    if "$ref" in schema:
        return variants(document, document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]])
    choices = schema.get("anyOf") or schema.get("oneOf")
    return [variant for choice in choices for variant in variants(document, choice)] if choices else [schema]


def test_every_command_of_the_page_can_be_pasted_as_it_stands(document: dict[str, Any]) -> None:
    listed = docs_operations(document, "https://gpuplan.example.com")
    assert [listed_operation["id"] for listed_operation in listed if not listed_operation["examples"]] == []
    commands = {listed_operation["id"]: listed_operation["examples"][0] for listed_operation in listed}
    assert commands["prices"] == "curl -sS https://gpuplan.example.com/v1/prices?instance_type=p5.48xlarge"
    assert commands["cancel_run"].startswith("curl -sS -X DELETE https://gpuplan.example.com/v1/runs/portfolio-")
    asked = [shlex.split(command)[-1 if " -d " not in command else 2] for command in commands.values()]
    assert [url for url in asked if not url.startswith("https://gpuplan.example.com/") or re.search(r"[{}]", url)] == []
