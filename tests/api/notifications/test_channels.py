"""Channels: refused by name when they cannot work or would give a secret away, whose value is never repeated."""

import base64
from pathlib import Path

import pytest

from gpuplan.api.notifications.channels import named, receiver
from gpuplan.api.schemas.channel import ChannelDocument, checked_url
from gpuplan.api.schemas.settings_file import settings_file
from gpuplan.catalog.runtime.errors import UnusableInput

GOOD = "whsec_" + base64.b64encode(b"k" * 32).decode()


def channel(**given: object) -> ChannelDocument:
    return ChannelDocument(**{"name": "ops", "kind": "webhook"} | given)  # type: ignore[arg-type]


def refused(tmp_path: Path, text: str) -> str:
    path = tmp_path / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnusableInput) as error:
        settings_file(path)
    return str(error.value)


@pytest.mark.parametrize(
    ("channel", "message"),
    [
        ("{name: a, kind: slack}", "settings.channels[0]: Slack's address is a secret"),
        ("{name: a, kind: slack, url: https://hooks.slack.com/services/TOKEN}", "Slack's address is a secret"),
        ("{name: a, kind: slack, url_from: A, secret_from: B}", "Slack does not check signatures"),
        ("{name: a, kind: mail, url: https://h/x, secret_from: B}", "slack"),
        ("{name: a, kind: webhook, url: https://h/x}", "secret_from is missing"),
        ("{name: a, kind: webhook, secret_from: B}", "either url, or url_from"),
        ("{name: a, kind: webhook, url: https://h/x, url_from: A, secret_from: B}", "either url, or url_from"),
        ("{name: a, kind: webhook, url: http://h/x, secret_from: B}", "channels[0].url: is plain http"),
        ("{name: a, kind: webhook, url: http://127.0.0.1.evil.example/x, secret_from: B}", "is plain http"),
        ("{name: a, kind: webhook, url: ftp://h/x, secret_from: B}", "is not a web address"),
        ("{name: a, kind: webhook, url: nonsense, secret_from: B}", "is not a web address"),
        ("{name: a, kind: webhook, url: 'https://h:99999/x', secret_from: B}", "is not an address"),
        ("{name: a, kind: webhook, url: 'https://me:TOKEN@h/x', secret_from: B}", "contains a user or password"),
        ("{name: a, kind: webhook, url: 'https://h/x?key=TOKEN', secret_from: B}", "has a query"),
        ("{name: a, kind: webhook, url: https://h/x, secret_from: whsec_TOKEN}", "is a secret; put it into"),
        (
            "{name: a, kind: webhook, url: https://h/x, secret_from: 'a b'}",
            "is not the name of an environment variable",
        ),
        ("{name: a, kind: webhook, url: https://h/x, secret: TOKEN}", "did you mean secret_from"),
        ("{name: a, kind: webhook, url: https://h/x, secret_from: B, private: 1}", "channels[0].private"),
        (
            "{name: a, kind: webhook, url: 'https://10.0.0.1/x', secret_from: B}",
            "channels[0].url: points to this machine",
        ),
        ("{name: 'a b', kind: slack, url_from: A}", "channels[0].name: is not a channel name"),
        ("{name: a, kind: slack, url_from: A}, {name: a, kind: slack, url_from: B}", "a: used more than once"),
    ],
)
def test_a_channel_that_cannot_work_is_refused_by_field_and_shows_no_secret(
    tmp_path: Path, channel: str, message: str
) -> None:
    line = refused(tmp_path, f"channels: [{channel}]")
    assert message in line
    assert "TOKEN" not in line


@pytest.mark.parametrize("url", ["https://h/x", "http://127.0.0.1:8000/x", "http://[::1]/x", "http://localhost/x"])
def test_https_is_taken_anywhere_and_plain_http_on_this_machine_alone(url: str) -> None:
    assert checked_url(url, query=False, private=True) == url


THIS_NETWORK = (
    "http://127.0.0.1/x",
    "http://localhost/x",
    "http://[::1]/x",
    "https://10.1.2.3/x",
    "https://169.254.169.254/x",
    "https://100.100.100.200/x",
    "https://168.63.129.16/x",
    "https://0/x",
    "https://2130706433/x",
    "https://0x7f000001/x",
    "https://0177.0.0.1/x",
    "https://127.1/x",
    "https://[::]/x",
    "https://[::ffff:10.0.0.1]/x",
    "https://[64:ff9b::a9fe:a9fe]/x",
    "https://[2002:7f00:1::]/x",
    "https://[fd00:ec2::254]/x",
    "https://[fe80::1]/x",
    "https://[ff02::1]/x",
)


@pytest.mark.parametrize("url", THIS_NETWORK)
def test_an_address_of_this_network_is_refused_in_any_notation_unless_it_is_meant(url: str) -> None:
    with pytest.raises(ValueError, match="add private: true"):
        checked_url(url, query=False, private=False)
    assert checked_url(url, query=False, private=True) == url


@pytest.mark.parametrize("url", ["https://192.0.0.9/x", "https://8.8.8.8/x", "https://[64:ff9b::808:808]/x"])
def test_an_address_of_the_internet_needs_no_word_more(url: str) -> None:
    assert checked_url(url, query=False, private=False) == url


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "environment variable OPS_KEY: it is not set"),
        ("", "environment variable OPS_KEY: it is not set"),
        ("TOKENTOKEN", "OPS_KEY: its value does not begin with whsec_"),
        ("whsec_TOKEN!", "OPS_KEY: its value is not base64"),
        ("whsec_" + base64.b64encode(b"TOKEN").decode(), "OPS_KEY: the secret in it has 5 bytes"),
        ("whsec_" + base64.b64encode(b"k" * 65).decode(), "OPS_KEY: the secret in it has 65 bytes"),
    ],
)
def test_a_malformed_secret_is_refused_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, value: str | None, message: str
) -> None:
    monkeypatch.delenv("OPS_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("OPS_KEY", value)
    with pytest.raises(UnusableInput) as error:
        receiver(channel(url="https://h/x", secret_from="OPS_KEY"))
    assert message in str(error.value)
    assert error.value.faults[0].field == "channels.ops.secret_from"
    assert "TOKEN" not in str(error.value)
    assert "VE9LRU4" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://h/TOKEN", "plain http"),
        ("https://u:TOKEN@h/", "user or password"),
        ("TOKEN", "is not a web address"),
        ("https://127.0.0.1/TOKEN", "private: true"),
    ],
)
def test_an_address_from_the_environment_is_held_to_the_same(
    monkeypatch: pytest.MonkeyPatch, url: str, message: str
) -> None:
    monkeypatch.setenv("OPS_URL", url)
    monkeypatch.setenv("OPS_KEY", GOOD)
    with pytest.raises(UnusableInput, match=message) as error:
        receiver(channel(url_from="OPS_URL", secret_from="OPS_KEY"))
    assert "OPS_URL" in str(error.value)
    assert "TOKEN" not in str(error.value)


def test_an_address_from_the_environment_may_have_a_query_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS_URL", "https://h/x?key=TOKEN")
    monkeypatch.setenv("OPS_KEY", GOOD.rstrip("="))
    address = receiver(channel(url_from="OPS_URL", secret_from="OPS_KEY"))
    assert address.url == "https://h/x?key=TOKEN"
    assert "TOKEN" not in repr(address)
    assert GOOD.rstrip("=") not in repr(address)


def test_a_channel_is_looked_up_among_those_there_are() -> None:
    channels = (channel(url="https://h/x", secret_from="K"),)
    assert named(channels, "ops") is channels[0]
    with pytest.raises(UnusableInput, match="no channel 'team' is in the settings file; accepted: ops"):
        named(channels, "team")
    with pytest.raises(UnusableInput, match="has no channels yet"):
        named((), "team")
