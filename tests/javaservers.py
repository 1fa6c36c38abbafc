"""Servers from Maven Central's jars: a real Cassandra 5, OpenSearch 2, and a MongoDB-compatible server.

The jars are not in the repository: Maven downloads them by their coordinates into its own cache (about 60 MB,
once). The servers need Debian's ``maven`` and ``openjdk-17-jdk-headless``.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

from serverprocess import ServerProcess, running_process, server_directory
from support import missing, require

from pinchpoint_infra.ports import free_port

_KEPT = Path(__file__).parents[1] / "build"
CASSANDRA = "org.apache.cassandra:cassandra-all:5.0.2"
MONGO = "de.bwaldvogel:mongo-java-server:1.47.0", "de.bwaldvogel:mongo-java-server-h2-backend:1.47.0"
"""MongoDB itself is not available as a package. This server speaks the wire protocol of MongoDB's drivers and
stores its data in memory or in an H2 file."""

OPENSEARCH = (
    "org.opensearch:opensearch:2.11.1",
    "org.opensearch.plugin:transport-netty4-client:2.11.1",
    "org.apache.logging.log4j:log4j-core:2.21.0",
)
"""The server's core and its HTTP module; analyzers, ingest processors and security are separate plugins."""

_RESOLVER = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"
_OPENED = (
    *("java.base/" + name for name in ("java.io", "java.lang", "java.lang.module", "java.lang.reflect")),
    *("java.base/java.util", "java.base/java.util.concurrent", "java.base/sun.nio.ch", "java.base/java.nio"),
    *(
        "java.base/jdk.internal." + name
        for name in ("loader", "ref", "reflect", "math", "module", "util.jar")
    ),
    "jdk.management/com.sun.management.internal",
)
_EXPORTED = (
    *(
        "java.base/jdk.internal.misc",
        "java.base/java.lang.ref",
        "java.sql/java.sql",
        "jdk.unsupported/sun.misc",
    ),
    *("java.management.rmi/com.sun.jmx.remote.internal.rmi", "jdk.attach/sun.tools.attach"),
    *("java.rmi/sun.rmi." + name for name in ("registry", "server", "transport.tcp")),
)
"""JDK-internal packages that Cassandra 5 needs on Java 17, as in its own ``jvm17-server.options``."""

_PEER = """
import de.bwaldvogel.mongo.MongoBackend;
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

public class Peer {
    public static void main(String[] arguments) {
        MongoBackend backend = arguments.length > 1 ? new H2Backend(arguments[1]) : new MemoryBackend();
        MongoServer server = new MongoServer(backend.version(new Five()));
        server.bind("127.0.0.1", Integer.parseInt(arguments[0]));
    }
}

// It speaks the messages of MongoDB 5.0 but calls itself older than today's drivers talk to.
class Five implements MongoVersion {
    public java.util.List<Integer> getVersionArray() { return java.util.List.of(5, 0, 0, 0); }
    public int getWireVersion() { return 13; }
}
"""

_OPENSEARCH_NODE = """
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

public class Single {
    static class Whole extends Node {
        Whole(Environment environment) { super(environment, List.of(Netty4Plugin.class), false); }
    }

    public static void main(String[] arguments) throws Exception {
        Settings settings = Settings.builder()
            .put("path.home", arguments[0]).put("node.name", "single")
            .put("discovery.type", "single-node").put("network.host", "127.0.0.1")
            .put("http.port", arguments[1]).put("transport.port", arguments[2])
            .put("http.type", "netty4").put("transport.type", "netty4").put("node.processors", 1)
            .put("cluster.routing.allocation.disk.threshold_enabled", false).build();
        Path home = Path.of(arguments[0]);
        new Whole(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), home, () -> "single"))
            .start();
        Thread.currentThread().join();
    }
}
"""


def _java() -> str:
    """Return the path of Java 17, which Cassandra 5 needs: Debian's, else the first in PATH."""
    for path in sorted(Path("/usr/lib/jvm").glob("java-17-*/bin/java")):
        return str(path)
    program = require("java", "openjdk-17-jdk-headless")
    said = subprocess.run(
        [program, "-version"], capture_output=True, text=True, check=True, timeout=30
    ).stderr
    if 'version "17' not in said:
        missing(f"Java 17 is missing, found {said.splitlines()[0]} (Debian: openjdk-17-jdk-headless)")
    return program


@functools.cache
def _classpath(*coordinates: str) -> str:
    """Return the jars of the coordinates and of their dependencies, as a value for Java's ``-cp``.

    The result is cached in a file for later sessions, and is valid while the jars exist.
    """
    kept = _KEPT / f"classpath-{zlib.crc32(' '.join(coordinates).encode()):08x}"
    found = kept.read_text() if kept.exists() else ""
    if found and all(Path(jar).exists() for jar in found.split(":")):
        return found
    maven = require("mvn", "maven")
    wanted = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(
            *map(escape, each.split(":"))
        )
        for each in coordinates
    )
    with tempfile.TemporaryDirectory(prefix="maven-") as folder:
        Path(folder, "pom.xml").write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>pinchpoint.tests</groupId><artifactId>server</artifactId><version>1</version>"
            f"<dependencies>{wanted}</dependencies></project>"
        )
        done = subprocess.run(
            [maven, "-q", "-B", _RESOLVER, "-Dmdep.outputFile=classpath"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
        )
        if done.returncode != 0:
            missing(f"Maven could not resolve {', '.join(coordinates)}: {done.stdout.strip()[-500:]}")
        found = Path(folder, "classpath").read_text().strip()
        _KEPT.mkdir(parents=True, exist_ok=True)
        made = kept.with_suffix(f".{os.getpid()}")
        made.write_text(found)
        made.replace(kept)
        return found


def _listens(port: int) -> bool:
    with closing(socket.socket()) as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def cassandra(settings: Mapping[str, object] | None = None) -> Iterator[ServerProcess]:
    """Run a Cassandra 5 with one node that flushes its commit log before it acknowledges a write.

    Args:
        settings: lines that replace those of cassandra.yaml: ``{"commitlog_sync": "periodic", ...}``; None
            removes a line. ``commitlog_directory`` and ``data_file_directories`` may be elsewhere.
    """
    classpath = _classpath(CASSANDRA)
    jamm = next(path for path in classpath.split(":") if "/jamm-" in path)
    with server_directory() as directory:
        port = free_port()
        _write_cassandra_yaml(directory, port, settings or {})
        (directory / "logback.xml").write_text(_LOGBACK)
        command = [
            _java(),
            *("-Xms384m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
            *(word for name in _OPENED for word in ("--add-opens", f"{name}=ALL-UNNAMED")),
            *(word for name in _EXPORTED for word in ("--add-exports", f"{name}=ALL-UNNAMED")),
            *("-Djdk.attach.allowAttachSelf=true", "-Dio.netty.tryReflectionSetAccessible=true"),
            f"-javaagent:{jamm}",
            f"-Dcassandra.config=file://{directory}/cassandra.yaml",
            f"-Dcassandra.storagedir={directory}",
            f"-Dlogback.configurationFile={directory}/logback.xml",
            f"-Djava.io.tmpdir={directory}",
            *("-Dcassandra-foreground=yes", "-Dcassandra.superuser_setup_delay_ms=0"),
            *("-Dcassandra.skip_wait_for_gossip_to_settle=0", "-Dcassandra.ring_delay_ms=100"),
            *("-cp", classpath, "org.apache.cassandra.service.CassandraDaemon"),
        ]
        server = ServerProcess(
            f"cassandra://127.0.0.1:{port}/loadtest",
            command,
            directory,
            lambda: _listens(port),
            timeout_s=90,
        )
        with running_process(server):
            yield server


def _write_cassandra_yaml(directory: Path, port: int, settings: Mapping[str, object]) -> None:
    storage_port = free_port()
    lines: dict[str, object] = {
        "cluster_name": "pinchpoint tests",
        "num_tokens": 1,
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "data_file_directories": [str(directory / "data")],
        "commitlog_directory": str(directory / "commitlog"),
        "saved_caches_directory": str(directory / "saved_caches"),
        "hints_directory": str(directory / "hints"),
        "commitlog_sync": "batch",
        "commitlog_segment_size": "4MiB",
        "commitlog_total_space": "64MiB",
        "concurrent_reads": 4,
        "concurrent_writes": 16,
        "listen_address": "127.0.0.1",
        "rpc_address": "127.0.0.1",
        "native_transport_port": port,
        "storage_port": storage_port,
        "endpoint_snitch": "SimpleSnitch",
        "seed_provider": [
            {
                "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                "parameters": [{"seeds": f"127.0.0.1:{storage_port}"}],
            }
        ],
    }
    given = {name: value for name, value in (lines | dict(settings)).items() if value is not None}
    (directory / "cassandra.yaml").write_text(json.dumps(given))  # JSON is valid YAML


_LOGBACK = """<configuration><statusListener class="ch.qos.logback.core.status.NopStatusListener"/>
<appender name="OUT" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%-5level %logger{0}: %msg%n
</pattern></encoder></appender><root level="WARN"><appender-ref ref="OUT"/></root></configuration>
"""


@contextmanager
def mongo(*, on_disk: bool = False) -> Iterator[ServerProcess]:
    """Run a server that speaks MongoDB's wire protocol, with the database ``loadtest``.

    Args:
        on_disk: True: the server keeps its documents in a file across restarts. False: it keeps them in
            memory, and a kill loses all.
    """
    classpath = _classpath(*MONGO)
    with server_directory() as directory:
        port = free_port()
        (directory / "Peer.java").write_text(_PEER)
        command = [_java(), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classpath]
        command += ["Peer.java", str(port), *([str(directory / "documents.h2")] if on_disk else [])]
        server = ServerProcess(
            f"mongodb://127.0.0.1:{port}/loadtest", command, directory, lambda: _listens(port)
        )
        with running_process(server):
            yield server


@contextmanager
def opensearch() -> Iterator[ServerProcess]:
    """Run an OpenSearch 2 with one node and without plugins."""
    classpath = _classpath(*OPENSEARCH)
    with server_directory() as directory:
        port = free_port()
        (directory / "config").mkdir()
        (directory / "Single.java").write_text(_OPENSEARCH_NODE)
        command = [_java(), "-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += [f"-Djava.io.tmpdir={directory}", "-cp", classpath]
        command += ["Single.java", str(directory), str(port), str(free_port())]
        server = ServerProcess(
            f"http://127.0.0.1:{port}", command, directory, lambda: _listens(port), timeout_s=90
        )
        with running_process(server):
            yield server
