"""Origins on this machine for the measurements: nginx on loopback addresses, pinned to one core."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from array import array

HOST = "api.bench.example"
# The origin's addresses; the last ones for what goes wrong.
GOOD = [f"127.72.0.{number}" for number in range(1, 9)]
REFUSING, SILENT, HOLE = "127.72.1.1", "127.72.1.2", "127.72.1.3"
SERVER_CORE, CLIENT_CORE = "0", "1"
# What is served. An answer of /small is as long as this and begins with the request's question, which is the last part of the
# path; the files are words of eight bytes, each its own index, and the question is in a header field.
SMALL = 200
FILES = {"100KB": 100_000, "100MB": 100_000_000}
QUESTION_DIGITS = 6


class Failure(Exception):
    """Something cannot be measured here; says what and why."""


def program(name: str) -> str:
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise Failure(f"{name} is not installed; run: scripts/install-dependencies perf")
    return path


def free_port() -> int:
    """A port below the range of outgoing connections that is free on all addresses."""
    for port in range(21000, 32000):
        try:
            for address in [*GOOD, REFUSING, SILENT, HOLE]:
                with socket.socket() as probe:
                    probe.bind((address, port))
            return port
        except OSError:
            continue
    raise Failure("no port is free")


class Origin:
    """nginx under a certificate authority of its own. Its servers differ in what they do with connections."""

    # Names of the variants, each at a port of its own: kept open; closed after a request; closed, and never resumed; kept
    # open, at all addresses of loopback.
    VARIANTS = {
        "kept": "keepalive_requests 100000000; ssl_session_cache shared:kept:4m;",
        "closing": "keepalive_requests 1; ssl_session_cache shared:closing:4m;",
        "forgetful": "keepalive_requests 1; ssl_session_cache off; ssl_session_tickets off;",
        "everywhere": "keepalive_requests 100000000;",
    }

    def __init__(self) -> None:
        self.directory = tempfile.mkdtemp(prefix="netopt-perf.")
        self.processes: list[subprocess.Popen] = []
        self.sockets: list[socket.socket] = []
        try:
            self.make_certificates()
            self.ports = {}
            for name in self.VARIANTS:
                self.ports[name] = free_port() if not self.ports else max(self.ports.values()) + 1
            self.start()
            self.misbehave()
        except BaseException:
            self.end()
            raise

    @property
    def pid(self) -> int:
        """The server's process."""
        return self.processes[0].pid

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    @property
    def authority(self) -> str:
        return self.path("ca.pem")

    def url(self, path: str, variant: str = "kept", host: str = HOST) -> str:
        return f"https://{host}:{self.ports[variant]}{path}"

    @staticmethod
    def expect(path: str) -> list[str]:
        """The option that has the load generators ask a question with each request and check the answer."""
        return ["--expect", f"echo:{SMALL}" if path == "/small" else f"words:{FILES[path.removeprefix('/')]}"]

    def connect_to(self, variant: str = "kept", address: str = GOOD[0]) -> list[str]:
        port = self.ports[variant]
        return ["--cacert", self.authority, "--connect-to", f"{HOST}:{port}:{address}:{port}"]

    def write_list(self, addresses: list[str], variant: str = "kept") -> list[str]:
        """The options for a list of these addresses, the first one preferred."""
        endpoints = ",".join(
            f'{{"ip":"{address}","region":"{"here" if index == 0 else "there"}"}}'
            for index, address in enumerate(addresses))
        path = self.path(f"list-{len(os.listdir(self.directory))}.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'{{"schema":1,"serial":1,"issued":"2026-01-01T00:00:00Z","hosts":'
                       f'{{"{HOST}":{{"port":{self.ports[variant]},"endpoints":[{endpoints}]}}}}}}')
        return ["--cacert", self.authority, "--list", path]

    def make_certificates(self) -> None:
        def certificate(name: str, *options: str) -> None:
            subprocess.run(
                [program("openssl"), "req", "-x509", "-days", "2", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                 "-nodes", "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.pem"), *options],
                check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        certificate("ca", "-subj", "/CN=netopt perf authority", "-addext", "basicConstraints=critical,CA:TRUE")
        names = ",".join([f"DNS:{HOST}", "DNS:*.bench.example", *(f"IP:{address}" for address in GOOD)])
        certificate(
            "origin", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName={names}",
            "-addext", "basicConstraints=critical,CA:FALSE", "-CA", self.path("ca.pem"), "-CAkey", self.path("ca.key"))

    def start(self) -> None:
        os.mkdir(self.path("content"))
        for name, size in FILES.items():
            with open(self.path(f"content/{name}"), "wb") as file:
                # In parts: a child's largest resident size begins with its parent's.
                for first in range(0, size // 8, 65_536):
                    words = array("Q", range(first, min(first + 65_536, size // 8)))
                    if sys.byteorder == "big":
                        words.byteswap()
                    words.tofile(file)
        # Where measuring is about connections the log says which were resumed; elsewhere it would only cost.
        servers = "\n".join(
            f"""server {{
              {" ".join(f"listen {address}:{self.ports[name]} ssl http2 backlog=4096;" for address in (["0.0.0.0"] if name == "everywhere" else GOOD))}
              ssl_certificate {self.path("origin.pem")}; ssl_certificate_key {self.path("origin.key")};
              access_log {"off" if name in ("kept", "everywhere") else f"{self.path(name)}.log resumption"};
              root {self.path("content")};
              location = /small {{ return 200 "{"x" * SMALL}"; }}
              location ~ "^/small/([0-9]{{{QUESTION_DIGITS}}})$" {{ return 200 "$1{"x" * (SMALL - QUESTION_DIGITS)}"; }}
              location ~ "^/(100.B)/([0-9]{{{QUESTION_DIGITS}}})$" {{ add_header Question $2; try_files /$1 =404; }}
              {directives}
            }}"""
            for name, directives in self.VARIANTS.items())
        temporary = " ".join(
            f"{name}_temp_path {self.path(name)};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(self.path("nginx.conf"), "w", encoding="utf-8") as file:
            file.write(f"""
              daemon off; master_process off; pid {self.path("nginx.pid")}; error_log stderr warn;
              worker_rlimit_nofile 16384;
              events {{ worker_connections 8192; }}
              http {{
                {temporary}
                log_format resumption "$server_addr $ssl_session_reused";
                default_type text/plain; keepalive_timeout 600s; http2_max_concurrent_streams 2000; sendfile on;
                {servers}
              }}""")
        self.processes.append(subprocess.Popen(
            [program("taskset"), "-c", SERVER_CORE, program("nginx"), "-p", self.directory,
             "-c", self.path("nginx.conf"), "-e", "stderr"],
            stdin=subprocess.DEVNULL, stderr=open(self.path("nginx.err"), "wb"), start_new_session=True))
        end = time.monotonic() + 10
        while True:
            try:
                socket.create_connection((GOOD[0], max(self.ports.values())), timeout=1).close()
                return
            except OSError as error:
                if self.processes[0].poll() is not None or time.monotonic() > end:
                    with open(self.path("nginx.err"), encoding="utf-8") as log:
                        raise Failure(f"nginx does not serve: {log.read()}") from error
                time.sleep(0.01)

    def misbehave(self) -> None:
        """SILENT completes the handshake of TCP and says nothing; HOLE does not even do that: its queue is full."""
        port = self.ports["kept"]
        self.sockets.append(socket.create_server((SILENT, port), backlog=4096))
        hole = socket.create_server((HOLE, port), backlog=0)
        self.sockets.append(hole)
        for _ in range(8):
            filler = socket.socket()
            filler.setblocking(False)
            try:
                filler.connect((HOLE, port))
            except BlockingIOError:
                pass
            self.sockets.append(filler)

    def resumptions(self, variant: str) -> list[tuple[str, bool]]:
        """The address and whether TLS was resumed, for each request since the last call."""
        path = f"{self.path(variant)}.log"
        with open(path, "r+", encoding="utf-8") as log:
            lines = [line.split() for line in log]
            log.truncate(0)
        return [(address, reused == "r") for address, reused in lines]

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
            # A measurement that was interrupted may have left it stopped.
            process.send_signal(signal.SIGCONT)
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for open_socket in self.sockets:
            open_socket.close()
        shutil.rmtree(self.directory, ignore_errors=True)
