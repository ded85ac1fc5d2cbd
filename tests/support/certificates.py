"""Certificates for tests of TLS, made by openssl."""

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]


@dataclass(frozen=True, slots=True)
class Certificate:
    cert: str
    key: str


class Authority:
    """A certificate authority of its own; `ca` is the file that says whom to trust."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._own = Certificate(str(folder / f"{name}.pem"), str(folder / f"{name}.key"))
        _openssl("-x509", *_files(self._own), "-subj", f"/CN={name}")

    @property
    def ca(self) -> str:
        return self._own.cert

    def issue(self, name: str, alternatives: str = "IP:127.0.0.1,DNS:localhost") -> Certificate:
        issued = Certificate(str(self._folder / f"{name}.pem"), str(self._folder / f"{name}.key"))
        signed = ["-x509", "-CA", self._own.cert, "-CAkey", self._own.key]
        plain = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", f"subjectAltName={alternatives}"]
        _openssl(*signed, *_files(issued), "-subj", f"/CN={name}", *plain)
        return issued

    def server(self, certificate: Certificate) -> ssl.SSLContext:
        """Of a server that shows this certificate and wants one of ours from its clients."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.ca)
        context.load_cert_chain(certificate.cert, certificate.key)
        context.verify_mode = ssl.CERT_REQUIRED
        return context


def _files(certificate: Certificate) -> list[str]:
    return ["-keyout", certificate.key, "-out", certificate.cert]


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", "req", *KEY, *arguments], check=True, capture_output=True)
