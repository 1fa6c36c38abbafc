"""Reads region, zone and machine type of a cloud machine from its firmware and its metadata service.

The service is only queried if the firmware names Amazon, Microsoft Azure or Google, and with a short timeout:
https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service,
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html,
https://cloud.google.com/compute/docs/metadata/querying-metadata.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from pinchpoint_collectors.linux.files import HERE, HostFiles

ORIGIN = "http://169.254.169.254"
_DMI = "/sys/class/dmi/id"
_AZURE = "7783-7084-3265-9085-8269-3286-77"
"""Asset tag of every virtual machine in Azure. Other machines on Microsoft's hypervisor have another."""
_ANSWER_S = 1.0
_LONGEST = 1 << 20

Ask = Callable[[str, Mapping[str, str], str], str]


def from_firmware(files: HostFiles = HERE) -> dict[str, str]:
    """Return ``machine_type`` if the firmware has it (Amazon's does); otherwise nothing."""
    product = files.fact(f"{_DMI}/product_name")
    return {"machine_type": product} if product and _provider(files) == "aws" else {}


def from_service(files: HostFiles = HERE, origin: str = ORIGIN) -> dict[str, str]:
    """Return ``region``, ``zone`` and ``machine_type`` if known; nothing outside of these clouds."""
    read = _PROVIDERS.get(_provider(files) or "")
    if read is None:
        return {}
    opener = build_opener(ProxyHandler({}))  # the service is on the local link, so no proxy is used

    def ask(path: str, headers: Mapping[str, str], method: str = "GET") -> str:
        request = Request(f"{origin}{path}", headers=dict(headers), method=method)  # noqa: S310 - http, ours
        with opener.open(request, timeout=_ANSWER_S) as answer:
            text: str = answer.read(_LONGEST).decode()
            return text

    return {**from_firmware(files), **_known(read, ask)}


def from_document(provider: str, document: str) -> dict[str, str]:
    """Return the same facts from the answer of the metadata service; nothing if it is invalid."""
    read = _PROVIDERS.get(provider)
    return _known(read, lambda *_: document) if read is not None else {}


def _known(read: Callable[[Ask], Mapping[str, Any]], ask: Ask) -> dict[str, str]:
    try:
        result = read(ask)
    except (OSError, HTTPException, ValueError, AttributeError):
        return {}  # the service is switched off, or gives another answer
    return {name: value for name, value in result.items() if isinstance(value, str) and value}


def _provider(files: HostFiles) -> str | None:
    vendor = files.fact(f"{_DMI}/sys_vendor") or ""
    if vendor.startswith("Amazon EC2"):
        return "aws"
    if vendor.startswith("Google"):
        return "google"
    return "azure" if files.fact(f"{_DMI}/chassis_asset_tag") == _AZURE else None


def _azure(ask: Ask) -> dict[str, Any]:
    answer = ask("/metadata/instance/compute?api-version=2021-02-01", {"Metadata": "true"}, "GET")
    compute = json.loads(answer)
    return {
        "region": compute.get("location"),
        "zone": compute.get("zone"),
        "machine_type": compute.get("vmSize"),
    }


def _aws(ask: Ask) -> dict[str, Any]:
    token = ask("/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}, "PUT")
    answer = ask("/latest/dynamic/instance-identity/document", {"X-aws-ec2-metadata-token": token}, "GET")
    document = json.loads(answer)
    return {
        "region": document.get("region"),
        "zone": document.get("availabilityZone"),
        "machine_type": document.get("instanceType"),
    }


def _google(ask: Ask) -> dict[str, Any]:
    answer = ask("/computeMetadata/v1/instance/?recursive=true", {"Metadata-Flavor": "Google"}, "GET")
    instance = json.loads(answer)
    zone, kind = (str(instance.get(name) or "").rpartition("/")[2] for name in ("zone", "machineType"))
    return {"region": zone.rpartition("-")[0], "zone": zone, "machine_type": kind}


_PROVIDERS: Mapping[str, Callable[[Ask], Mapping[str, Any]]] = {
    "aws": _aws,
    "azure": _azure,
    "google": _google,
}
"""Cloud -> reader of its metadata service."""
