"""Users hold these names: scripts, dashboards and queues break without them."""

import pytest

from tests.golden.surface import recorded_surface, surface


@pytest.fixture(scope="module")
def now() -> dict[str, list[str]]:
    return surface()


@pytest.mark.parametrize("kind", sorted(recorded_surface()))
def test_nothing_that_users_hold_is_gone(kind: str, now: dict[str, list[str]]) -> None:
    gone = sorted(set(recorded_surface()[kind]) - set(now[kind]))
    assert not gone, f"users hold these; a removal needs a CHANGELOG entry and a line less in surface.json: {gone}"
