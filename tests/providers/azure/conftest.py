"""Azure's SDK waits 0, 1.6 and 3.2 seconds between its attempts: no longer here than we do ourselves."""

import pytest
from azure.core.pipeline.transport import RequestsTransport

from tests.providers.conftest import a_moment


@pytest.fixture(autouse=True)
def short_waits_of_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """As between our own attempts."""
    monkeypatch.setattr(RequestsTransport, "sleep", lambda _, seconds: a_moment(seconds))
