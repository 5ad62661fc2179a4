"""A small OpenID provider that speaks real HTTP: discovery, keys, codes with PKCE, signed tokens.

It agrees at once for whoever is its ``person``; ``spoil`` makes it misbehave in one way.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

# Made once: primes take their time.
FIRST, SECOND, FOREIGN = (
    RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})
    for kid in ("first", "second", "first")
)
CLIENT_ID, CLIENT_SECRET = "croc-tests", "a secret of the tests"


class Provider:
    """The provider's state, and the server that answers for it."""

    def __init__(self) -> None:
        self.key = FIRST
        self.person: dict[str, Any] = {"sub": "a7c1", "name": "Ada Lovelace"}
        self.userinfo: dict[str, Any] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.access: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.spoil = ""
        self.auth_methods = ["client_secret_basic"]
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self) -> Provider:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def rotate_key(self) -> None:
        """Sign with a new key from now on; the old one is no longer published."""
        self.key = SECOND

    # --- the four endpoints --------------------------------------------------------------

    def discovery(self) -> dict[str, Any]:
        issuer = "https://another.example" if self.spoil == "issuer of discovery" else self.issuer
        return {
            "issuer": issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "end_session_endpoint": f"{self.issuer}/logout",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            "token_endpoint_auth_methods_supported": self.auth_methods,
        }

    def authorize(self, query: dict[str, str]) -> str:
        """Where the browser is sent back to, with a code that is bound to what was asked."""
        back = query["redirect_uri"]
        if self.spoil == "denied":
            return f"{back}?{urlencode({'error': 'access_denied', 'state': query['state']})}"
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        return f"{back}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], basic: str) -> tuple[int, dict[str, Any]]:
        query = self.codes.pop(form.get("code", ""), None)
        if not self._is_client(form, basic):
            return 401, {"error": "invalid_client"}
        if query is None or query["redirect_uri"] != form.get("redirect_uri"):
            return 400, {"error": "invalid_grant"}
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if query.get("code_challenge_method") != "S256" or query["code_challenge"] != challenge:
            return 400, {"error": "invalid_grant"}
        access = secrets.token_urlsafe(16)
        self.access[access] = self.person
        reply = {"access_token": access, "token_type": "Bearer", "expires_in": 300}
        return 200, {**reply, "id_token": self.id_token(query["nonce"])}

    def _is_client(self, form: dict[str, str], basic: str) -> bool:
        if "client_secret_basic" in self.auth_methods:
            wanted = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
            return basic == f"Basic {wanted}"
        return (form.get("client_id"), form.get("client_secret")) == (CLIENT_ID, CLIENT_SECRET)

    def id_token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
            **self.person,
        }
        claims |= {
            "wrong nonce": {"nonce": "another"},
            "expired": {"iat": now - 7200, "exp": now - 3600},
            "other audience": {"aud": "another-client"},
            "other issuer": {"iss": "https://another.example"},
        }.get(self.spoil, {})
        if self.spoil == "no nonce":
            del claims["nonce"]
        header, key = {"alg": "RS256", "kid": self.key.kid}, self.key
        if self.spoil == "bad signature":
            key = FOREIGN
        if self.spoil == "shared secret":
            header, key = {"alg": "HS256"}, OctKey.import_key(CLIENT_SECRET)
        if self.spoil == "unsigned":
            parts = [json.dumps({"alg": "none"}), json.dumps(claims)]
            coded = [base64.urlsafe_b64encode(x.encode()).rstrip(b"=").decode() for x in parts]
            return ".".join([*coded, ""])
        return jwt.encode(header, claims, key)

    # --- HTTP ----------------------------------------------------------------------------

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                provider.asked.append((url.path, query))
                if provider.spoil == "down":
                    self.send_error(503)
                elif url.path == "/.well-known/openid-configuration":
                    self.reply(200, provider.discovery())
                elif url.path == "/authorize":
                    self.send_response(302)
                    self.send_header("Location", provider.authorize(query))
                    self.end_headers()
                elif url.path == "/keys":
                    self.reply(200, {"keys": [provider.key.as_dict(private=False)]})
                elif url.path == "/userinfo":
                    token = self.headers.get("Authorization", "").removeprefix("Bearer ")
                    person = provider.access.get(token)
                    body = {**(person or {}), **provider.userinfo}
                    self.reply(200 if person else 401, body)
                else:
                    self.reply(200, {"page": url.path})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                provider.asked.append((self.path, form))
                self.reply(*provider.token(form, self.headers.get("Authorization", "")))

            def reply(self, status: int, data: dict[str, Any]) -> None:
                body = json.dumps(data).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing: the test's own output matters."""

        return Handler
