"""The reference says what the code accepts: fields of a job file, settings, routes, scopes, commands, permissions."""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import boto3  # type: ignore[import-untyped]
import yaml
from botocore import xform_name  # type: ignore[import-untyped]

from docs.field_tables import rows
from gpuplan.api.cli.main import application
from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.portfolio import PortfolioDocument
from gpuplan.api.schemas.settings_file import Environment, SettingsFile
from gpuplan.api.security.access_settings import Variables
from gpuplan.api.security.identity import MEANING
from gpuplan.api.services.composition import open_services
from tests.docs.pages import DOCS, ROOT, blocks

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
    cells = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        cells.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return cells[2:]


def test_the_table_of_a_portfolio_has_every_field_with_what_it_takes_and_its_default() -> None:
    shown = table("job-file.md", "<!-- fields of PortfolioDocument -->")
    assert {row[0].strip("`"): (row[1], row[2]) for row in shown} == rows(PortfolioDocument)
    assert all(row[3] for row in shown)


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
    gpuplan = open_services(Environment(database_url=own_store))
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


def test_the_overview_names_every_command() -> None:
    named = set(re.findall(r"[a-z-]+", " ".join(re.findall(r"`([^`]+)`", text("overview.md")))))
    app = application()
    known = {
        registered_command.name or registered_command.callback.__name__.replace("_", "-")
        for registered_command in app.registered_commands
        if registered_command.callback
    }
    known |= {registered_group.name for registered_group in app.registered_groups if registered_group.name}
    assert known - named <= {"version"}


def test_the_readme_is_short_and_names_commands_that_there_are() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 120
    app = application()
    known = {
        registered_command.name or registered_command.callback.__name__.replace("_", "-")
        for registered_command in app.registered_commands
        if registered_command.callback
    }
    known |= {registered_group.name for registered_group in app.registered_groups if registered_group.name}
    named = re.findall(r"`gpuplan ([a-z-]+)", readme)
    assert len(named) >= 10
    assert set(named) <= known


@cache
def words(package: str) -> frozenset[str]:
    """Every string of the code of a provider."""
    strings: set[str] = set()
    for path in (ROOT / "providers" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                strings.add(node.value)
    return frozenset(strings)


def calls(package: str) -> Iterator[ast.Call]:
    for path in (ROOT / "providers" / package).rglob("*.py"):
        yield from (n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Call))


def document(title: str) -> Any:
    [block] = [block for block in blocks(DOCS / "providers.md") if block.title == title]
    return json.loads(block.text) if title.endswith("json") else yaml.safe_load(block.text)


def test_the_policy_for_aws_allows_exactly_the_calls_that_are_made() -> None:
    made = set()
    for service in ("ec2", "pricing", "savingsplans", "service-quotas"):
        client = boto3.client(service, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        operations = {xform_name(name): name for name in client.meta.service_model.operation_names}
        made |= {f"{service.replace('-', '')}:{operations[name]}" for name in operations.keys() & words("aws")}
    statements = document("gpuplan-aws-policy.json")["Statement"]
    assert {action for statement in statements for action in statement["Action"]} == made
    assert all(statement["Effect"] == "Allow" for statement in statements)


def test_the_role_for_google_cloud_has_exactly_the_permissions_of_the_calls_that_are_made() -> None:
    made, singles = set(), set()
    for call in calls("gcp"):
        strings = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
        if len(strings) == 2 and strings[1] in {"list", "aggregated_list"}:
            made.add((str(strings[0]), str(strings[1])))
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name == "single":
            singles.add(str(strings[0]))
        if name == "_scoped":
            made.add((str(strings[0]), "aggregated_list"))
        listers = [arg.attr for arg in call.args if isinstance(arg, ast.Attribute) and arg.attr.startswith("list_")]
        made |= {("Tpu", lister) for lister in listers if lister not in GOOGLE_PUBLIC}
    assert made == set(GOOGLE)
    code = (ROOT / "providers/gcp/capacity.py").read_text()
    advice = {f"compute.advice.{method}" for method in re.findall(r"/advice/(\w+)\"", code)}
    code = (ROOT / "providers/gcp/quotas.py").read_text()
    quotas = set(re.findall(r"the permission (cloudquotas\.\w+\.\w+)", code))
    every = set(GOOGLE.values()) | advice | singles | quotas
    assert set(document("gpuplan-gcp-role.yaml")["includedPermissions"]) == every


def test_the_role_for_azure_allows_exactly_the_path_that_is_asked() -> None:
    paths = re.findall(r"/providers/(Microsoft\.\w+/\w+)", (ROOT / "providers/azure/arm_client.py").read_text())
    code = (ROOT / "providers/azure/capacity.py").read_text()
    scores = re.findall(r"/providers/(Microsoft\.Compute/locations)/\{[^}]*\}(/\w+)/spot(/generate)", code)
    graph = re.findall(r"/providers/(Microsoft\.ResourceGraph/resources)", code)
    usages = re.findall(r"`(Microsoft\.Compute/locations/usages)`", (ROOT / "providers/azure/quotas.py").read_text())
    asked = [f"{path}/read" for path in dict.fromkeys(paths + usages)]
    asked += [f"{''.join(parts)}/action" for parts in scores]
    assert document("gpuplan-azure-role.json")["Actions"] == asked + [f"{path}/read" for path in graph]


def test_the_page_on_the_nightly_refresh_names_the_same_permissions() -> None:
    named = set(re.findall(r"`((?:ec2|pricing|savingsplans):\w+)`", text("nightly.md")))
    assert named == set(document("gpuplan-aws-policy.json")["Statement"][0]["Action"])
