"""A test server for the part of OpenSearch's REST API that a crawl uses; it checks each request's form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from scenarios.support import Reply, Server

from pinchpoint_scenarios.contract import Endpoint


class BulkPeer(Server):
    """One index. ``refusing``: address -> statuses of its next entries; ``largest``: bytes of a request."""

    def __init__(self) -> None:
        super().__init__()
        self.documents: dict[str, dict[str, Any]] = {}
        self.mappings: dict[str, Any] | None = None
        self.batches: list[int] = []
        self.refusing: dict[str, list[int]] = {}
        self.largest = 2**20
        self.pipelines: set[str] = set()
        self.logins: set[str] = set()

    @property
    def endpoint(self) -> Endpoint:
        """The index as in farm.yaml."""
        return Endpoint("search", f"{self.url}/crawl", {"kind": "opensearch"})

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer a REST request."""
        path, query = urlsplit(target).path, urlsplit(target).query
        headers = {name.lower(): value for name, value in headers.items()}
        self.logins.add(headers.get("authorization", ""))
        with self._lock:
            match method, path:
                case "GET", "/":
                    return _json({"version": {"distribution": "opensearch", "number": "2.0.0"}})
                case "GET", "/crawl/_mapping":
                    if self.mappings is None:
                        return _json({"error": "index_not_found_exception"}, 404)
                    return _json({"crawl": {"mappings": self.mappings}})
                case "PUT", "/crawl":
                    assert self.mappings is None, "created twice"
                    self.mappings, self.documents = json.loads(body)["mappings"], {}
                case "DELETE", "/crawl":
                    self.mappings = None
                case "POST", "/crawl/_bulk" if len(body) > self.largest:
                    return 413, {}, b"<html>413 Request Entity Too Large</html>"
                case "POST", "/crawl/_bulk":
                    assert headers["content-type"].startswith(("application/json", "application/x-ndjson"))
                    self.pipelines.add(query)
                    return self._bulk(body)
                case "POST", "/crawl/_refresh":
                    pass
                case _:
                    return _json({"error": f"{method} {target}"}, 405)
        return _json({})

    def _bulk(self, body: bytes) -> Reply:
        """Process lines of JSON: an action, followed by a document if the action is ``index``."""
        assert body.endswith(b"\n"), "the last line is not ended"
        lines = [json.loads(line) for line in body[:-1].split(b"\n")]
        items = []
        while lines:
            ((action, meta),) = lines.pop(0).items()
            assert set(meta) == {"_id"}
            assert action in ("index", "delete")
            document = lines.pop(0) if action == "index" else {}
            status = 200 if action == "delete" else 201
            refusals = self.refusing.get(document.get("url", "").rpartition("/")[2])
            if refusals:
                status = refusals.pop(0)
            elif action == "index":
                self.documents[meta["_id"]] = document
            elif self.documents.pop(meta["_id"], None) is None:
                status = 404
            error = {"error": {"type": "made_up", "reason": "asked for"}} if status >= 400 else {}
            items.append({action: {"_id": meta["_id"], "status": status, **error}})
        self.batches.append(len(items))
        return _json(
            {"errors": any(each["status"] >= 300 for item in items for each in item.values()), "items": items}
        )


def _json(content: Any, status: int = 200) -> Reply:
    return status, {"Content-Type": "application/json"}, json.dumps(content).encode()
