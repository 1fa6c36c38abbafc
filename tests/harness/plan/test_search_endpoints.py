"""``endpoints.search``: the target of crawled documents, and the requirements of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.plan.samples import write

from pinchpoint.base.errors import InputError
from pinchpoint.plan import expand, load

SQL = 'sql: {url: "postgresql://loader@sql1/loadtest"}, files: {path: /srv/share}'
PLAN = """\
name: crawl
scenarios: {crawl: {use: full-crawl, load: {model: closed, users: 4}}}
phases: {warm_up: 0s, measure: 10s, cool_down: 0s}
"""


def farm(search: str) -> str:
    return f"name: prod\nenvironment: test\nendpoints: {{{SQL}, search: {search}}}\n"


@pytest.mark.parametrize(
    ("search", "given"),
    [
        ("{kind: none}", {"kind": "none"}),
        ('{url: "http://app3:8200"}', {"url": "http://app3:8200", "kind": "pinchpoint"}),
        (
            '{url: "http://app3:8200,app4:8200"}',
            {"url": "http://app3:8200,app4:8200", "kind": "pinchpoint"},
        ),
        (
            '{url: "https://os1:9200/crawl", kind: opensearch, user: u, password: "${PW}", pipeline: text}',
            {
                "url": "https://os1:9200/crawl",
                "kind": "opensearch",
                "user": "u",
                "password": "${PW}",
                "pipeline": "text",
            },
        ),
    ],
)
def test_each_kind_with_what_it_needs(search: str, given: dict[str, str], tmp_path: Path) -> None:
    """Each kind satisfies a crawl, and no missing part is invented."""
    read, _ = load(*write(tmp_path, farm(search), PLAN))
    assert read.endpoints.named()["search"].given == given
    found = expand("search", given, {"PW": "secret"})
    assert found.options["kind"] == given["kind"]
    assert found.url == given.get("url", "")


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ("{}", "kind pinchpoint without a url; add url, or say kind: none"),
        ("{kind: opensearch}", "kind opensearch without a url"),
        ('{kind: none, url: "http://x"}', "kind none with a url; documents go nowhere then: remove url"),
        ('{url: "http://x", pipeline: p}', "kind pinchpoint with pipeline; these are for kind opensearch"),
        ('{url: "http://x", kind: opensearch, user: u}', "a login of user; allowed: user with password"),
        (
            '{url: "http://os1:9200,os2:9200/crawl", kind: opensearch}',
            "kind opensearch with several hosts; needed: one; every node of a cluster takes documents",
        ),
        ('{url: "http://app3:8200,app4:0"}', "has no host, or a wrong port (host 2 of 2)"),
        ('{url: "http://x", kind: solr}', "allowed: pinchpoint, opensearch, none"),
    ],
)
def test_what_does_not_fit_together_is_said(search: str, said: str, tmp_path: Path) -> None:
    """A contradiction is reported with the value and what is allowed."""
    with pytest.raises(InputError) as caught:
        load(*write(tmp_path, farm(search), PLAN))
    assert said in " ".join(str(caught.value).split())
