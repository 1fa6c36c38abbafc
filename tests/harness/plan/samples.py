"""Two small valid files, of which tests change one part."""

from __future__ import annotations

from pathlib import Path

FARM = """\
name: f
environment: test
embedded: {tiers: [web, sql, search, nosql, files]}
"""

REAL_FARM = """\
name: prod
environment: staging
endpoints:
  sharepoint: {url: "https://intranet.example", auth: basic, user: "${SP_USER}", password: "${SP_PASSWORD}"}
  sql: {url: "postgresql://loader:${PGPASSWORD}@sql1/loadtest"}
  nosql: {url: "valkey://:secret@c1:6379/0"}
  search: {url: "http://app3:8200"}
  files: {path: documents}
tiers:
  sql:
    hosts:
      sql1:
        machine: azure/ds12
        collect: [{kind: local, process: postgres}]
        disks:
          log: {device: nvme1n1, limits: {iops: 5000, bytes_per_s: 200MB/s, io_unit: 8KiB}}
          data: {path: /var/lib/postgresql, limits: unknown}
  search: {hosts: {app3: {disks: {index: {device: sdc, profile: azure/p30}}}}}
"""

PLAN = """\
name: p
scenarios:
  orders: {use: sql-mix, load: {model: closed, users: 1}}
phases: {measure: 1s}
"""

WHOLE_PLAN = """\
name: pre-production
seed: 7
scenarios:
  crawl: {use: full-crawl, load: {model: closed, users: 32, think: 250ms}}
  orders: {use: sql-mix, load: {model: open, rate: 200/s}, params: {preset: log-heavy}}
  burst: {use: nosql-burst, load: {model: burst, base: 50/s, peak: 2000/s, every: 60s, for: 10s}}
phases: {warm_up: 10s, measure: {until: done, at_least: 40s, at_most: 12h}, cool_down: 30s}
objectives: [{scenario: orders, p95: 50ms}, {scenario: crawl, errors: 1%}, {scenario: burst, p50: 1s}]
"""


def write(directory: Path, farm: str | bytes = FARM, plan: str | bytes = PLAN) -> tuple[Path, Path]:
    """Write both files, and return their paths."""
    paths = directory / "farm.yaml", directory / "plan.yaml"
    for path, content in zip(paths, (farm, plan), strict=True):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return paths
