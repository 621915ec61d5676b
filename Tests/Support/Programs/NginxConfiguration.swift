import NetOptTestSupport
import Glibc
import NetOptCore

/// Writes the configuration and the content of an `NginxOrigin`. The origin serves:
///
/// - `/`: the text `hello` and a line end.
/// - `/bytes/N`: N zero bytes, for N in `sizes`; supports ranges, `ETag` and `Last-Modified`.
/// - `/text`: 20,000 bytes of text; compressed with gzip for clients that accept gzip.
/// - `/echo`: the request line, fields and body that the origin received, in HTTP/1.1 form.
/// - `/upload`: reads the whole body, of any size, and answers with the number of its bytes.
/// - `/status/N`: the status N, for N in `statuses`.
/// - `/redirect?to=URL`: 302 to the URL, which is used unchanged; `/redirect/N?to=URL`: the status N, which
///   is 301, 302, 303, 307 or 308.
/// - `/slow?s=SECONDS`: answers `done` after this time; the default is 0.5.
/// - `/slow-body?s=SECONDS`: answers `first` at once, and `last` after this time; the default is 0.5.
///
/// Every response names the address that served it in `X-Origin`.
struct NginxConfiguration {
  /// The sizes in bytes of the files at `/bytes/N`.
  static let sizes = [0, 1, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000]
  /// The statuses that `/status/N` has.
  static let statuses = [
    200, 201, 202, 204, 206, 304, 400, 401, 403, 404, 405, 408, 409, 410, 412, 415, 416, 421, 425, 429, 500,
    501, 502,
    503, 504,
  ]

  let listeners: [NginxOrigin.Listener]
  let port: UInt16
  let settings: NginxSettings
  /// The directory of the server, in which all of its files are.
  let directory: String

  var file: String { "\(directory)/nginx.conf" }
  var processIDFile: String { "\(directory)/nginx.pid" }

  /// Writes the configuration and the content.
  func writeFiles() throws {
    let content = "\(directory)/content"
    for path in [content, "\(content)/bytes", "\(directory)/temporary"] {
      guard mkdir(path, 0o755) == 0 else { throw systemError("\(path) could not be made") }
    }
    for size in Self.sizes {
      // The file is sparse: 100 MB occupy no space.
      let path = "\(content)/bytes/\(size)"
      try TextFile.write("", to: path)
      guard truncate(path, size) == 0 else { throw systemError("\(path) could not be made") }
    }
    let line = "The quick brown fox jumps over the lazy dog, 0123\n"
    try TextFile.write(String(repeating: line, count: 20_000 / line.utf8.count), to: "\(content)/text")
    try TextFile.write(text, to: file)
  }

  /// The text of nginx.conf.
  private var text: String {
    """
    daemon off;
    master_process off;
    worker_rlimit_nofile \(settings.connections * 2);
    pid \(processIDFile);
    error_log stderr notice;
    \(Self.echoModule)
    events { worker_connections \(settings.connections); }
    http {
      log_format entries escape=json '\(AccessLogEntry.format)';
      access_log \(directory)/access.log entries;
      default_type text/plain;
      client_body_temp_path \(directory)/temporary/body;
      proxy_temp_path \(directory)/temporary/proxy;
      fastcgi_temp_path \(directory)/temporary/fastcgi;
      uwsgi_temp_path \(directory)/temporary/uwsgi;
      scgi_temp_path \(directory)/temporary/scgi;
      absolute_redirect off;
      client_max_body_size 0;
      keepalive_requests \(settings.keepaliveRequests);
      keepalive_timeout \(settings.keepaliveSeconds)s;
      http2_max_concurrent_streams \(settings.concurrentStreams);
      ssl_protocols \(settings.tlsVersions);
      ssl_session_cache shared:sessions:1m;
      gzip_types text/plain;
      gzip_min_length 1;
      \(listeners.map(server).joined(separator: "\n"))
      \(backend)
    }

    """
  }

  /// The `server` block of a listener, with all resources.
  private func server(_ listener: NginxOrigin.Listener) -> String {
    let address = "\(listener.address.hostText):\(port)"
    let tls = "listen \(address) ssl\(settings.http2 ? " http2" : "") default_server;"
    let security =
      switch listener.security {
      case .none: "listen \(address) default_server;"
      case .rejected: "\(tls) ssl_reject_handshake on;"
      case .certificate(let certificate):
        "\(tls) ssl_certificate \(certificate.certificateFile); ssl_certificate_key \(certificate.keyFile);"
      }
    let statuses = Self.statuses.map { "location = /status/\($0) { return \($0) \"\($0)\\n\"; }" }
    let redirects = [301, 302, 303, 307, 308].map {
      "location = /redirect/\($0) { return \($0) $arg_to; }"
    }
    return """
      server {
        \(security)
        add_header X-Origin $server_addr always;
        root \(directory)/content;
        location = / { return 200 "hello\\n"; }
        location /bytes/ { }
        location = /text { gzip on; }
        location = /echo { \(Self.proxied) }
        location = /upload { \(Self.proxied) }
        location = /redirect { return 302 $arg_to; }
        location = /slow { \(Self.pause) echo_sleep $pause; echo done; }
        location = /slow-body { \(Self.pause) echo first; echo_flush; echo_sleep $pause; echo last; }
        \((statuses + redirects).joined(separator: "\n  "))
        \(settings.directives)
      }
      """
      .replacing("@BACKEND@", with: "\(directory)/backend")
  }

  /// The directives that set the variable `$pause` to the parameter `s` of the query, or to 0.5.
  private static let pause = "set $pause 0.5; if ($arg_s) { set $pause $arg_s; }"

  /// The directives that forward a request to the backend (`backend`). The echo module shows only the fields
  /// of HTTP/1 requests, so nginx forwards requests of both HTTP versions as HTTP/1.1. nginx buffers the body
  /// first, so the backend gets a Content-Length even when the client sent none. `server(_:)` puts the path
  /// of the backend's socket in the place of `@BACKEND@`.
  private static let proxied = """
    proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header Connection ""; \
    proxy_pass http://unix:@BACKEND@;
    """

  /// The `server` block that answers `/echo` and `/upload` on a Unix socket, behind the listeners.
  private var backend: String {
    """
    server {
      listen unix:\(directory)/backend;
      access_log off;
      location = /echo { echo_read_request_body; echo -n $echo_client_request_headers; echo_request_body; }
      location = /upload { echo_read_request_body; set $bytes 0; if ($content_length) { set $bytes $content_length; } echo $bytes; }
    }
    """
  }

  /// The directive that loads the echo module (`echo`, `echo_sleep`). On Debian the module is a separate
  /// file. Empty when there is no such file, because the module may be built in.
  private static var echoModule: String {
    let path = "/usr/lib/nginx/modules/ngx_http_echo_module.so"
    return access(path, R_OK) == 0 ? "load_module \(path);" : ""
  }
}
