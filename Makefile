# Two commands do everything on a machine that has Python 3.11 or newer, git and make: `make demo`, `make test`.
# Neither needs root, Docker, or a network beyond the package index.

SHELL := /bin/sh
.DELETE_ON_ERROR:
.PHONY: help setup demo test ground-truth kept-truth foreign-truth golden fuzz faults soak sbom audit bench docs lint format packages clean

UV_VERSION := 0.13.8
UV := .venv/bin/uv
# No Python is downloaded: the machine's own is used. The system's certificates are trusted where it has any
# (a company's network may need them); else those that uv brings.
export UV_PYTHON_DOWNLOADS := never
export UV_SYSTEM_CERTS := $(if $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem),true,false)
unexport VIRTUAL_ENV
# Without the modules' byte code each process compiles two thousand of them: three seconds at every start.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo "make demo      start a farm on this machine, load it, name its bottleneck (under 3 minutes)"
	@echo "make test      run the tests, quick ones side by side (as root also those that need system packages,"
	@echo "               which it installs) [TESTS='-m slow' | TESTS=tests/harness: those, one by one]"
	@echo "make ground-truth [CASES='log-* ...'] [SHARD=1/2] [REPEAT=3] [NOISE=cpu]"
	@echo "               judge the verdict on farms whose bottleneck is known (tests/ground_truth/README.md)"
	@echo "make kept-truth [SET=real]"
	@echo "make foreign-truth [FOLDER='/path/of/recordings ...'] [AS_IS=1]"
	@echo "               judge labelled recordings that others made (tests/foreign_truth/README.md)"
	@echo "make golden [GROUPS='synthetic ...']"
	@echo "               record the golden answers anew, after a change that is meant to change them"
	@echo "make fuzz [SECONDS=600] [INPUTS=10000] [SEED=1] [KINDS='import wire']"
	@echo "               damaged inputs of every kind: no traceback, no hang, at most 1 GB (tests/fuzz/README.md)"
	@echo "make faults [FAULTS='link'] [PHASES='measure report']"
	@echo "               kill, stop and starve each part of a run, in each phase (tests/faults/README.md)"
	@echo "make soak [MINUTES=60]"
	@echo "               constant load with every collector on: no growth, no drift, no lost second"
	@echo "make sbom      the wheels, and beside them a CycloneDX list of all dependencies, in dist/"
	@echo "make audit [DATABASE=DIR]"
	@echo "               look every version in uv.lock up in OSV's database of vulnerabilities (needs the network),"
	@echo "               or in a clone of https://github.com/pypa/advisory-database"
	@echo "make bench     what the load engine costs, beside pgbench on the same server (tests/bench/README.md)"
	@echo "               [SUITE=crawl|nosql|odbc|collectors|bridge|verdict: one part of it, beside its own peers]"
	@echo "make docs      build the documentation as build/site/index.html; a dead link is an error"
	@echo "make lint      formatting, types, import rules, documentation, glossary"
	@echo "make format    format the code"
	@echo "make setup     bring .venv up to date, nothing else"
	@echo "make clean     remove .venv and caches; runs/ stays"

# One whose Python is gone (the system has a newer one), or that was made in another folder, is made anew.
$(shell [ ! -e .venv ] || { .venv/bin/python -c '' && grep -qF '$(CURDIR)/.venv' .venv/bin/activate; } 2>/dev/null || \
  rm -rf .venv/.complete .venv/bin/uv)

# Compiled once: each program that is started compiles nothing, also where Python may not write (PYTHONDONTWRITEBYTECODE).
setup: .venv/.complete
	@.venv/bin/python -m compileall -q harness scenarios collectors infra

$(UV):
	@python=; for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	  if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then python=$$name; break; fi; \
	done; \
	if [ -z "$$python" ]; then echo "make: Python 3.11 or newer is needed and was not found as python3 or python3.11 to 3.14" >&2; exit 5; fi; \
	$$python -m venv --clear .venv || { \
	  echo "make: $$python cannot make a virtual environment; Debian and Ubuntu have it in the package python3-venv" >&2; exit 5; }
	.venv/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

.venv/.complete: $(UV) uv.lock pyproject.toml $(wildcard */pyproject.toml)
	$(UV) sync --quiet --locked --all-packages --all-extras --no-extra microsoft-odbc --no-extra kerberos --compile-bytecode
	@touch $@

demo: setup
	@.venv/bin/pinchpoint demo

# Without TESTS: side by side those that do not disturb each other, then those that must be alone; none is slow.
# What fails is run up to twice more, and listed as RERUN: a shared machine stands still for seconds.
AGAIN_WHERE_FAILED := -raR --reruns 2
test: setup packages
ifdef TESTS
	.venv/bin/pytest $(TESTS)
else
	.venv/bin/pytest -m "not slow and not alone" -n auto --dist loadfile $(AGAIN_WHERE_FAILED)
	.venv/bin/pytest -m "not slow and alone" $(AGAIN_WHERE_FAILED) $$(grep -rl --include='test_*.py' 'mark\.alone' tests)
endif

# As root on Debian and its kin, what the tests of real servers and browsers want is installed; elsewhere the
# tests that need it are skipped and say what is missing (with CI=true they fail).
packages: $(UV)
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then tests/install-packages; fi
# Kerberos is compiled against MIT's headers, so it is not part of make setup.
	@if command -v krb5-config >/dev/null && ! .venv/bin/python -c 'import gssapi, krb5' 2>/dev/null; then \
	  $(UV) sync --quiet --locked --inexact --all-packages --extra kerberos || \
	  echo "make: the extra kerberos cannot be built here; its tests say so"; fi

# From the folder of the tests, so that its modules are found by Python's own rule.
ground-truth: setup
	@cd tests && ../.venv/bin/python -m ground_truth.run --cases '$(CASES)' --shard '$(or $(SHARD),1/1)' --repeat '$(or $(REPEAT),1)' \
	  --noise '$(NOISE)' $(if $(KEEP),--keep) $(if $(AGAIN),--again)

# The runs kept in tests/golden_runs, in many variants: a minute, no farm (tests/ground_truth/README.md).
kept-truth: setup
	@cd tests && ../.venv/bin/python -m ground_truth.kept --set '$(SET)'

# Labelled recordings of others, or our own; FOLDER has a labels.csv (tests/foreign_truth/README.md).
foreign-truth: setup
	@cd tests && ../.venv/bin/python -m foreign_truth.run $(or $(FOLDER),foreign_truth/own) $(if $(AS_IS),--as-is)

# After a change that is meant to change answers; structural work keeps them byte for byte (tests/README.md).
golden: setup
	@cd tests && ../.venv/bin/python -m golden.record $(GROUPS)

# What it finds lies in build/fuzz/, an input each, with where it happened (tests/fuzz/README.md).
fuzz: setup
	@cd tests && ../.venv/bin/python -m fuzz.run --seed $(or $(SEED),1) --inputs $(or $(INPUTS),10000) \
	  $(if $(SECONDS),--seconds $(SECONDS)) --kinds '$(KINDS)'

# As root it mounts a small tmpfs for each run, so that a disk can be full (tests/faults/README.md).
faults: setup
	@cd tests && ../.venv/bin/python -m faults.run --faults '$(FAULTS)' --phases '$(PHASES)'

soak: setup
	@cd tests && ../.venv/bin/python -m soak --minutes $(or $(MINUTES),60)

sbom: setup
	$(UV) build --quiet --all-packages --wheel --out-dir dist
	$(UV) export --quiet --locked --format cyclonedx1.5 --all-packages --all-extras --no-extra microsoft-odbc --no-default-groups \
	  --output-file dist/pinchpoint.cdx.json
	@ls dist

# Without the network: DATABASE=DIR, a clone of https://github.com/pypa/advisory-database (kept outside this folder).
audit: setup
	@$(if $(DATABASE),.venv/bin/python tests/audit.py '$(DATABASE)',$(UV) audit --locked)

bench: setup
	@$(UV) sync --quiet --locked --inexact --all-packages --all-extras --no-extra microsoft-odbc --no-extra kerberos --group bench
	@cd tests && ../.venv/bin/python -m bench.run $(SUITE)

# The pages of docs/, with the references made from the code (docs/generated.py).
docs: setup
	.venv/bin/properdocs build --quiet --strict

lint: setup docs
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/python tests/glossary.py

format: setup
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist
