"""An OpenID Connect issuer on a real socket: it shows its configuration and its keys, and signs what tests want signed."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

AUDIENCE = "gpuplan-of-the-team"
#: Made once: an RSA key takes a tenth of a second.
KEYS = {name: rsa.generate_private_key(public_exponent=65537, key_size=2048) for name in ("first", "second")}


class Issuer:
    """Shows the keys in `shown`; what it was asked is counted in `asked`; while `down` it answers 500."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.shown = ["first"]
        self.asked: list[str] = []
        self.down = False
        self.named = self.url

    def token(
        self, *, kid: str | None = "first", signed_by: str = "first", algorithm: str = "RS256", **claims: Any
    ) -> str:
        """A token as the issuer would give it, with these claims instead; None leaves one out."""
        now = int(time.time())
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 300, "scope": "gpuplan:plan"}
        token_claims = {name: value for name, value in (usual | claims).items() if value is not None}
        headers = {"kid": kid} if kid is not None else {}
        return jwt.encode(token_claims, KEYS[signed_by], algorithm=algorithm, headers=headers)

    def document(self, path: str) -> dict[str, Any] | None:
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.named, "jwks_uri": f"{self.url}/keys"}
        if path == "/keys":
            return {"keys": [self._shown(name) for name in self.shown]}
        return None

    def _shown(self, name: str) -> dict[str, Any]:
        public: dict[str, Any] = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEYS[name].public_key()))
        return public | {"kid": name, "use": "sig", "alg": "RS256"}


def public_pem(name: str) -> bytes:
    """The public key as text, which is no secret: nobody may sign with it."""
    return (
        KEYS[name]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


@contextmanager
def issuing() -> Iterator[Issuer]:
    """The issuer while it is there."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked.append(self.path)
            answer = None if issuer.down else issuer.document(self.path)
            body = json.dumps(answer or {}).encode()
            self.send_response(500 if issuer.down else 200 if answer else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Tests print what matters."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = Issuer(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
