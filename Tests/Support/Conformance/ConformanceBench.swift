import NetOptTestSupport
import Glibc
package import NetOptCore

/// A transport and a small world around it that is known to behave in certain ways: what `TransportConformance` needs
/// to see whether the transport keeps its promises. Each check gets a bench of its own.
package protocol ConformanceBench: Sendable {
  /// The transport. It finds `origin.host` at the addresses that are `working` and `refusing`, in that order, and
  /// `unknownOrigin.host` not at all.
  var transport: any Transport { get }
  /// The `https` origin that the addresses serve.
  var origin: Origin { get }
  /// An origin of which the resolver knows no address.
  var unknownOrigin: Origin { get }
  /// The transport's clock.
  var timeSource: any TimeSource { get }
  /// The version of HTTP that requests ask for.
  var version: RequestOptions.Version { get }
  /// By how much a call may outlast its deadline, or a cancellation.
  var grace: Duration { get }

  /// The address that behaves in a certain way.
  func address(_ behaviour: ConformanceBehaviour) -> IPAddress
  /// The path of a resource, which every address that takes requests serves; it has no query.
  func path(_ resource: ConformanceResource) -> String
  /// The addresses at which requests arrived whose target ends with `mark`, one for each request. Asked when the
  /// transport has been shut down.
  ///
  /// - Parameter expected: how many there should be. When there are fewer, they are waited for.
  func received(_ mark: String, expected: Int) async throws -> [IPAddress]
  /// Waits until a request for `noAnswer` whose target ends with `mark` has arrived.
  func waitForRequest(_ mark: String) async throws
  /// Waits until a connection to the silent address was attempted since the bench was made or this was last asked.
  func waitForAttempt() async throws
  /// Ends what belongs to the bench.
  func stop() async
}

extension ConformanceBench {
  /// The system's clock.
  package var timeSource: any TimeSource { SystemTimeSource() }
  /// HTTP/2 when it is offered.
  package var version: RequestOptions.Version { .automatic }
  /// `Duration.callGrace`.
  package var grace: Duration { .callGrace }
}

/// How an address of a `ConformanceBench` behaves.
package enum ConformanceBehaviour: String, CaseIterable, Sendable {
  /// It takes requests.
  case working
  /// It takes requests as well.
  case alsoWorking
  /// It refuses connections.
  case refusing
  /// It accepts TCP connections and does not answer in TLS.
  case silent
  /// Its certificate is for `impostor.example`.
  case impostor
}

/// What the addresses of a `ConformanceBench` serve.
package enum ConformanceResource: String, CaseIterable, Sendable {
  /// 200 with the body `hello` and a line end.
  case small
  /// 200 with `TransportConformance.pattern` as its body.
  case pattern
  /// Reads the request's body and answers 200 with the number of its bytes as the body, and a line end.
  case upload
  /// Takes the request and answers nothing.
  case noAnswer
  /// Takes the request and ends connection or stream before an answer.
  case dropped
  /// Answers 200 and the first half of the body that it announces, and ends connection or stream.
  case cut
  /// Answers 200 and the first half of the body that it announces, and then nothing.
  case stalled
}

extension Duration {
  /// By how much a call may outlast its deadline: 50 ms. Under a sanitizer ten times that, for it slows a program down
  /// about as much.
  package static let callGrace = Duration.milliseconds(Sanitizer.isOn ? 500 : 50)
}
