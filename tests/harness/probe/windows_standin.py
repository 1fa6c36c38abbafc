"""A stand-in Windows machine for probes: the answers of ``diskspd.ps1``, over WinRM or ssh.

Its disk does 2,000 I/Os per second at most, each in 0.5 ms below that rate.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

IOPS, SERVICE_S = 2000.0, 0.0005
FOLDER = "L:\\data"


def result(arguments: str, host: str = "SQL1") -> str:
    """Return DiskSpd's XML for such a call."""
    given = dict(re.findall(r"-([a-zA-Z])(\d+)", arguments))
    block, depth, writes = (int(given[name]) for name in ("b", "o", "w"))
    seconds = int(given["d"])
    rate = min(IOPS, depth / SERVICE_S)
    latency_ms = depth / rate * 1000
    many = round(rate * seconds)
    written = many * writes // 100
    order = "<Random>4096</Random>" if " -r" in arguments else "<StrideSize>4096</StrideSize>"
    buckets = "".join(
        f"<Bucket><Percentile>{share}</Percentile><TotalMilliseconds>{latency_ms:.3f}</TotalMilliseconds></Bucket>"
        for share in ("50", "95", "99", "99.9", "100")
    )
    steps = "".join(
        f'<Bucket SampleMillisecond="{at * 1000}" Read="{rate * (100 - writes) / 100}" '
        f'Write="{rate * writes / 100}"/>'
        for at in range(1, seconds + 1)
    )
    return (
        f"<Results><System><ComputerName>{host}</ComputerName><Tool><Version>2.2.0</Version></Tool>"
        "<RunTime>2026/11/20 09:00:05 UTC</RunTime></System><Profile><TimeSpans><TimeSpan><Targets><Target>"
        f"<Path>probe.data</Path><BlockSize>{block}</BlockSize><DisableOSCache>true</DisableOSCache>{order}"
        f"<RequestCount>{depth}</RequestCount><WriteRatio>{writes}</WriteRatio><ThreadsPerFile>1</ThreadsPerFile>"
        "</Target></Targets></TimeSpan></TimeSpans></Profile><TimeSpan>"
        f"<TestTimeSeconds>{seconds}.00</TestTimeSeconds><Latency>"
        f"<AverageTotalMilliseconds>{latency_ms:.3f}</AverageTotalMilliseconds>{buckets}</Latency><Iops>{steps}</Iops>"
        f"<Thread><Target><ReadBytes>{(many - written) * block}</ReadBytes>"
        f"<ReadCount>{many - written}</ReadCount>"
        f"<WriteBytes>{written * block}</WriteBytes><WriteCount>{written}</WriteCount></Target></Thread>"
        "</TimeSpan></Results>"
    )


@dataclass
class Machine:
    """The machine as the script sees it.

    Attributes:
        log: file that gets one line per request; None: no log.
        tool: true if DiskSpd is installed.
        state: content at the folder's path: ``""``, ``ours``, ``theirs`` or ``used``.
    """

    log: Path | None = None
    tool: bool = True
    state: str = ""
    content: bytes = b""
    asked: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, text: str) -> list[str]:
        """Return the lines of the answer to a request."""
        asked = json.loads(text)
        self.asked.append(asked)
        if self.log is not None:
            with self.log.open("a") as file:
                file.write(json.dumps(asked) + "\n")
        what, found = self._done(asked)
        last = {"kind": "error", "what": what[0], "why": what[1]} if what else {"kind": "done"}
        return [json.dumps(one) for one in (*found, {**last, "id": asked["id"]})]

    def _done(self, asked: dict[str, Any]) -> tuple[tuple[str, str] | None, list[dict[str, Any]]]:
        match asked["do"]:
            case "look" if asked["path"] not in (None, FOLDER):
                return ("missing", f"{asked['path']} is no folder"), []
            case "look":
                disk: dict[str, Any] = {
                    "folder": FOLDER,
                    "host": "SQL1",
                    "device": "2",
                    "model": "Virtual Disk",
                }
                disk |= {"file_system": "NTFS", "memory_bytes": 2**34, "administrator": True}
                return None, [{"kind": "disk", **disk, "free_bytes": 2**38, "total_bytes": 2**39}]
            case "open" if self.state in ("theirs", "used"):
                return (self.state, "4711"), []
            case "open" if not (self.tool or asked["copied"]):
                return ("no_tool", f"{asked['tool']} was not found"), []
            case "open":
                self.state = "ours"
                return None, [
                    {"kind": "opened", "folder": f"{FOLDER}\\pinchpoint-probe", "tool": asked["tool"]}
                ]
            case "put":
                self.content += base64.b64decode(asked["data"])
                return None, []
            case "run" if self.state != "ours":
                return ("gone", f"{FOLDER}\\pinchpoint-probe is gone"), []
            case "run":
                return None, [{"kind": "output", "status": 0, "stderr": "", **self._run(asked["arguments"])}]
            case "stop" | "bye":
                self.state = "" if asked["do"] == "bye" else self.state
                return None, []
        return ("request", "no such request"), []

    @staticmethod
    def _run(arguments: str) -> dict[str, Any]:
        if "-?" in arguments:
            return {"status": 1, "stdout": "\nUsage: diskspd\nversion 2.2.0 (2024/6/3)\n"}
        if "-c" in arguments:
            return {"stdout": "Command Line: diskspd\n"}
        if "-d60 " in arguments:
            time.sleep(1.5)
        return {"stdout": f"note\n{result(arguments)}"}


def serve(log: str) -> None:
    """Act as PowerShell behind ssh: read a loader, the script, then one request per line."""
    machine = Machine(Path(log))
    sys.stdin.readline()
    base64.b64decode(sys.stdin.readline())
    print("Welcome to SQL1", flush=True)
    for line in sys.stdin:
        for said in machine.answer(line):
            print(said, flush=True)
    machine.answer(json.dumps({"do": "bye", "id": None}))


if __name__ == "__main__":
    serve(sys.argv[1])
