import Glibc
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools

/// An nginx server in front of the backend. It serves clients over TLS and over plain TCP. It gives an id to
/// each request that arrives (`$request_id`), which it logs and passes to the backend.
final class StormNginx: Sendable {
  /// An endpoint on which nginx listens, with its settings.
  struct Listener: Sendable {
    let endpoint: IPEndpoint
    /// Whether clients use TLS.
    var isSecure = true
    /// Whether nginx offers HTTP/2 besides HTTP/1.1.
    var http2 = false
    /// The maximum number of requests per connection. nginx then closes the connection, over HTTP/2 with
    /// GOAWAY.
    var requests = 1_000_000
    /// The maximum number of concurrent streams per HTTP/2 connection.
    var streams = 128
    /// The TLS versions, as in nginx's directive `ssl_protocols`.
    var tlsVersions = "TLSv1.2 TLSv1.3"
  }

  private let listeners: [Listener]
  private let certificate: TestCertificate
  /// The endpoint of the backend.
  private let backend: IPEndpoint
  /// The directory with configuration, logs and temporary files.
  private let directory: String
  /// The running nginx; `nil` after `stop` or `kill`.
  private let process = Locked<ChildProcess?>(nil)
  /// Reads nginx's access log.
  let log: AccessLogTail

  /// Starts nginx. Returns when it accepts connections.
  init(_ listeners: [Listener], _ certificate: TestCertificate, backend: IPEndpoint) async throws {
    self.listeners = listeners
    self.certificate = certificate
    self.backend = backend
    directory = try TemporaryDirectory.make("storm-nginx")
    log = AccessLogTail(path: "\(directory)/access.log")
    try TextFile.write(configuration, to: "\(directory)/nginx.conf")
    try await start()
  }

  /// Starts nginx again, after `stop` or `kill`.
  func start() async throws {
    let idFile = "\(directory)/nginx.pid"
    unlink(idFile)
    let child = try ChildProcess(
      "nginx", ["-p", directory, "-c", "\(directory)/nginx.conf", "-e", "stderr"], in: directory)
    process.withLock { $0 = child }
    try await child.wait(untilReady: { !TextFile.read(idFile).isEmpty })
  }

  /// Ends nginx with SIGTERM. nginx closes idle connections in order, and resets connections with requests
  /// under way.
  func stop() { process.withLock { $0.take() }?.stop() }

  /// Ends nginx with SIGKILL. nginx does not log the requests that are under way.
  func kill() {
    let child = process.withLock { $0.take() }
    child?.send(SIGKILL)
    child?.stop()
  }

  /// Stops nginx with SIGSTOP.
  func freeze() { process.withLock { $0 }?.send(SIGSTOP) }

  /// Resumes nginx after `freeze`.
  func thaw() { process.withLock { $0 }?.send(SIGCONT) }

  /// Makes nginx write its log to a new file, and removes the old file.
  func rotateLog() { log.rotate { process.withLock { $0 }?.send(SIGUSR1) } }

  private var configuration: String {
    """
    daemon off;
    master_process off;
    pid \(directory)/nginx.pid;
    error_log stderr error;
    events { worker_connections 4096; }
    http {
      log_format arrivals '$request_id $http_x_id $request_method $status';
      access_log \(directory)/access.log arrivals;
      default_type text/plain;
      client_body_temp_path \(directory)/body;
      proxy_temp_path \(directory)/proxy;
      fastcgi_temp_path \(directory)/fastcgi;
      uwsgi_temp_path \(directory)/uwsgi;
      scgi_temp_path \(directory)/scgi;
      client_max_body_size 0;
      ssl_certificate \(certificate.certificateFile);
      ssl_certificate_key \(certificate.keyFile);
      ssl_session_cache shared:sessions:1m;
      gzip on;
      gzip_types text/compressed;
      gzip_min_length 1;
      gzip_proxied any;
      upstream backend { server \(backend); keepalive 64; }
      \(listeners.map(server).joined(separator: "\n  "))
    }

    """
  }

  /// The `server` block of a listener. nginx passes requests and responses on without buffering, so that the
  /// backend's cuts and pauses reach the client. At `/close`, responses over HTTP/1.1 have no chunks: their
  /// bodies end with the connection.
  private func server(_ listener: Listener) -> String {
    let tls = listener.isSecure ? " ssl" : ""
    let proxied = """
      proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header Connection "";
          proxy_set_header X-Front $request_id; proxy_set_header Accept-Encoding "";
          proxy_buffering off; proxy_request_buffering off; proxy_next_upstream off; proxy_pass http://backend;
      """
    return """
      server {
          listen \(listener.endpoint)\(tls)\(listener.http2 ? " http2" : "") default_server;
          keepalive_requests \(listener.requests);
          http2_max_concurrent_streams \(listener.streams);
          ssl_protocols \(listener.tlsVersions);
          location / { \(proxied) }
          location /close { chunked_transfer_encoding off; \(proxied) }
        }
      """
  }
}
