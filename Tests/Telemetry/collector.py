"""A server that answers requests with a trace, and a collector that takes their spans over OTLP/HTTP in JSON.

Usage: collector.py PORT

It reads trace fields and spans with OpenTelemetry's own code: its propagator, and its protocol buffers, which refuse every member that they
do not know. `GET /dump` answers with everything that arrived.
"""

import base64
import http.server
import json
import sys
import threading
import urllib.parse

from google.protobuf import json_format
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

lock = threading.Lock()
requests, spans, faults, exports = [], [], [], []
# How often each call was answered.
answered = {}
# The statuses with which the next exports are refused.
refusals = []


def with_bytes(value):
    """OTLP writes identifiers in hexadecimal, where protocol buffers have base64."""
    if isinstance(value, list):
        return [with_bytes(element) for element in value]
    if isinstance(value, dict):
        return {
            key: base64.b64encode(bytes.fromhex(member)).decode() if key in ("traceId", "spanId", "parentSpanId") else with_bytes(member)
            for key, member in value.items()
        }
    return value


def plain(attributes):
    return {attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value")) for attribute in attributes}


def take(body):
    request = json_format.Parse(json.dumps(with_bytes(json.loads(body))), trace_service_pb2.ExportTraceServiceRequest())
    count = 0
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                count += 1
                if len(span.trace_id) != 16 or len(span.span_id) != 8:
                    faults.append(f"identifiers of {span}")
                spans.append({
                    "trace": span.trace_id.hex(), "span": span.span_id.hex(), "parent": span.parent_span_id.hex(), "state": span.trace_state,
                    "flags": span.flags, "name": span.name, "kind": span.kind, "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano, "attributes": {k: str(v) for k, v in plain(span.attributes).items()},
                    "events": [plain(event.attributes) for event in span.events], "error": span.status.code == 2,
                    "service": plain(resource.resource.attributes).get("service.name", ""), "scope": scope.scope.name,
                })
    exports.append(count)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", fields={}):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **fields}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/refuse":
            with lock:
                refusals.extend(json.loads(body))
            return self.answer(204)
        if url.path == "/otlp/v1/traces":
            with lock:
                if refusals:
                    return self.answer(refusals.pop(0))
                if self.headers["Content-Type"] != "application/json" or self.headers["X-Key"] != "hunter2":
                    faults.append(f"fields {self.headers}")
                if "hunter2" in body.decode():
                    faults.append("a secret is in the spans")
                try:
                    take(body)
                except Exception as error:
                    faults.append(str(error))
                    return self.answer(400)
            return self.answer(200, b"{}", {"Content-Type": "application/json"})
        self.do_GET()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/dump":
            with lock:
                body = json.dumps({"requests": requests, "spans": spans, "faults": faults, "exports": exports}).encode()
            return self.answer(200, body)
        query = dict(urllib.parse.parse_qsl(url.query))
        fields = {name.lower(): ",".join(self.headers.get_all(name)) for name in set(self.headers.keys())}
        context = trace.get_current_span(TraceContextTextMapPropagator().extract(fields)).get_span_context()
        with lock:
            number = answered[query["id"]] = answered.get(query["id"], 0) + 1
            failing = number <= int(query.get("failing", 0))
            status = int(query.get("status", 200)) if failing or "failing" not in query else 200
            requests.append({
                "id": query["id"], "method": self.command, "status": status, "trace": f"{context.trace_id:032x}", "span": f"{context.span_id:016x}",
                "sampled": bool(context.trace_flags.sampled), "state": context.trace_state.to_header(), "parents": self.headers.get_all("traceparent") or [],
            })
        if query.get("end") == "close" and number == 1:
            self.close_connection = True
            return
        if 300 <= status < 400:
            return self.answer(status, b"", {"Location": f"/end?id={query['id']}&api_key=hunter2"})
        self.answer(status, b"answer to " + query["id"].encode())

    do_REPORT = do_GET


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
