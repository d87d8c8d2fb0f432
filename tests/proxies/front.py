"""Real proxies in front of a real server, with the very files of ops/: only ports, certificates and folders are others."""

import os
import socket
import ssl
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import which
from time import monotonic, sleep
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.harness.processes import ROOT

NAMES = ("esim.example", "api.esim.example", "www.example", "localhost")
NGINX, CADDY, CURL = which("nginx") or which("nginx", path="/usr/sbin"), which("caddy"), which("curl")
MISSING = "nginx, Caddy or curl (Debian packages of these names) is not installed"


class Front(NamedTuple):
    """A proxy that listens at a port of loopback, under all names."""

    name: str
    port: int
    authority: Path

    def context(self, *protocols: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority))
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for all names that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "esim.example")]), datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in NAMES]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "proxy.pem", folder / "proxy.key"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    private.chmod(0o600)
    return public, private


def replaced(text: str, others: Mapping[str, str]) -> str:
    """A file with some words replaced, each of which is there."""
    for word, other in others.items():
        assert word in text, word
        text = text.replace(word, other)
    return text


def nginx_file(folder: Path, port: int, servers: Sequence[int], public: Path, private: Path) -> Path:
    """All that nginx wants to know, with ours inside."""
    one = "server 127.0.0.1:8000 max_fails"
    each = ";\n    ".join(f"server 127.0.0.1:{server} max_fails=1 fail_timeout=2s" for server in servers)
    ours = {"listen 443 ssl": f"listen 127.0.0.1:{port} ssl", f"{one}=1 fail_timeout=2s": each}
    for name in ("esim.example", "www.example"):
        ours |= {f"/etc/ssl/{name}.pem": str(public), f"/etc/ssl/{name}.key": str(private)}
    (folder / "reseller.conf").write_text(replaced((ROOT / "ops" / "nginx.conf").read_text(), ours))
    return whole_nginx_file(folder, f"include {folder}/reseller.conf;")


def whole_nginx_file(folder: Path, sites: str) -> Path:
    """What stands around sites, with all that is written in a folder of ours."""
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.geteuid() == 0 else ""  # the folders are ours alone
    inside = f"access_log off; {temporary} {sites}"
    whole = f"{user} pid {folder}/pid; daemon off; error_log stderr; events {{ worker_connections 8192; }} http {{ {inside} }}"
    (folder / "nginx.conf").write_text(whole)
    return folder / "nginx.conf"


def caddy_file(folder: Path, port: int, server: int, public: Path, private: Path) -> Path:
    tls = f"{{\n\ttls {public} {private}\n"
    ours = {
        "127.0.0.1:8000": f"127.0.0.1:{server}",
        "esim.example, api.esim.example {\n": f"esim.example:{port}, api.esim.example:{port} {tls}",
        "\nwww.example {\n": f"\nwww.example:{port} {tls}",
    }
    options = f"{{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n\tstorage file_system {folder}\n}}\n"
    (folder / "Caddyfile").write_text(options + replaced((ROOT / "ops" / "Caddyfile").read_text(), ours))
    return folder / "Caddyfile"


@contextmanager
def front(name: str, folder: Path, port: int, server: int, *others: int) -> Generator[Front]:
    """A proxy for the length of a block; before `others` as well stands nginx alone."""
    public, private = certificate(folder)
    if name == "nginx":
        command = [str(NGINX), "-p", str(folder), "-c", str(nginx_file(folder, port, (server, *others), public, private))]
    else:
        command = [str(CADDY), "run", "--adapter", "caddyfile", "--config", str(caddy_file(folder, port, server, public, private))]
    with proxying(command, folder, port):
        yield Front(name, port, public)


@contextmanager
def proxying(command: Sequence[str], folder: Path, port: int) -> "Generator[subprocess.Popen[bytes]]":
    """A proxy that listens, for the length of a block."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env={"HOME": str(folder), "PATH": "/usr/bin:/bin"}, stdout=log, stderr=log)
    with ExitStack() as after:
        after.callback(process.wait, 20)
        after.callback(process.terminate)
        ends = monotonic() + 20
        while not listens(port):
            assert process.poll() is None and monotonic() < ends, (folder / "log").read_text()
            sleep(0.02)
        yield process


def listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
