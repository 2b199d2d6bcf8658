"""One PostgreSQL server for the tests of a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.postgres import Server, running


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server. Tests that use it belong to the xdist group `postgres`, so there is one."""
    folder = tmp_path_factory.mktemp("postgres")
    for each in (folder, *folder.parents[:2]):  # its own user must get there
        each.chmod(0o755)
    with running(folder) as server:
        yield server
