import NetOptTestSupport
/// The settings of an `NginxOrigin`.
package struct NginxSettings: Sendable {
  /// Whether the server offers HTTP/2 over TLS. The server always offers HTTP/1.1. Default: true.
  package var http2 = true
  /// The number of requests on a connection before nginx closes it; over HTTP/2 nginx closes it with GOAWAY.
  /// Default: 1,000,000.
  package var keepaliveRequests = 1_000_000
  /// How long nginx keeps an idle connection, in seconds. Default: 75, which is also nginx's default.
  package var keepaliveSeconds = 75
  /// The maximum number of concurrent streams of an HTTP/2 connection. Default: 2,000.
  package var concurrentStreams = 2000
  /// The maximum number of open connections. The connections between nginx and its own backend count too, at
  /// both ends. Default: 4,096.
  package var connections = 4096
  /// The TLS versions, as the directive `ssl_protocols` names them. Default: 1.2 and 1.3.
  package var tlsVersions = "TLSv1.2 TLSv1.3"
  /// Additional directives for the `server` block of each listener, such as further `location`s.
  package var directives = ""

  /// Makes settings with the defaults.
  package init() {}
}
