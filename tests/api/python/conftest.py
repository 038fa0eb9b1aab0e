"""The Python interface on a store of each test's own."""

from collections.abc import Iterator

import pytest

from gpuplan.api.python import service as python_service


@pytest.fixture(autouse=True)
def own_service(own_store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", own_store)
    yield
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", own_store)
    python_service.service().store.close()
    python_service._cached_services.cache_clear()
