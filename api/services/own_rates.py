"""Reads the lists of the user's own rates: files beside the settings, or addresses, without redirects and private hosts."""

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.schemas.own_rates import RatesDocument
from gpuplan.api.schemas.settings_file import Environment, settings_file
from gpuplan.api.security.public_connection import PRIVATE, NotPublic, Reaching
from gpuplan.api.security.secret_files import secret
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.error_redaction import redacted_text, shown_url
from gpuplan.providers.feed_client import TRY_AGAIN, Again, patiently
from gpuplan.providers.own_rates import RatesSource, provider

if TYPE_CHECKING:
    from gpuplan.providers.cloud_registry import MakeCloud

#: Ten times the prices of all providers of the catalogue.
MOST_BYTES = 4 * 1024 * 1024
#: Of one attempt, the answer included.
MOST_SECONDS = 30.0


def own_rates(environment: Environment) -> "dict[str, MakeCloud]":
    """A provider for every list of the settings file, by name. Raises `UnusableInput` for a file that cannot be read."""
    lists = settings_file(environment.settings).rates
    return {rates.name: partial(provider, rates_source(rates, environment)) for rates in lists}


def rates_source(rates: RatesDocument, environment: Environment) -> RatesSource:
    """Where a list is, and how it is read; files are relative to the folder of the settings file."""
    if rates.file is not None:
        folder = environment.settings.parent if environment.settings else Path()
        read = partial(_file_text, folder / rates.file, rates.file.name)
        return RatesSource(name=rates.name, where=rates.file.name, read=read)
    return RatesSource(name=rates.name, where=shown_url(rates.url or ""), read=partial(_web_text, rates))


def _file_text(path: Path, name: str) -> str:
    """The text of a file, which plans and reports call by its `name`, without the folders of this machine."""
    try:
        with path.open("rb") as file:
            return _decoded(file.read(MOST_BYTES + 1), name)
    except OSError as error:
        raise ProviderFailure(f"{name}: cannot be read: {error.strerror or type(error).__name__}") from error


def _web_text(rates: RatesDocument) -> str:
    url, where = rates.url or "", shown_url(rates.url or "")
    token = secret(rates.token_from) if rates.token_from else None
    if rates.token_from and not token:
        raise ProviderFailure(f"{where}: its token is missing; set {rates.token_from}")
    headers = {"User-Agent": f"gpuplan/{gpuplan_version()}"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        return _decoded(patiently(lambda: asyncio.run(_bytes(url, headers, private=rates.private)), url), where)
    except NotPublic as error:
        raise ProviderFailure(f"{where}: {error}") from None


async def _bytes(url: str, headers: dict[str, str], *, private: bool) -> bytes:
    """The answer, at most one byte more than allowed. Raises `Again` for what may pass, `ProviderFailure` for the rest."""
    where, content = shown_url(url), bytearray()
    try:
        async with (
            asyncio.timeout(MOST_SECONDS),
            httpx.AsyncClient(transport=Reaching(), follow_redirects=False) as client,
            client.stream("GET", url, headers=headers, extensions={PRIVATE: private}) as response,
        ):
            _check(response, where)
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > MOST_BYTES:
                    break
    except TimeoutError:
        raise ProviderFailure(f"{where}: did not answer completely within {MOST_SECONDS:g} s") from None
    return bytes(content)


def _check(response: httpx.Response, where: str) -> None:
    status = response.status_code
    if response.is_redirect or 300 <= status < 400:
        raise ProviderFailure(
            f"{where}: HTTP {status}: a redirect, which is not followed; write the address of its target"
        )
    if status in TRY_AGAIN:
        raise Again(f"HTTP {status}")
    if not response.is_success:
        hint = "; check token_from" if status in {401, 403} else ""
        raise ProviderFailure(f"{where}: HTTP {status} {redacted_text(response.reason_phrase)}{hint}")


def _decoded(content: bytes, where: str) -> str:
    if len(content) > MOST_BYTES:
        raise ProviderFailure(
            f"{where}: is larger than {MOST_BYTES // 1024 // 1024} MiB; list only machines with accelerators"
        )
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ProviderFailure(f"{where}: is not UTF-8 text; save the list as CSV in UTF-8, or as JSON") from None
