import NetOptTestSupport
import Glibc
package import NetOptCore

/// A transport, and servers whose behaviour is known. `TransportConformance` uses the servers to check
/// whether the transport keeps the promises of the `Transport` protocol. Each check gets its own bench.
package protocol ConformanceBench: Sendable {
  /// The transport to check. Its resolver returns two addresses for `origin.host`: the `working` address,
  /// then the `refusing` one. It finds no address for `unknownOrigin.host`.
  var transport: any Transport { get }
  /// The `https` origin of the checks. The addresses are servers of this origin.
  var origin: Origin { get }
  /// An origin whose host has no address in the resolver.
  var unknownOrigin: Origin { get }
  /// The transport's clock.
  var timeSource: any TimeSource { get }
  /// The HTTP version of the requests.
  var version: RequestOptions.Version { get }
  /// The tolerance for the end of a call: how much earlier or later than its deadline, or its cancellation,
  /// the call may end.
  var grace: Duration { get }

  /// The address that behaves in a given way.
  func address(_ behaviour: ConformanceBehaviour) -> IPAddress
  /// The path of a resource, without a query. Every address that takes requests serves all resources.
  func path(_ resource: ConformanceResource) -> String
  /// Returns the addresses that received requests whose target ends with `mark`, one entry for each request.
  /// The checks call this after the shutdown of the transport.
  ///
  /// - Parameter expected: the expected number of requests. A bench with real servers waits until so many are
  ///   in the log.
  func received(_ mark: String, expected: Int) async throws -> [IPAddress]
  /// Waits until a request for `noAnswer` arrives whose target ends with `mark`.
  func waitForRequest(_ mark: String) async throws
  /// Waits until the transport has attempted a connection to the `silent` address since the last call of this
  /// function, or since the bench was made.
  func waitForAttempt() async throws
  /// Stops the servers of the bench.
  func stop() async
}

extension ConformanceBench {
  /// Default: the system's clock.
  package var timeSource: any TimeSource { SystemTimeSource() }
  /// Default: HTTP/2 when the server offers it.
  package var version: RequestOptions.Version { .automatic }
  /// Default: `Duration.callGrace`.
  package var grace: Duration { .callGrace }
}

/// How the server at an address of a `ConformanceBench` behaves. There is one address for each case.
package enum ConformanceBehaviour: String, CaseIterable, Sendable {
  /// Accepts connections and serves requests.
  case working
  /// Behaves like `working`, at another address.
  case alsoWorking
  /// Refuses connections.
  case refusing
  /// Accepts TCP connections and never answers the TLS handshake.
  case silent
  /// Serves requests, but presents a certificate for `impostor.example` instead of the origin's host.
  case impostor
}

/// The resources that the addresses of a `ConformanceBench` serve.
package enum ConformanceResource: String, CaseIterable, Sendable {
  /// The server answers 200 with the body `hello` and a line end, 6 bytes.
  case small
  /// The server answers 200 with the body `TransportConformance.pattern`.
  case pattern
  /// The server reads the request body, and answers 200 with the number of its bytes and a line end.
  case upload
  /// The server takes the request and never answers.
  case noAnswer
  /// The server takes the request, and closes the connection or stream before a response.
  case dropped
  /// The server answers 200 with only a part of the body, then closes the connection or stream.
  case cut
  /// The server answers 200 with only a part of the body, then sends nothing more.
  case stalled
}

extension Duration {
  /// The tolerance for the end of a call after its deadline: 50 ms. Under a sanitizer it is 500 ms, because a
  /// sanitizer slows a program down about tenfold.
  package static let callGrace = Duration.milliseconds(Sanitizer.isOn ? 500 : 50)
}
