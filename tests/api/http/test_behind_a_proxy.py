"""What a proxy says of its clients counts where it is trusted (FORWARDED_ALLOW_IPS), and from nobody else."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.http.guarded import ADMIN_KEY
from tests.api.http.test_stopping import GPUPLAN, wait_until_ready
from tests.patience import MINUTE, enough_left
from tests.ports import free_port

pytestmark = pytest.mark.slow(reason="starts the service")

NAME, PROXY, STRANGER = "plan.example.com", "127.0.0.2", "127.0.0.3"
#: As a proxy that ends TLS says it of a client; what stands before the last address the client itself made up.
FORWARDED = {"Host": NAME, "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9, 198.51.100.7"}


@pytest.fixture(scope="module")
def url(embedded_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service behind a proxy at another of this machine's own addresses; a login may fail once a minute."""
    folder = tmp_path_factory.mktemp("proxy")
    key = folder / "admin.key"
    key.write_text(ADMIN_KEY)
    key.chmod(0o600)
    store = shutil.copy(embedded_store, folder / "gpuplan.sqlite3")
    variables = {
        "GPUPLAN_DATABASE_URL": f"sqlite:///{store}",
        "GPUPLAN_ADMIN_KEY_FILE": str(key),
        "GPUPLAN_FAILED_LOGINS_PER_MINUTE": "1",
        "FORWARDED_ALLOW_IPS": PROXY,
    }
    port = free_port()
    command = [*GPUPLAN, "serve", "--port", str(port), "--allow-host", NAME]
    with subprocess.Popen(command, env=os.environ | variables, stderr=subprocess.PIPE, text=True) as process:
        try:
            base_url = f"http://127.0.0.1:{port}"
            wait_until_ready(base_url, process)
            yield base_url
        finally:
            process.terminate()


def at(url: str, address: str) -> httpx.Client:
    """A client that the service sees at this address."""
    return httpx.Client(base_url=url, transport=httpx.HTTPTransport(local_address=address), timeout=60)


def logged_in(url: str, address: str) -> tuple[str, str]:
    """The cookie of a session that is begun from there, and the address that the log says it was begun from."""
    with at(url, address) as client:
        origin = {"Origin": f"https://{NAME}"}
        answer = client.post("/login", data={"key": ADMIN_KEY}, headers=FORWARDED | origin)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
        newest, *_ = client.get("/v1/audit", headers=headers).json()["entries"]
    assert newest["action"] == "login"
    return answer.headers["set-cookie"], newest["address"]


def refusals(url: str, address: str, *clients: str) -> list[int]:
    """What each of these clients gets for a key that is none."""
    key = {"Authorization": "Bearer gpk_no-key"}
    with at(url, address) as connection:
        asked = [
            connection.get("/v1/presets", headers=FORWARDED | key | {"X-Forwarded-For": client}) for client in clients
        ]
    return [response.status_code for response in asked]


def test_a_trusted_proxy_says_who_asks_and_that_it_was_over_https(url: str) -> None:
    cookie, address = logged_in(url, PROXY)
    assert cookie.startswith("__Host-gpuplan=")
    assert "Secure" in cookie
    assert address == "198.51.100.7"


def test_nobody_else_is_believed(url: str) -> None:
    cookie, address = logged_in(url, STRANGER)
    assert cookie.startswith("gpuplan=")
    assert "Secure" not in cookie
    assert address == STRANGER


def test_failed_logins_count_per_client_of_the_proxy_and_per_stranger(url: str) -> None:
    enough_left(MINUTE, 10)
    assert refusals(url, PROXY, "198.51.100.1", "198.51.100.2", "198.51.100.1") == [401, 401, 429]
    assert refusals(url, PROXY, "203.0.113.1, 198.51.100.3", "203.0.113.2, 198.51.100.3") == [401, 429]
    assert refusals(url, STRANGER, "198.51.100.4", "198.51.100.5") == [401, 429]


def test_links_stay_at_the_name_that_was_called(url: str) -> None:
    with at(url, PROXY) as client:
        headers = FORWARDED | {"Authorization": f"Bearer {ADMIN_KEY}"}
        link = client.get("/v1/offers?limit=1", headers=headers).links["next"]["url"]
        assert link.startswith("/v1/offers?")
        sent = client.get("/catalogue", headers=FORWARDED | {"Accept": "text/html"})
        assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=%2Fcatalogue")
