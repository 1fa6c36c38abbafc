"""``pinchpoint init --discover``: with a real sshd, and with recorded answers of cloud machines."""

from __future__ import annotations

from pathlib import Path

import pytest
from collectors.windows.standin import ADAPTER, CLOUD, FACTS, Machine
from collectors.windows.winrmhost import winrm_host
from servers import postgres
from sshd_hosts import sshd_host
from support import run_cli
from winrmserver import PASSWORD, USER

from pinchpoint.cli.discover import LOGIN_BY, _farm, parse
from pinchpoint.plan import load, load_farm

AZURE = """\
sys_vendor\tMicrosoft Corporation
product_name\tVirtual Machine
block\tKNAME="sda1" SIZE="32212254720" MODEL="" TYPE="part" MOUNTPOINT="/" PKNAME="sda"
block\tKNAME="sdc" SIZE="1099511627776" MODEL="Virtual Disk" TYPE="disk" MOUNTPOINT="/data dir" PKNAME=""
azure\t{"location": "westeurope", "vmSize": "Standard_E8ds_v5", "storageProfile": {"dataDisks": [\
{"lun": "0", "diskSizeGB": "1024", "managedDisk": {"storageAccountType": "Premium_LRS"}}, \
{"lun": "1", "diskSizeGB": "64", "managedDisk": {"storageAccountType": "UltraSSD_LRS"}}]}}
lun\t0 sdc
lun\t1 sdd
server\tpostgres
postgres.data\t/data/14/main
postgres.log\t/wal
"""
AWS = """\
sys_vendor\tAmazon EC2
product_name\tm6i.xlarge
aws_type\t
aws_region\teu-central-1
server\tvalkey-server
"""


def test_what_azure_says_of_a_machine() -> None:
    """Azure gives type, region and disk types by size; PostgreSQL gives its directories."""
    found = parse(AZURE)
    assert found.machine == ("azure/e8ds_v5", "Azure's metadata service says Standard_E8ds_v5")
    assert found.region == "westeurope"
    assert found.profiles == {"sdc": ("azure/p30", "Azure: Premium_LRS, 1024 GiB")}
    assert found.mounts == {"sda1": "/", "sdc": "/data dir"}
    assert {role: place for role, (place, _) in found.places.items()} == {
        "sql.log": "/wal",
        "sql.data": "/data/14/main",
    }


def test_what_the_firmware_says_where_the_service_does_not() -> None:
    """AWS firmware names the machine type where the metadata service does not."""
    found = parse(AWS)
    assert found.machine == ("aws/m6i.xlarge", "the firmware says so")
    assert (found.region, found.programs, found.places) == ("eu-central-1", ["valkey-server"], {})


@pytest.mark.parametrize("text", ["", "azure\t\n", "azure\tnot JSON\n", "hello\n", "sys_vendor\tQEMU\n"])
def test_a_machine_of_no_known_cloud(text: str) -> None:
    """On a machine of no known cloud every value is None, and nothing is raised."""
    assert parse(text).machine is None


def test_a_host_that_serves_several_tiers(tmp_path: Path) -> None:
    """A host that serves several tiers is listed in each, with that tier's processes and disks."""
    found = parse(AZURE + "server\tvalkey-server\nvalkey-server.data\t/var/lib/valkey\nserver\tnginx\n")
    found.options = {"address": "db1.example"}
    found.inventory = {"os": "Linux", "cores": 4, "memory_bytes": 2**33, "roles": {}, "disks": {}}
    (tmp_path / "farm.yaml").write_text("".join(_farm([found])))
    tiers = load_farm(tmp_path / "farm.yaml").tiers
    assert {tier: list(each.hosts) for tier, each in tiers.items()} == {
        "sql": ["db1"],
        "nosql": ["db1-nosql"],
        "web": ["db1-web"],
    }
    hosts = {tier: next(iter(each.hosts.values())) for tier, each in tiers.items()}
    assert {tier: set(host.disks) for tier, host in hosts.items()} == {
        "sql": {"log", "data"},
        "nosql": {"data"},
        "web": set(),
    }
    assert [host.collect[0].options["process"] for host in hosts.values()] == [
        "postgres",
        "valkey-server",
        "nginx",
    ]
    assert hosts["nosql"].disks["data"].path == "/var/lib/valkey"


def test_a_host_over_ssh(tmp_path: Path) -> None:
    """The written farm.yaml loads unchanged, with PostgreSQL's log and data on their devices."""
    with sshd_host() as host, postgres():
        named = f"{host.user}@{host.address}:{host.port}"
        options = ("--discover", named, "--ssh-config", str(host.client_config))
        done = run_cli("init", tmp_path / "new", *options)
        assert done.returncode == 0, done.stderr
        farm, plan = load(tmp_path / "new" / "farm.yaml", tmp_path / "new" / "plan.yaml")
    (found,) = farm.tiers["sql"].hosts.values()
    assert [one.kind for one in found.collect] == ["ssh", "postgres"]
    assert set(found.disks) == {"log", "data"}
    text = (tmp_path / "new" / "farm.yaml").read_text()
    assert "guess: PostgreSQL keeps its write-ahead log there" in text
    assert "GiB" in text
    assert "${SQL_PASSWORD}" in text
    assert "orders" in plan.scenarios


def test_a_windows_host_over_winrm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQL Server's log and data are found by drive in the registry; the password stays a variable."""
    (tmp_path / "users").write_text(f"{USER.replace(chr(92), ':')}:{PASSWORD}\n")
    monkeypatch.setenv("NTLM_USER_FILE", str(tmp_path / "users"))
    bought = {
        "number": 1,
        "model": "INTEL SSDPE2KX010T8",
        "size_bytes": 1024 * 2**30,
        "location": ADAPTER % (1, 0),
    }
    facts = tuple(("disk", bought) if said.get("number") == 1 else (kind, said) for kind, said in FACTS)
    with winrm_host(Machine(facts=facts + CLOUD), tmp_path, tls=False, login="ntlm") as server:
        named = f"winrm+http://{USER}@127.0.0.1:{server.port}?auth=ntlm"
        without = run_cli("init", tmp_path / "new", "--discover", named)
        assert (without.returncode, "WINDOWS_PASSWORD is not set" in without.stderr) == (5, True), (
            without.stderr
        )
        done = run_cli("init", tmp_path / "new", "--discover", named, env={LOGIN_BY: PASSWORD})
    assert done.returncode == 0, done.stderr
    farm, _ = load(tmp_path / "new" / "farm.yaml", tmp_path / "new" / "plan.yaml")
    (found,) = farm.tiers["sql"].hosts.values()
    assert [one.kind for one in found.collect] == ["windows", "sqlserver"]
    assert (found.machine, found.disks["log"].profile) == ("azure/e8ds_v5", "azure/p30")
    assert found.disks["log"].device == "L:"
    assert found.disks["tempdb"].device == "C:\\mnt\\tempdb"
    assert farm.endpoints.named()["sql"].url.startswith("mssql+odbc://")
    text = (tmp_path / "new" / "farm.yaml").read_text()
    assert "INTEL SSDPE2KX010T8" in text
    assert "region westeurope" in text
    assert "has tempdb there" in text
    assert PASSWORD not in text


def test_a_host_that_does_not_answer(tmp_path: Path) -> None:
    """A host that does not answer ends with exit status 5 and the remedy, and nothing is written."""
    done = run_cli("init", tmp_path / "new", "--discover", "nobody@127.0.0.1:1")
    assert done.returncode == 5
    assert "nothing listens there" in done.stderr
    assert not (tmp_path / "new" / "farm.yaml").exists()
