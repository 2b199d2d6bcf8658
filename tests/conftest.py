"""A closed world for every test: loopback only, no keys, an empty home."""

from __future__ import annotations

import gc
import ipaddress
import os
import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from support.examples import CASES, EXAMPLES
from support.selection import few_cases, has_tests, short

if TYPE_CHECKING:
    from support.postgres import Server
    from support.ray_cluster import RayCluster

pytest.register_assert_rewrite(
    *(f"grv.testing.contracts{which}" for which in ("", "_backends", "_ledger"))
)

settings.register_profile("here", deadline=None, max_examples=EXAMPLES)
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, max_examples=EXAMPLES
)
settings.load_profile("ci" if os.environ.get("CI") else "here")

_SECRET = re.compile(r"API_?KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)


class NetworkForbiddenError(Exception):
    """A test wanted to leave this machine. Not an OSError, so that nobody handles it."""


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _stay_here(event: str, args: tuple[object, ...]) -> None:
    """Refuse connections and look-ups that leave the machine."""
    match event, args:
        case ("socket.connect" | "socket.sendto", (_, (str(host), *_))):
            address = _address(host)
            allowed = host == "localhost" if address is None else address.is_loopback
        case "socket.getaddrinfo", (str(host), *_):
            # Addresses need no look-up, and names under .invalid never resolve.
            known = host in ("", "localhost") or host.endswith(".invalid")
            allowed = known or _address(host) is not None
        case _:
            return
    if not allowed:
        raise NetworkForbiddenError(f"{event}: {host}")


sys.addaudithook(_stay_here)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Give long texts a short name."""
    return short(val) if isinstance(val, str | bytes) and len(val) > 100 else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None]:
    """Leave out what takes many minutes, unless it is asked for, and cases beyond `GRV_CASES`."""
    if long := [item.nodeid[:200] for item in items if len(item.nodeid) > 500]:
        raise pytest.UsageError(f"give these cases short ids: {long}")
    in_files = list(items)
    yield
    if "soak" not in config.getoption("markexpr"):
        items[:] = [item for item in items if item.get_closest_marker("soak") is None]
    left = set(items)
    kept = few_cases((item.nodeid for item in in_files if item in left), CASES)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]
    if hasattr(config, "workerinput"):  # so that no worker is left with a long test at the end
        items.sort(key=lambda item: not _is_of_a_slow_file(item))


def _is_of_a_slow_file(item: pytest.Item) -> bool:
    module = item.getparent(pytest.Module)
    return module is not None and any(mark.name == "slow" for mark in module.own_markers)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files without a test that is asked for."""
    marks = config.getoption("markexpr")
    if not marks or collection_path.suffix != ".py":
        return None
    return None if has_tests(collection_path.read_text(encoding="utf-8"), marks) else True


def pytest_collection_finish() -> None:
    """Leave what is there before the first test out of every collection of garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that nobody lives in."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def closed_world(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """No keys in the environment, and another home."""
    for name in os.environ:
        if _SECRET.search(name) or name.startswith("XDG_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture
def anyio_backend() -> str:
    """One kind of event loop."""
    return "asyncio"


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """SmolLM2 behind the OpenAI-compatible server of llama.cpp, four choices at once."""
    from support.servers import embedded_server

    with embedded_server(parallel=4) as url:
        yield url


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A real PostgreSQL. Tests that use it are in the xdist group `postgres`, so there is one."""
    from support.postgres import running

    with running() as server:
        yield server


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[RayCluster]:
    """A real Ray cluster. Tests that use it are in the xdist group `ray`, so there is one."""
    from support.ray_cluster import running

    with running() as cluster:
        yield cluster
