"""No secret reaches a log, wherever in a record it stands, and ordinary words stay what they are."""

import io
import logging
from collections.abc import Iterator

import pytest

from gpuplan.api.observability import log_redaction
from gpuplan.api.observability.structured_logs import configure_logs

KEY = "gpk_0123456789ab_" + "x" * 43


@pytest.fixture(autouse=True)
def read_anew() -> Iterator[None]:
    log_redaction._known_secrets.cache_clear()
    yield
    log_redaction._known_secrets.cache_clear()


@pytest.mark.parametrize(
    ("text", "unmasked", "gone"),
    [
        (f"refused {KEY} from 127.0.0.1", "gpk_0123456789ab_***", "xxxx"),
        (f"GET /shared/{KEY.replace('gpk', 'gpl')}", "/shared/gpl_0123456789ab_***", "xxxx"),
        (f"Authorization: Bearer {KEY}", "Bearer gpk_0123456789ab_***", "xxxx"),
        ("Authorization: Bearer abcdef.ghijkl", "Bearer ***", "ghijkl"),
        ("{'authorization': 'Basic dXNlcjpwYXNz'}", "Basic ***", "dXNlcjpwYXNz"),
        ("eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln", "***", "eyJzdWIi"),
        ("postgresql://gpuplan:hunter2%21@db:5432/gpuplan failed", "postgresql://gpuplan:***@db:5432", "hunter2"),
        ("POST https://hooks.slack.com/services/T0/B0/abcdef", "https://hooks.slack.com/***", "abcdef"),
        ("sent to https://chat.example/webhooks/abcdef", "https://chat.example/webhooks/***", "abcdef"),
        ("GET https://x.example/v1?api_key=AIzaSyXXXX&page=2", "page=2", "AIzaSyXXXX"),
        ("{'client_secret': 'abcdefgh', 'page': 2}", "'page': 2", "abcdefgh"),
        ("token xoxb-123456-abcdef", "token ***", "123456"),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_***", "MfKQ"),
    ],
)
def test_a_secret_is_masked_and_what_stands_beside_it_stays(text: str, unmasked: str, gone: str) -> None:
    cleaned = log_redaction.cleaned_text(text)
    assert unmasked in cleaned
    assert gone not in cleaned


@pytest.mark.parametrize(
    "text",
    [
        "/v1/plans/plan-6afeea89f2e44d38325e",
        "workload.tokens: 300B, key: h100",
        "https://prices.example/offers/v1.0/aws/index.json",
        "password authentication failed for user gpuplan",
        "no key is stored here; accepted: the id of a key",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert log_redaction.cleaned_text(text) == text


def test_what_the_environment_holds_is_masked_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("GPUPLAN_ADMIN_KEY", "plain-words-as-a-key-0123456789")
    monkeypatch.setenv("TEAM_WEBHOOK_URL", "https://chat.example/in/0123456789")
    assert log_redaction.cleaned(
        {"a": ["x plain-words-as-a-key-0123456789 y", {"b": "https://chat.example/in/0123456789"}]}
    ) == {"a": ["x *** y", {"b": "***"}]}


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_no_record_carries_a_secret_to_the_log_not_even_a_traceback(log_format: str) -> None:
    before, level = list(logging.getLogger().handlers), logging.getLogger().level
    stream = io.StringIO()
    try:
        configure_logs(log_format=log_format, stream=stream)  # type: ignore[arg-type]
        log = logging.getLogger("gpuplan.test")
        log.warning("header %s", f"Bearer {KEY}")
        log.warning(
            "fields", extra={"fields": {"headers": {"authorization": f"Bearer {KEY}"}, "path": f"/x?key={KEY}"}}
        )
        try:
            raise ValueError(f"cannot reach postgresql://u:hunter2@db with {KEY}")
        except ValueError:
            log.exception("failed on %s", {"Authorization": KEY})
    finally:
        logging.getLogger().handlers[:] = before
        logging.getLogger().setLevel(level)
        logging.captureWarnings(capture=False)
    logged = stream.getvalue()
    assert logged.count("gpk_0123456789ab_***") >= 2
    assert "xxxx" not in logged
    assert "hunter2" not in logged
