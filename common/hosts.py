"""Hosts: the form of names and addresses, and proxies, which connections to this machine do without."""

import ipaddress
import os
import re
import socket
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from urllib.parse import urlsplit

VARIABLES = "grpc_proxy", "https_proxy", "http_proxy"
"""Environment variables of gRPC's proxy; the first one that is set counts."""

EXCEPTIONS = "no_grpc_proxy", "no_proxy"
"""Those with the hosts that are reached without one."""

HERE = "localhost", "127.0.0.1", "::1"
"""Usual names and addresses of this machine."""

_NAME = r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?"
NAME = re.compile(rf"(?=.{{1,253}}$){_NAME}(\.{_NAME})*\.?")
"""Form of a host name or an IPv4 address."""

ADDRESS = re.compile(r"(?P<host>[^\[\]]+|\[[0-9A-Fa-f:.]+(%[\w.-]+)?\]):(?P<port>[0-9]{1,5})")


def check_address(address: str) -> str:
    """Return an address that has the form HOST:PORT.

    Raises:
        ValueError: It has another form.
    """
    found = ADDRESS.fullmatch(address)
    is_host = found and (found["host"].startswith("[") or NAME.fullmatch(found["host"]))
    if found is None or not is_host or not 0 < int(found["port"]) < 65536:
        raise ValueError(
            "is not HOST:PORT; a host name, an IPv4 address or an IPv6 address in brackets, without a scheme"
        )
    return address


def is_here(host: str) -> bool:
    """Return True if a host name or address is one of this machine."""
    host = host.strip("[]").rstrip(".").lower()
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host.endswith("localhost") or host in (socket.gethostname().lower(), socket.getfqdn().lower())
    if address.is_loopback or address.is_unspecified:
        return True
    with suppress(OSError), socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return True
    return False


def spare_this_machine(environment: MutableMapping[str, str]) -> None:
    """Let programs of an environment reach this machine without a proxy; remove unusable proxies."""
    listed = environment.get("no_proxy") or environment.get("NO_PROXY", "")
    proxies = [name for name in environment if name.lower().endswith("_proxy") and name.lower() not in EXCEPTIONS]
    for name in [name for name in proxies if not _is_usable(environment[name])]:
        del environment[name]  # clients of HTTP would fail, also for this machine
    for name in (
        ("no_proxy", *(name for name in ("NO_PROXY", "no_grpc_proxy") if name in environment)) if proxies else ()
    ):
        before = [one for one in environment.get(name, listed).split(",") if one]
        environment[name] = ",".join(dict.fromkeys((*before, *HERE, socket.gethostname())))


@contextmanager
def without_proxies(host: str) -> Iterator[None]:
    """Let clients of HTTP that are made within use no proxies, if the host is this machine."""
    before = os.environ.get("no_proxy")
    if not is_here(host):
        yield
        return
    os.environ["no_proxy"] = "*"
    try:
        yield
    finally:
        os.environ.pop("no_proxy")
        os.environ.update({} if before is None else {"no_proxy": before})


def _is_usable(proxy: str) -> bool:
    try:
        url = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        return bool(url.hostname) and url.port != 0 and (url.scheme in ("http", "https") or bool(find_spec("socksio")))
    except ValueError:
        return not proxy


def find_proxy(host: str) -> str:
    """Return variable and address of the proxy through which gRPC reaches a host; empty without one."""
    name = next((one for one in VARIABLES if os.environ.get(one)), "")
    excepted = next((os.environ[one] for one in EXCEPTIONS if os.environ.get(one)), "")
    if not name or is_here(host) or any(_covers(one.strip(), host) for one in excepted.split(",")):
        return ""
    scheme, slashes, rest = os.environ[name].rpartition("://")
    return f"{name}={scheme}{slashes}{rest.rpartition('@')[2]}"  # without a password


def _covers(entry: str, host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    return bool(entry) and host.lower().endswith(entry.lower())
