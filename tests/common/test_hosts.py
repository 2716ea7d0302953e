"""Forms of hosts, and proxies of the environment: never for this machine, named for others."""

import socket
from pathlib import Path
from urllib.request import getproxies_environment, proxy_bypass_environment

import httpx
import pytest

from client.node.failures import Server, diagnose
from common.errors import ConfigError
from common.hosts import check_address, find_proxy, is_here, spare_this_machine, without_proxies
from deploy.keys.certificates import ensure_certificates

PROXY = "http://user:secret@192.0.2.1:3128"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpc_proxy", "http_proxy", "https_proxy", "no_proxy", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "LOCALHOST.", "a.localhost", socket.gethostname()]
)
def test_this_machine_is_reached_without_a_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", PROXY)
    assert is_here(host)
    assert find_proxy(host) == ""


@pytest.mark.parametrize("host", ["192.0.2.7", "example.org", "2001:db8::1"])
def test_another_host_names_its_proxy_without_the_password(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_here(host)
    assert find_proxy(host) == ""
    monkeypatch.setenv("http_proxy", PROXY)
    assert find_proxy(host) == "http_proxy=http://192.0.2.1:3128"
    monkeypatch.setenv("grpc_proxy", "192.0.2.3:80")
    assert find_proxy(host) == "grpc_proxy=192.0.2.3:80"
    address = f"[{host}]:9092" if ":" in host else f"{host}:9092"
    assert f"no connection to {address} through the proxy of grpc_proxy=192.0.2.3:80" in str(diagnose(Server(address)))
    monkeypatch.setenv("no_proxy", "example.org, 192.0.2.0/24,2001:db8::/32")
    assert find_proxy(host) == ""


@pytest.mark.parametrize("name", ["no_proxy", "NO_PROXY", "no_grpc_proxy"])
def test_programs_of_an_environment_bypass_its_proxies_for_this_machine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"http_proxy": PROXY, name: "example.org"}
    spare_this_machine(environment)
    assert environment[name].split(",")[:2] == ["example.org", "localhost"]
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    for host in ("localhost", "127.0.0.1", "example.org"):
        if name != "no_grpc_proxy" or host != "example.org":
            assert proxy_bypass_environment(host, getproxies_environment())
    before = dict(environment)
    spare_this_machine(environment)
    assert environment == before
    spare_this_machine(plain := {"HOME": "/"})
    assert plain == {"HOME": "/"}


@pytest.mark.parametrize(
    "proxy", ["socks5://nonsense:1", "http://[", "a b", "://", "http://:80", "nonsense:port", "ftp://a"]
)
def test_clients_of_http_reach_this_machine_whatever_the_proxies_are(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Httpx refuses to make a client under some of them."""
    environment = {"https_proxy": proxy, "ALL_PROXY": proxy, "http_proxy": proxy}
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    with without_proxies("127.0.0.1"), httpx.Client() as client:
        assert not client._mounts
    spare_this_machine(environment)
    for key in ("https_proxy", "ALL_PROXY", "http_proxy"):
        monkeypatch.delenv(key)
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    with httpx.Client() as client:
        assert client._transport_for_url(httpx.URL("http://127.0.0.1:8000")) is client._transport


@pytest.mark.parametrize(
    "address",
    [
        *("localhost:9092", "train.example.org:443", "192.0.2.7:1"),
        *("[2001:db8::7]:9092", "[fe80::1%eth0]:9", "server_1:9092"),
    ],
)
def test_addresses_of_servers_are_taken(address: str) -> None:
    assert check_address(address) == address
    assert Server(address).address == address


@pytest.mark.parametrize(
    "address",
    ["", "x", "http://x:9092", "bad name:9092", "x:0", "x:70000", ":9092", "2001:db8::7:9092", "x:9092/", "-x:1"],
)
def test_what_is_no_address_is_refused_where_it_is_typed(address: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not HOST:PORT; a host name, an IPv4 address .*without a scheme"):
        Server(address)
    with pytest.raises(ConfigError, match="is not a host name; use its ASCII form"):
        ensure_certificates(tmp_path, [address.partition(":9092")[0] + " "])
    assert not (tmp_path / "server.pem").exists()
