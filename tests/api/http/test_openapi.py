"""Whatever the OpenAPI document allows is answered as the document says: requests made from it, at random."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks

from api.app import Gpuplan
from api.http.service import create_service
from api.settings import Environment


@pytest.fixture(scope="session")
def document(database_url: str) -> object:
    return schemathesis.openapi.from_asgi(
        "/openapi.json", create_service(Gpuplan(Environment(database_url=database_url)))
    )


schema = schemathesis.pytest.from_fixture("document")

CHECKS = (
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
)


@schema.parametrize()
@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_that_the_document_promises(case: schemathesis.Case) -> None:
    case.call_and_validate(checks=list(CHECKS))
