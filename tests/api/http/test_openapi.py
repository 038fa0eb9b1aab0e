"""Whatever the OpenAPI document allows is answered as the document says: requests made from it, at random."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks

from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from tests.api.clouds_for_tests import NOWHERE, aws, making
from tests.openapi_document import openapi_document

pytestmark = [
    pytest.mark.slow(reason="asks the whole OpenAPI document of a running service"),
    # Hypothesis blames a strategy where a thread of the service draws a random number meanwhile.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies"),
]

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
POSITIVE, NEGATIVE = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE


def operations() -> list[Any]:
    """Each operation with requests as they should be and, where there is something to get wrong, as they should not."""
    cases = []
    for path, methods in openapi_document()["paths"].items():
        for method, operation in methods.items():
            asks = "requestBody" in operation or any(
                parameter["in"] == "query" for parameter in operation.get("parameters", [])
            )
            cases += [pytest.param(path, method, mode) for mode in ([POSITIVE, NEGATIVE] if asks else [POSITIVE])]
    return cases


@pytest.fixture(scope="module")
def document(embedded_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """On a store of its own, since these requests refresh it, from a cloud that answers from memory."""
    url = f"sqlite:///{shutil.copy(embedded_store, tmp_path_factory.mktemp('openapi'))}"
    gpuplan = open_services(Environment(database_url=url, **NOWHERE), clouds={"aws": making(aws())})  # type: ignore[arg-type]
    return schemathesis.openapi.from_asgi("/openapi.json", create_service(gpuplan))


@pytest.mark.parametrize(("path", "method", "mode"), operations())
def test_every_answer_is_one_that_the_document_promises(document: Any, path: str, method: str, mode: Any) -> None:
    @given(case=document[path][method].as_strategy(generation_mode=mode))
    @settings(
        max_examples=3,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def conforms(case: Any) -> None:
        case.call_and_validate(checks=CHECKS)

    conforms()
