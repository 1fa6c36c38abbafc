"""One site for all tests that only read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from infra.content.corpora import put
from infra.services.serving import Service, serving
from infra.services.site import FILES, MODULE, TOKEN
from servers import postgres

from pinchpoint_infra.content.filling import ingest


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield the web tier as a process on a database with ``FILES``."""
    folder = tmp_path_factory.mktemp("web")
    for path, content in FILES.items():
        put(folder / "corpus", path, content)
    with postgres() as url:
        ingest(folder / "corpus", None, url, None, lambda _: None)
        with serving(MODULE, folder, token=TOKEN, database_url=url) as service:
            yield service
