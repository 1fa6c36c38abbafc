"""Tests of the SharePoint client's logins with real servers: NTLM, Kerberos, and a simulated Entra ID."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from infra.services.serving import Service, serving
from scenarios.full_crawl_sources.logins import (
    CLIENT,
    REALM,
    TENANT,
    Directory,
    Domain,
    application_certificate,
    entra,
    front,
)
from scenarios.full_crawl_sources.sites import walk
from servers import postgres
from support import require, run_cli
from winrmserver import certificate

from pinchpoint_infra.content.filling import ingest
from pinchpoint_infra.ports import free_port
from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.full_crawl.failures import LoginFailed
from pinchpoint_scenarios.full_crawl.params import FullCrawlParams, SourceParams
from pinchpoint_scenarios.full_crawl.sources import Source, repository

MODULE = "pinchpoint_infra.services.web"
TOKEN = "a-token"
FILES = {f"a/{number:03}.txt": f"a {number}" for number in range(30)}
SECRET = "a client secret"


@dataclass
class Site:
    """A SharePoint-style site of 30 documents without a login."""

    service: Service
    database_url: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    for path, content in FILES.items():
        (folder / "corpus" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "corpus" / path).write_text(content)
    with postgres() as url:
        ingest(folder / "corpus", None, url, None, lambda _: None)
        with serving(MODULE, folder, token=TOKEN, database_url=url, people=3) as service:
            yield Site(service, url)


@pytest.fixture
def domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Domain:
    """Yield a Kerberos realm whose controller does not run yet."""
    made = Domain(tmp_path, free_port())
    made.make()
    for name, value in made.environ.items():
        if name.startswith("KRB5"):
            monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Define the NTLM user for the server side of spnego."""
    (tmp_path / "users").write_text("CORP:crawler:secret word\n")
    monkeypatch.setenv("NTLM_USER_FILE", str(tmp_path / "users"))


def opened(url: str, options: dict[str, str]) -> Source:
    """Return a session's source."""
    source = SourceParams.model_validate({"kind": "sharepoint"})
    endpoint = Endpoint("sharepoint", url, options)
    return repository(source, endpoint, FullCrawlParams(page_size=10, timeout_s=20)).connect()


def refusal(url: str, options: dict[str, str]) -> str:
    """Return the error of a failed login."""
    source = opened(url, options)
    try:
        with pytest.raises(LoginFailed) as caught:
            source.check()
    finally:
        source.close()
    assert caught.value.kind == "authentication"
    assert not any(options[name] in str(caught.value) for name in ("password", "secret") if name in options)
    return f"{caught.value.cause}; {caught.value.remedy}"


def crawled(source: Source) -> set[str]:
    """Return the texts of all documents."""
    _, fetched = walk(source)
    source.close()
    return {each.content.decode() for each in fetched.values()}


NTLM = {"auth": "ntlm", "user": "CORP\\crawler", "password": "secret word"}


@pytest.mark.usefixtures("users")
def test_ntlm_logs_a_connection_in_once(site: Site) -> None:
    """NTLM authenticates a connection once, and later requests on it need no login."""
    with front(site.service.url, TOKEN, "NTLM") as peer:
        assert crawled(opened(f"http://127.0.0.1:{peer.port}", NTLM)) == set(FILES.values())
    assert peer.statuses.count(401) == 1  # the challenge
    assert len(peer.statuses) > len(FILES)


@pytest.mark.usefixtures("users")
def test_a_wrong_password_of_ntlm_is_a_failure_of_that_name(site: Site) -> None:
    """A wrong NTLM password is an authentication failure, also if the server offers another login."""
    with front(site.service.url, TOKEN, "NTLM") as peer:
        said = refusal(f"http://127.0.0.1:{peer.port}", {**NTLM, "password": "guessed"})
    assert said == "the server refused the credentials; correct auth, user or password in farm.yaml"
    with front(site.service.url, TOKEN, "Bearer") as peer:
        said = refusal(f"http://127.0.0.1:{peer.port}", NTLM)
    assert said == "the server does not offer NTLM, but Bearer; correct auth in farm.yaml"


@pytest.mark.parametrize("each_request", [False, True])
@pytest.mark.parametrize("way", ["password", "ticket"])
def test_kerberos_logs_in(site: Site, domain: Domain, way: str, each_request: bool) -> None:
    """Kerberos logs in with a password or kinit's ticket, per connection or, as in IIS, per request."""
    options = {"auth": "kerberos"}
    with domain.controller(), front(site.service.url, TOKEN, "Negotiate", each_request=each_request) as peer:
        if way == "password":
            options |= {"user": f"crawler@{REALM}", "password": domain.password}
        else:
            domain.kinit()
        assert crawled(opened(f"http://localhost:{peer.port}", options)) == set(FILES.values())
    # The server requests the login once more, and then each request carries it without a further round trip.
    assert peer.statuses.count(401) == (1 if each_request else 0)


def test_what_kerberos_refuses_is_said_in_a_sentence(site: Site, domain: Domain) -> None:
    """No ticket, a wrong password, user, service or realm, or no controller gives one sentence."""
    password = {"auth": "kerberos", "user": f"crawler@{REALM}", "password": domain.password}
    cases = {
        "there is no Kerberos ticket": ({"auth": "kerberos"}, "localhost"),
        "there is no Kerberos ticket of this user": (
            {"auth": "kerberos", "user": f"crawler@{REALM}"},
            "localhost",
        ),
        "the domain refused the password": ({**password, "password": "guessed"}, "localhost"),
        "the domain has no such user": ({**password, "user": f"stranger@{REALM}"}, "localhost"),
        "no domain controller is known": ({**password, "user": "crawler@OTHER.EXAMPLE"}, "localhost"),
        "the domain has no service HTTP of this host": (password, "127.0.0.1"),
    }
    with domain.controller(), front(site.service.url, TOKEN, "Negotiate") as peer:
        for cause, (options, host) in cases.items():
            assert refusal(f"http://{host}:{peer.port}", options).startswith(f"{cause};"), cause
    with front(site.service.url, TOKEN, "Negotiate") as peer:
        said = refusal(f"http://localhost:{peer.port}", password)
    assert said == "no domain controller answers; check krb5.conf and the network"


def test_kerberos_without_its_libraries_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its libraries Kerberos is refused before any request, with the extra as remedy."""
    monkeypatch.setattr("spnego._gss.HAS_GSSAPI", False)
    said = refusal("http://127.0.0.1:9", {"auth": "kerberos"})
    assert said == (
        "auth kerberos needs the libraries gssapi and krb5; install them: pip install 'pinchpoint[kerberos]'"
    )


def test_a_clock_that_is_off_is_named(site: Site, domain: Domain) -> None:
    """With the controller's clock half an hour ahead, the refusal names the clock difference."""
    options = {"auth": "kerberos", "user": f"crawler@{REALM}", "password": domain.password}
    ahead = domain.controller(require("faketime", "faketime"), "-f", "+30m")
    with ahead, front(site.service.url, TOKEN, "Negotiate") as peer:
        said = refusal(f"http://localhost:{peer.port}", options)
    assert said == "the clocks differ by more than Kerberos allows; set the clocks (5 minutes at most)"


def test_a_ticket_that_ends_in_mid_crawl(site: Site, domain: Domain) -> None:
    """A ticket that expires in mid-crawl is renewed with a password; without one the remedy is given."""
    password = {"auth": "kerberos", "user": f"crawler@{REALM}", "password": domain.password}
    with (
        domain.controller(),
        front(site.service.url, TOKEN, "Negotiate", each_request=True) as peer,
    ):
        config = domain.folder / "krb5.conf"
        config.write_text(
            config.read_text().replace("[libdefaults]\n", "[libdefaults]\n ticket_lifetime = 3s\n")
        )
        domain.kinit("-l", "3s")
        with_password = opened(f"http://localhost:{peer.port}", password)
        with_ticket = opened(f"http://localhost:{peer.port}", {"auth": "kerberos"})
        with_password.check()
        with_ticket.check()
        deadline = time.monotonic() + 60
        with pytest.raises(LoginFailed) as caught:  # noqa: PT012 - it fails once the tickets have ended
            while time.monotonic() < deadline:
                with_password.check()
                with_ticket.check()
        assert caught.value.cause == "the Kerberos ticket has expired"
        assert caught.value.remedy == "run kinit, or give user and password"
        with_password.check()
        with_password.close()
        with_ticket.close()


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Directory]:
    """Yield a simulated Entra ID with one application, over HTTPS."""
    made = Directory(application_certificate(tmp_path, "file word"), SECRET, "")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = certificate(tmp_path / "tls.pem", tmp_path / "tls.key")
    context.load_cert_chain(authority, tmp_path / "tls.key")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority))
    with entra(made, context):
        yield made


@pytest.mark.parametrize(
    "credential",
    [
        {"secret": SECRET},
        {"certificate": "app.pem"},
        {"certificate": "locked.pem", "password": "file word"},
        {"certificate": "app.pfx", "password": "file word"},
    ],
    ids=lambda credential: credential.get("certificate", "secret"),
)
def test_entra_gives_an_application_a_token(
    site: Site, directory: Directory, tmp_path: Path, credential: dict[str, str]
) -> None:
    """A secret or a certificate-signed assertion, whose signature is checked, obtains a token.

    Tokens that are revoked in mid-crawl are replaced without a lost document.
    """
    if "certificate" in credential:
        credential = {**credential, "certificate": str(tmp_path / credential["certificate"])}
    with front(site.service.url, TOKEN, "Bearer", valid_tokens=directory.valid) as peer:
        directory.site = f"http://127.0.0.1:{peer.port}"
        source = opened(
            directory.site, {"auth": "entra", "tenant": directory.url, "client": CLIENT, **credential}
        )
        source.check()
        assert directory.given == 1
        directory.valid.clear()
        assert crawled(source) == set(FILES.values())
        assert directory.given == 2


def test_what_entra_refuses_is_said_in_a_sentence(site: Site, directory: Directory, tmp_path: Path) -> None:
    """A refusal quotes the directory without a trace id; unreadable files and a refusing site are named."""
    own = {"auth": "entra", "tenant": directory.url, "client": CLIENT}
    application_certificate(tmp_path / "other", "x")
    (tmp_path / "empty.pem").write_text("nothing")
    with front(site.service.url, TOKEN, "Bearer") as peer:
        directory.site = f"http://127.0.0.1:{peer.port}"
        cases: dict[str, dict[str, str]] = {
            "Entra ID refused the application: AADSTS7000215: Invalid client secret provided; ": {
                "secret": "guessed"
            },
            "Entra ID refused the application: AADSTS700027: The certificate used to sign the client "
            "assertion is not registered; ": {"certificate": str(tmp_path / "other" / "app.pem")},
            f"the certificate {tmp_path}/none.pem cannot be read: No such file or directory; ": {
                "certificate": f"{tmp_path}/none.pem"
            },
            f"the certificate {tmp_path}/empty.pem cannot be read: ": {
                "certificate": f"{tmp_path}/empty.pem"
            },
            f"the certificate {tmp_path}/locked.pem cannot be read: ": {
                "certificate": f"{tmp_path}/locked.pem"
            },
            f"the certificate {tmp_path}/app.pfx cannot be read: ": {
                "certificate": f"{tmp_path}/app.pfx",
                "password": "guessed",
            },
            "the site refused the token of Entra ID; ": {"secret": SECRET},
        }
        said = {expected: refusal(directory.site, own | credential) for expected, credential in cases.items()}
        assert {expected: text for expected, text in said.items() if not text.startswith(expected)} == {}
        assert not any("Trace" in text for text in said.values())
        directory.clock_s = 7200
        certified = {"certificate": str(tmp_path / "app.pem")}
        assert refusal(directory.site, own | certified).endswith("; set the clock of this machine")
        elsewhere = {**own, "tenant": f"https://127.0.0.1:{free_port()}/{TENANT}", "secret": SECRET}
        assert refusal(directory.site, elsewhere).startswith("no answer of 127.0.0.1:")
        other = {**own, "tenant": directory.url.replace(TENANT, "nobody.example"), "secret": SECRET}
        assert "correct tenant" in refusal(directory.site, other)


def test_check_tests_the_login(site: Site, directory: Directory, tmp_path: Path) -> None:
    """``check`` exits with 0, or with 5 and one sentence, and never shows the secret."""
    plan = {
        "name": "p",
        "scenarios": {"crawl": {"use": "full-crawl", "load": {"model": "closed", "users": 1}}},
    }
    plan["phases"] = {"measure": {"until": "done", "at_most": "60s"}}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    with front(site.service.url, TOKEN, "Bearer", valid_tokens=directory.valid) as peer:
        directory.site = f"http://127.0.0.1:{peer.port}"
        login = {"auth": "entra", "tenant": directory.url, "client": CLIENT}
        endpoints = {"sql": {"url": site.database_url}, "search": {"kind": "none"}}
        for given, status in ({"certificate": "app.pem"}, 0), ({"secret": "${APP_SECRET}"}, 5):
            farm = {"name": "f", "environment": "test", "tiers": {}}
            farm["endpoints"] = {**endpoints, "sharepoint": {"url": directory.site, **login, **given}}
            (tmp_path / "farm.yaml").write_text(json.dumps(farm))
            done = run_cli(
                *("check", tmp_path / "plan.yaml", "--farm", tmp_path / "farm.yaml", "--out", tmp_path),
                env={"APP_SECRET": "guessed by a canary"},
            )
            assert done.returncode == status, done.stderr
            assert "guessed by a canary" not in done.stdout + done.stderr
        assert (
            "Entra ID refused the application: AADSTS7000215: Invalid client secret provided" in done.stdout
        )


@pytest.mark.slow  # two whole runs; the logins themselves are tested above
@pytest.mark.parametrize("auth", ["kerberos", "entra"])
def test_a_run_logs_in_with_all_its_sessions(
    auth: str, site: Site, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """All sessions of a run log in under gevent, and no file of the run has a secret."""
    crawl = {"use": "full-crawl", "load": {"model": "closed", "users": 4}}
    phases = {"warm_up": "0s", "measure": {"until": "done", "at_most": "60s"}}
    (tmp_path / "plan.yaml").write_text(
        json.dumps({"name": "p", "scenarios": {"crawl": crawl}, "phases": phases})
    )
    directory: Directory = request.getfixturevalue("directory")
    domain: Domain = request.getfixturevalue("domain")
    scheme = "Negotiate" if auth == "kerberos" else "Bearer"
    with (
        domain.controller(),
        front(site.service.url, TOKEN, scheme, each_request=True, valid_tokens=directory.valid) as peer,
    ):
        host = "localhost" if auth == "kerberos" else "127.0.0.1"
        directory.site = f"http://{host}:{peer.port}"
        login = {
            "kerberos": {"user": f"crawler@{REALM}", "password": "${SP_PASSWORD}"},
            "entra": {"tenant": directory.url, "client": CLIENT, "secret": "${SP_SECRET}"},
        }[auth]
        endpoints = {
            "sql": {"url": site.database_url},
            "search": {"kind": "none"},
            "sharepoint": {"url": directory.site, "auth": auth, **login},
        }
        farm = {"name": "f", "environment": "test", "tiers": {}, "endpoints": endpoints}
        (tmp_path / "farm.yaml").write_text(json.dumps(farm))
        done = run_cli(
            *("run", tmp_path / "plan.yaml", "--farm", tmp_path / "farm.yaml", "--out", tmp_path / "runs"),
            env={"SP_PASSWORD": domain.password, "SP_SECRET": SECRET},
        )
    written = Path(done.stdout.strip().splitlines()[-1])
    verdict = json.loads((written / "verdict.json").read_text())
    assert [(one["count"], one["failures"]) for one in verdict["crawl"]] == [(len(FILES), 0)], done.stderr
    for path in written.rglob("*"):
        for secret in (domain.password, SECRET):
            assert path.is_dir() or secret.encode() not in path.read_bytes(), path
