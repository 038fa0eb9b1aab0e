"""Where names lead is looked at once, and gone to: never into this network, unless that is meant, whatever the name says later."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gpuplan.api.notifications.channels import Receiver
from gpuplan.api.notifications.webhook_sending import NotTaken, Patience, send, web_client
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from tests.api.notifications.conftest import QUICK, Inbox, Nights, at

NAME = "receiver.example"


@dataclass(slots=True)
class Resolver:
    """What names lead to, one answer after the other; the last one stays."""

    answers: list[list[str]]
    asked: list[str] = field(default_factory=list)

    def __call__(self, host: str, port: int, *_: object, **__: object) -> list[Any]:
        self.asked.append(host)
        addresses = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        families = {address: socket.AF_INET6 if ":" in address else socket.AF_INET for address in addresses}
        return [(families[address], socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]


Leading = Callable[..., Resolver]


@pytest.fixture
def leading(monkeypatch: pytest.MonkeyPatch) -> Leading:
    """Lets all names lead where a test says, one list of addresses per question."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)

    def lead(*answers: list[str]) -> Resolver:
        resolver = Resolver(list(answers))
        monkeypatch.setattr(socket, "getaddrinfo", resolver)
        return resolver

    return lead


def sent(url: str, *, private: bool, patience: Patience = QUICK) -> int:
    to = Receiver(name="ops", kind="webhook", url=url, url_is_secret=False, private=private)

    async def one() -> int:
        async with web_client(patience) as client:
            return await send(client, to, "note-1", {"data": {"event": "test"}}, patience)

    return asyncio.run(one())


@pytest.mark.parametrize(
    "addresses", [["10.0.0.5"], ["127.0.0.1"], ["169.254.169.254", "::1"], ["::ffff:7f00:1"], ["fd00:ec2::254"]]
)
def test_a_name_that_leads_into_this_network_is_refused_before_anything_is_sent(
    inbox: Inbox, leading: Leading, addresses: list[str]
) -> None:
    leading(addresses)
    port = inbox.server.url.rpartition(":")[2]
    with pytest.raises(NotTaken, match=rf"resolves to {addresses[0]}.*private: true") as refused:
        sent(f"http://{NAME}:{port}/hook", private=False)
    # Not for ever: whoever mends the name or the settings finds the message waiting. Nor is it tried at once again.
    assert (refused.value.final, refused.value.attempts) == (False, 1)
    assert inbox.server.requests == []


def test_a_name_is_asked_for_once_so_that_it_cannot_lead_elsewhere_after_it_was_looked_at(
    inbox: Inbox, leading: Leading
) -> None:
    resolver = leading(["127.0.0.1"], ["127.0.0.2"])
    port = inbox.server.url.rpartition(":")[2]
    assert sent(f"http://{NAME}:{port}/", private=True) == 1
    assert resolver.asked == [NAME]
    assert inbox.server.requests[0].headers["host"] == f"{NAME}:{port}"


def test_the_next_address_of_a_name_is_tried_where_the_first_is_down(inbox: Inbox, leading: Leading) -> None:
    leading(["127.9.9.9", "127.0.0.1"])
    assert sent(f"http://{NAME}:{inbox.server.url.rpartition(':')[2]}/", private=True) == 1


def test_an_address_that_never_answers_leaves_time_for_the_next_one_of_the_name(inbox: Inbox, leading: Leading) -> None:
    port = int(inbox.server.url.rpartition(":")[2])
    with swallowing("127.9.9.9", port):
        leading(["127.9.9.9", "127.0.0.1"])
        # Half of the time is for the first.
        assert sent(f"http://{NAME}:{port}/", private=True, patience=replace(QUICK, attempt_seconds=3.0)) == 1
    assert len(inbox.server.requests) == 1


def test_a_name_that_leads_nowhere_is_tried_again(leading: Leading) -> None:
    resolver = leading([])
    with pytest.raises(NotTaken, match="cannot be resolved") as failed:
        sent(f"http://{NAME}/", private=False)
    assert (failed.value.final, len(resolver.asked)) == (False, QUICK.attempts)


def test_the_certificate_must_be_of_the_name_and_not_of_the_address(
    leading: Leading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with over_tls(tmp_path) as (port, taken):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "receiver.pem"))
        leading(["127.0.0.1"])
        assert sent(f"https://{NAME}:{port}/hook", private=True) == 1
        with pytest.raises(NotTaken, match=r"(?i)certificate"):
            sent(f"https://other.example:{port}/hook", private=True)
    assert taken == [f"{NAME}:{port}"]


def test_a_proxy_of_the_environment_resolves_names_itself(
    inbox: Inbox, leading: Leading, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = leading(["127.0.0.1"])
    monkeypatch.setenv("http_proxy", inbox.server.url)
    monkeypatch.setenv("no_proxy", "near.example")
    assert sent(f"http://{NAME}/x", private=False) == 1
    assert NAME not in resolver.asked
    assert inbox.server.requests[0].headers["host"] == NAME
    with pytest.raises(NotTaken, match="private: true"):
        sent("http://near.example/x", private=False)


def test_what_could_not_be_told_waits_until_the_settings_say_that_the_address_is_meant(
    nights: Nights, leading: Leading
) -> None:
    leading(["127.0.0.1"])
    nights.watch()
    nights.prices(at(49.16))
    strict = nights.settings.with_name("strict.yaml")
    strict.write_text(f"channels: [{{name: ops, kind: webhook, url: 'https://{NAME}/hook', secret_from: OPS_SECRET}}]")
    gpuplan = open_services(Environment(database_url=nights.url, settings=strict))
    [failed] = replace(nights, gpuplan=gpuplan).check()["deliveries"]["failed"]
    gpuplan.store.close()
    assert "private: true" in failed["error"]
    assert failed["final"] is False
    assert nights.check()["deliveries"]["sent"] == 1


@contextmanager
def swallowing(address: str, port: int) -> Iterator[None]:
    """Who connects there hears nothing: those who wait before fill the queue, and nobody is let in."""
    with ExitStack() as open_:
        listener = open_.enter_context(socket.socket())
        listener.bind((address, port))
        listener.listen(0)
        for _ in range(4):
            waiting = open_.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex((address, port))
        yield


@contextmanager
def over_tls(folder: Path) -> Iterator[tuple[int, list[str]]]:
    """A receiver with a certificate of `NAME`; what hosts its requests named."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "receiver.pem").write_bytes(certificate.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "receiver.key").write_bytes(private)
    taken: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append(self.headers["Host"])
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Tests print what matters."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "receiver.pem", folder / "receiver.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
