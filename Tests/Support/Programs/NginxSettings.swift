import NetOptTestSupport
/// What can be set about an `NginxOrigin`.
package struct NginxSettings: Sendable {
  /// Whether HTTP/2 is offered over TLS. Default: yes; HTTP/1.1 always is.
  package var http2 = true
  /// How many requests a connection carries before nginx closes it: over HTTP/2 with GOAWAY. Default: 1,000,000.
  package var keepaliveRequests = 1_000_000
  /// How long an idle connection is kept, in seconds. Default: 75, as nginx has it.
  package var keepaliveSeconds = 75
  /// How many streams of an HTTP/2 connection may be open at once. Default: 2,000.
  package var concurrentStreams = 2000
  /// How many connections, both sides of its own proxying counted, it takes. Default: 4,096.
  package var connections = 4096
  /// The versions of TLS. Default: 1.2 and 1.3.
  package var tlsVersions = "TLSv1.2 TLSv1.3"
  /// Directives that are added to each `server` block, such as further `location`s.
  package var directives = ""

  /// Makes the defaults.
  package init() {}
}
