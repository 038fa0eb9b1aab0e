"""Where the regions come from when the list of them does not answer, and what is said when none does."""

import pytest

from gpuplan.catalog.runtime.errors import ProviderFailure
from tests.clouds.server import answering
from tests.providers.gcp.reads import IN_VAIN, REGION, is_unread, price, provider_of, serving, small_catalogue

REFUSED = b'{"error": {"code": 403, "message": "Required permission", "errors": [{"reason": "forbidden"}]}}'


@pytest.mark.parametrize(
    ("status", "down"),
    [
        (403, "/regions"),
        (404, "/regions"),
        (503, "/regions"),
        (403, ("/regions", "/zones")),
        (404, ("/regions", "/zones")),
    ],
)
def test_regions_come_from_another_list_where_theirs_does_not_answer(status: int, down: str | tuple[str, ...]) -> None:
    with serving(small_catalogue()) as server:
        server.break_with(answering(status, REFUSED), when=lambda request: request.path.endswith(down))
        rows = provider_of(server, patience=IN_VAIN).fetch(REGION)
    assert price(rows, "g2-standard-4") == 652_000
    assert price(rows, "tpu-v5litepod-4") == 4_800_000
    assert any(
        "Regions.list" in failure and "regions are taken from other lists" in failure for failure in rows.failures
    )
    assert all(is_unread(rows, name) for name in ("g2-standard-4", "n1-standard-8+1xT4", "tpu-v5litepod-4"))


def test_a_server_that_wants_credentials_of_an_anonymous_caller_is_told_so_at_once() -> None:
    with serving(small_catalogue()) as server:
        server.break_with(answering(401, b'{"error": {"code": 401, "message": "Login Required."}}'))
        with pytest.raises(ProviderFailure, match="credentials are required and GPUPLAN_ANONYMOUS=1 sends none"):
            provider_of(server).fetch(REGION)
        assert len(server.requests) <= 4
