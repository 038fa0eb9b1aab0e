"""A service that lets in who has a key, on a store of its own, with a key for each need."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from gpuplan.api.http.authentication import access_by
from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.security.access_settings import AccessSettings, Variables
from gpuplan.api.services.composition import Services, open_services
from tests.api.conftest import serving

ADMIN_KEY = "an-admin-key-of-the-environment-0123456789"
YEARS_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """The service, a client that shows nothing unless told, and keys by name."""

    app: FastAPI
    gpuplan: Services
    client: httpx.Client
    keys: dict[str, str]

    def ask(self, method: str, path: str, key: str | None = None, **options: Any) -> httpx.Response:
        """A request with the key of this name, with `key` itself where there is none of the name, or with nothing."""
        headers = dict(options.pop("headers", {}))
        if key is not None:
            headers["Authorization"] = f"Bearer {self.keys.get(key, key)}"
        self.client.cookies.clear()
        return self.client.request(method, path, headers=headers, **options)


@contextmanager
def guarded(store: Path, folder: Path, **variables: Any) -> Iterator[Guarded]:
    """The service with these variables on a copy of the store, in the folder; logins may fail as often as tests make them, unless told otherwise."""
    gpuplan = open_services(Environment(database_url=f"sqlite:///{shutil.copy(store, folder / 'guarded.sqlite3')}"))
    limits = Variables(**{"failed_logins_per_minute": 100_000, "requests_per_minute": 1_000_000} | variables)
    settings = AccessSettings(variables=limits, oidc=None, admin_key=ADMIN_KEY)
    app = create_service(gpuplan, access=access_by(gpuplan.store.access, settings))
    with serving(app) as client:
        yield Guarded(app=app, gpuplan=gpuplan, client=client, keys=_keys(gpuplan))


@contextmanager
def limited(service: Guarded, **variables: Any) -> Iterator[Guarded]:
    """The same service with other limits, and nothing counted or known yet: far cheaper than one of its own."""
    usual = service.app.state.access
    limits = usual.settings.variables.model_copy(update=variables)
    settings = AccessSettings(variables=limits, oidc=None, admin_key=ADMIN_KEY)
    service.app.state.access = access_by(service.gpuplan.store.access, settings)
    try:
        yield service
    finally:
        service.app.state.access = usual


def _keys(gpuplan: Services) -> dict[str, str]:
    keys = {
        scope: gpuplan.api_keys.make({"name": scope, "scope": scope}).key
        for scope in ("read", "plan", "refresh", "admin")
    }
    long_ago = YEARS_AGO - timedelta(days=1)
    keys["expired"] = gpuplan.api_keys.make({"name": "expired", "scope": "admin", "expires": "1h"}, now=long_ago).key
    revoked = gpuplan.api_keys.make({"name": "revoked", "scope": "admin"})
    gpuplan.api_keys.revoke(revoked.id)
    keys["revoked"] = revoked.key
    another = "A" if not keys["admin"].endswith("A") else "B"
    keys["of another secret"] = keys["admin"][:-1] + another
    keys["unknown"] = f"gpk_0123456789ab_{'x' * 43}"
    keys["malformed"] = "gpk_no-key"
    keys["environment"] = ADMIN_KEY
    return keys
