"""The reference says what the code accepts: fields of a job file, settings, routes, scopes, commands, permissions."""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
import yaml
from botocore import xform_name  # type: ignore[import-untyped]
from pydantic import BaseModel

from api.app import Gpuplan
from api.cli.main import application
from api.documents.constraints import ConstraintsDocument, DataDocument
from api.documents.job import JobDocument, TrainingDocument
from api.documents.portfolio import PortfolioDocument
from api.documents.workload import ExplicitDocument, PresetDocument, ProfileDocument, TransformerDocument
from api.http.service import create_service
from api.identity.settings import Variables
from api.identity.who import MEANING
from api.settings import Environment, SettingsFile
from tests.docs.fields import rows
from tests.docs.pages import DOCS, ROOT, blocks

MODELS: tuple[type[BaseModel], ...] = (
    JobDocument,
    PresetDocument,
    TransformerDocument,
    ExplicitDocument,
    ProfileDocument,
    TrainingDocument,
    ConstraintsDocument,
    DataDocument,
    PortfolioDocument,
)
#: Which permission lets one make which call of Google Cloud's libraries, by client and method.
GOOGLE = {
    ("Regions", "list"): "compute.regions.list",
    ("Zones", "list"): "compute.zones.list",
    ("AcceleratorTypes", "aggregated_list"): "compute.acceleratorTypes.list",
    ("MachineTypes", "aggregated_list"): "compute.machineTypes.list",
    ("Tpu", "list_accelerator_types"): "tpu.acceleratortypes.list",
}
#: The price list is public.
GOOGLE_PUBLIC = {"list_skus"}


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def table(page: str, after: str) -> list[list[str]]:
    """The cells of the first table behind `after`, without its head."""
    lines = text(page).partition(after)[2].lstrip("\n").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    found = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found[2:]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_table_of_the_job_file_has_every_field_with_what_it_takes_and_its_default(model: type[BaseModel]) -> None:
    shown = {
        row[0].strip("`"): (row[1], row[2]) for row in table("job-file.md", f"<!-- fields of {model.__name__} -->")
    }
    assert shown == rows(model)
    assert all(row[3] for row in table("job-file.md", f"<!-- fields of {model.__name__} -->"))


def test_the_page_on_settings_has_every_key_with_its_default_and_every_variable() -> None:
    shown = {row[0].strip("`"): row[1] for row in table("settings.md", "## The settings file")}
    plain = {
        name: str(field.default)
        for name, field in SettingsFile.model_fields.items()
        if isinstance(field.default, int | float | str)
    }
    assert {name: shown[name] for name in plain} == plain
    assert set(shown) == set(SettingsFile.model_fields)
    for name, field in Environment.model_fields.items():
        assert f"`{field.validation_alias or 'GPUPLAN_' + name.upper()}`" in text("settings.md")


def test_the_page_on_security_has_every_limit_with_its_default_and_every_scope() -> None:
    limits = {row[0]: row[1] for row in table("security.md", "## Limits")}
    for name, field in Variables.model_fields.items():
        [shown] = [value for names, value in limits.items() if f"`GPUPLAN_{name.upper()}`" in names]
        if isinstance(field.default, int | float) and not isinstance(field.default, bool):
            assert float(shown) == field.default
    assert {row[0].strip("`"): row[1] for row in table("security.md", "## Who may ask")} == MEANING


def test_the_page_on_the_api_has_every_route_and_the_scope_that_it_needs(own_store: str) -> None:
    gpuplan = Gpuplan(Environment(database_url=own_store))
    described = create_service(gpuplan).openapi()
    gpuplan.store.close()
    wanted = {
        f"{method.upper()} {path}": operation.get("x-scope", "none")
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }
    shown: dict[str, str] = {}
    for cells in table("api.md", "## Routes"):
        routes, scopes = re.findall(r"`([^`]+)`", cells[0]), cells[2].split(", ")
        assert len(scopes) in {1, 2, len(routes)}
        for number, route in enumerate(routes):
            if len(scopes) == len(routes) or len(scopes) == 1:
                shown[route] = scopes[0] if len(scopes) == 1 else scopes[number]
            else:
                shown[route] = scopes[1] if route.startswith("GET") else scopes[0]
    assert shown == wanted


def test_the_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("## What there is")[2]
    named = set(re.findall(r"[a-z-]+", " ".join(re.findall(r"`([^`]+)`", readme))))
    app = application()
    known = {each.name or each.callback.__name__.replace("_", "-") for each in app.registered_commands if each.callback}
    known |= {each.name for each in app.registered_groups if each.name}
    assert known - named <= {"version"}


@cache
def words(package: str) -> frozenset[str]:
    """Every string of the code of a provider."""
    found: set[str] = set()
    for path in (ROOT / "providers" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return frozenset(found)


def calls(package: str) -> Iterator[ast.Call]:
    for path in (ROOT / "providers" / package).rglob("*.py"):
        yield from (n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Call))


def document(title: str) -> Any:
    [found] = [block for block in blocks(DOCS / "providers.md") if block.title == title]
    return json.loads(found.text) if title.endswith("json") else yaml.safe_load(found.text)


def test_the_policy_for_aws_allows_exactly_the_calls_that_are_made() -> None:
    made = set()
    for service in ("ec2", "pricing", "savingsplans"):
        client = boto3.client(service, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        operations = {xform_name(name): name for name in client.meta.service_model.operation_names}
        made |= {f"{service}:{operations[name]}" for name in operations.keys() & words("aws")}
    [statement] = document("gpuplan-aws-policy.json")["Statement"]
    assert set(statement["Action"]) == made
    assert statement["Effect"] == "Allow"


def test_the_role_for_google_cloud_has_exactly_the_permissions_of_the_calls_that_are_made() -> None:
    made = set()
    for call in calls("gcp"):
        strings = [each.value for each in call.args if isinstance(each, ast.Constant)]
        if len(strings) == 2 and strings[1] in {"list", "aggregated_list"}:
            made.add((str(strings[0]), str(strings[1])))
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name == "_scoped":
            made.add((str(strings[0]), "aggregated_list"))
        listers = [each.attr for each in call.args if isinstance(each, ast.Attribute) and each.attr.startswith("list_")]
        made |= {("Tpu", each) for each in listers if each not in GOOGLE_PUBLIC}
    assert made == set(GOOGLE)
    assert set(document("gpuplan-gcp-role.yaml")["includedPermissions"]) == set(GOOGLE.values())


def test_the_role_for_azure_allows_exactly_the_path_that_is_asked() -> None:
    paths = re.findall(r"/providers/(Microsoft\.\w+/\w+)", (ROOT / "providers/azure/arm_client.py").read_text())
    assert document("gpuplan-azure-role.json")["Actions"] == [f"{path}/read" for path in dict.fromkeys(paths)]


def test_the_page_on_the_nightly_refresh_names_the_same_permissions() -> None:
    named = set(re.findall(r"`((?:ec2|pricing|savingsplans):\w+)`", text("nightly.md")))
    assert named == set(document("gpuplan-aws-policy.json")["Statement"][0]["Action"])
