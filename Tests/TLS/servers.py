"""TLS servers for tests, one for each argument.

An argument is a JSON object: {"cert", "key"} and optionally {"ca"} (ask for a client certificate that this authority
signed), "required", "min", "max" (1.1, 1.2, 1.3), "ciphers". The program prints a line with the ports. A server answers
each request with 200 and the common name of the client's certificate, or "nobody".
"""

import json
import signal
import socket
import ssl
import sys
import threading

VERSIONS = {"1.1": ssl.TLSVersion.TLSv1_1, "1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def make_context(settings):
    """Makes the TLS context of a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if "ciphers" in settings:
        context.set_ciphers(settings["ciphers"])
    context.minimum_version = VERSIONS[settings.get("min", "1.2")]
    context.maximum_version = VERSIONS[settings.get("max", "1.3")]
    context.load_cert_chain(settings["cert"], settings["key"])
    if "ca" in settings:
        context.load_verify_locations(settings["ca"])
        context.verify_mode = ssl.CERT_REQUIRED if settings.get("required", True) else ssl.CERT_OPTIONAL
    return context


def answer(connection, context):
    """Serves one connection."""
    try:
        with context.wrap_socket(connection, server_side=True) as secure:
            certificate = secure.getpeercert() or {}
            names = dict(pair[0] for pair in certificate.get("subject", ()))
            body = names.get("commonName", "nobody").encode()
            received = b""
            while piece := secure.recv(65536):
                received += piece
                while b"\r\n\r\n" in received:
                    received = received.split(b"\r\n\r\n", 1)[1]
                    secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    except (ssl.SSLError, OSError):
        pass


def serve(listener, context):
    """Accepts connections until the program ends."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection, context), daemon=True).start()


def main():
    """Starts the servers and waits for a signal."""
    ports = []
    for argument in sys.argv[1:]:
        context = make_context(json.loads(argument))
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        threading.Thread(target=serve, args=(listener, context), daemon=True).start()
        ports.append(listener.getsockname()[1])
    print(*ports, "ready", flush=True)
    signal.pause()


main()
