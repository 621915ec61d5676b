import NetOptTestSupport
import Glibc
package import NetOptCore

/// A transport with servers of known behaviour. `TransportConformance` uses a bench to check whether the
/// transport keeps its promises. Each check gets its own bench.
package protocol ConformanceBench: Sendable {
  /// The transport. Its resolver returns the `working` and the `refusing` address for `origin.host`, in that
  /// order, and finds no address for `unknownOrigin.host`.
  var transport: any Transport { get }
  /// The `https` origin that the addresses serve.
  var origin: Origin { get }
  /// An origin whose name has no address.
  var unknownOrigin: Origin { get }
  /// The transport's clock.
  var timeSource: any TimeSource { get }
  /// The HTTP version of the requests.
  var version: RequestOptions.Version { get }
  /// The longest time by which a call may end after its deadline or its cancellation.
  var grace: Duration { get }

  /// The address with a behaviour.
  func address(_ behaviour: ConformanceBehaviour) -> IPAddress
  /// The path of a resource, without a query. Every address that takes requests serves it.
  func path(_ resource: ConformanceResource) -> String
  /// The addresses that received requests whose target ends with `mark`, one entry for each request. Called
  /// after the shutdown of the transport.
  ///
  /// - Parameter expected: the expected number of requests. The bench waits until that many have arrived.
  func received(_ mark: String, expected: Int) async throws -> [IPAddress]
  /// Waits until a request for `noAnswer` arrives whose target ends with `mark`.
  func waitForRequest(_ mark: String) async throws
  /// Waits until the transport attempts a connection to the silent address. Counts the attempts since the
  /// last call, or since the bench was made.
  func waitForAttempt() async throws
  /// Stops the servers of the bench.
  func stop() async
}

extension ConformanceBench {
  /// The system's clock.
  package var timeSource: any TimeSource { SystemTimeSource() }
  /// HTTP/2 when the server offers it.
  package var version: RequestOptions.Version { .automatic }
  /// `Duration.callGrace`.
  package var grace: Duration { .callGrace }
}

/// The behaviour of an address of a `ConformanceBench`.
package enum ConformanceBehaviour: String, CaseIterable, Sendable {
  /// Takes requests.
  case working
  /// A second address that takes requests.
  case alsoWorking
  /// Refuses connections.
  case refusing
  /// Accepts TCP connections and never answers the TLS handshake.
  case silent
  /// Presents a certificate for `impostor.example`.
  case impostor
}

/// The resources that the addresses of a `ConformanceBench` serve.
package enum ConformanceResource: String, CaseIterable, Sendable {
  /// 200 with the body `hello` and a line end.
  case small
  /// 200 with the body `TransportConformance.pattern`.
  case pattern
  /// Reads the request body. Answers 200 with the number of its bytes and a line end.
  case upload
  /// Takes the request and never answers.
  case noAnswer
  /// Takes the request and closes the connection or stream before a response.
  case dropped
  /// Answers 200 with the first half of the announced body, then closes the connection or stream.
  case cut
  /// Answers 200 with the first half of the announced body, then sends nothing more.
  case stalled
}

extension Duration {
  /// The longest time by which a call may end after its deadline: 50 ms. Under a sanitizer 500 ms, because a
  /// sanitizer slows a program down about tenfold.
  package static let callGrace = Duration.milliseconds(Sanitizer.isOn ? 500 : 50)
}
