"""The SKU list with credentials: the SDK's own bearer policy over TLS, and what credentials that fail are told as."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.azure import arm_client
from gpuplan.providers.azure.arm_client import read_skus
from gpuplan.providers.cloud_endpoints import Sources
from tests.clouds.azure import SUBSCRIPTION, azure_cloud, sku
from tests.clouds.server import CloudServer


class FakeCredential:
    """What DefaultAzureCredential would be where somebody has logged in; fails with `error` if it is set."""

    error: Exception | None = None

    def __init__(self, **_: Any) -> None:
        self.scopes: list[str] = []

    def __enter__(self) -> "FakeCredential":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        if self.error is not None:
            raise self.error
        return AccessToken("a-token-for-" + "".join(scopes), 2**40)


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key, valid for an hour."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = folder / "certificate.pem", folder / "key.pem"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate_file, key_file


@contextmanager
def over_tls(server: CloudServer, folder: Path) -> Iterator[Path]:
    """The server behind TLS; gives the file that clients are to trust."""
    certificate, key = self_signed(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server._http.socket = context.wrap_socket(server._http.socket, server_side=True)
    with server.running():
        yield certificate


def test_the_bearer_policy_of_the_sdk_sends_the_token_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arm_client, "DefaultAzureCredential", FakeCredential)
    server = azure_cloud(offers=(), more_skus=[sku("Standard_NC4as_T4_v3", "EastUS")])
    with over_tls(server, tmp_path) as certificate:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        endpoint = server.url.replace("http://", "https://") + "/"
        result = read_skus(Sources(azure_arm_endpoint=endpoint, azure_subscription_id=SUBSCRIPTION))
    assert result.at("eastus", "Standard_NC4as_T4_v3") is not None
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer a-token-for-https://management.azure.com/.default"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "DefaultAzureCredential failed.\nAttempted credentials:\n\tEnvironmentCredential: none",
            "no credentials: give",
        ),
        (
            "DefaultAzureCredential failed.\nEnvironmentCredential: AADSTS7000215: Invalid client secret provided.\nVisit",
            "credentials refused: AADSTS7000215: Invalid client secret provided.",
        ),
    ],
)
def test_credentials_that_are_missing_or_wrong_are_told_in_one_line(
    message: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(FakeCredential):
        error = ClientAuthenticationError(message=message)

    monkeypatch.setattr(arm_client, "DefaultAzureCredential", Failing)
    with pytest.raises(ProviderFailure) as failure:
        read_skus(Sources(azure_arm_endpoint="https://127.0.0.1:1", azure_subscription_id=SUBSCRIPTION))
    assert expected in str(failure.value)
    assert "\n" not in str(failure.value)


def test_a_token_is_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    class Leaking(FakeCredential):
        error = ClientAuthenticationError(message="AADSTS1: sent Bearer abcdefghijkl.mnop and code=never-shown")

    monkeypatch.setattr(arm_client, "DefaultAzureCredential", Leaking)
    with pytest.raises(ProviderFailure) as failure:
        read_skus(Sources(azure_arm_endpoint="https://127.0.0.1:1", azure_subscription_id=SUBSCRIPTION))
    assert "abcdefghijkl" not in str(failure.value)
    assert "never-shown" not in str(failure.value)


def test_a_setting_that_the_sdk_does_not_accept_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "http://login.local")
    with pytest.raises(ProviderFailure, match="a setting is not accepted"):
        read_skus(Sources(azure_subscription_id=SUBSCRIPTION))
