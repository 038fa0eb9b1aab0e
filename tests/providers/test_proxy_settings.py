"""A proxy that cannot be used is refused by the variable that names it, before anything is sent through it."""

import pytest

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.providers.proxy_settings import check_proxies

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("url", ["http://proxy:3128", "https://user:word@proxy", "proxy:3128", "http://[::1]:3128"])
def test_a_proxy_that_httpx_takes_is_named(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    assert check_proxies() == ()
    monkeypatch.setenv("HTTPS_PROXY", url)
    assert check_proxies() == ("HTTPS_PROXY",)


@pytest.mark.parametrize(
    "url", ["nonsense://u:hunter2@proxy", "http://", "http://proxy:hunter2", "socks5://proxy:1080"]
)
def test_one_that_cannot_be_used_is_refused_without_its_password(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("https_proxy", url)
    monkeypatch.setenv("HTTP_PROXY", url)
    with pytest.raises(UnusableInput) as refused:
        check_proxies()
    assert {fault.field for fault in refused.value.faults} == {"https_proxy", "HTTP_PROXY"}
    assert "hunter2" not in str(refused.value)
