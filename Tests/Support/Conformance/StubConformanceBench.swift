import NetOptTestSupport
package import NetOptCore
import Synchronization

/// A bench with a `StubTransport`, which plays the servers itself.
package final class StubConformanceBench: ConformanceBench {
  /// `https://conformance.example`.
  package let origin = Origin(.https, host: "conformance.example")
  /// `https://unknown.example`.
  package let unknownOrigin = Origin(.https, host: "unknown.example")
  /// The HTTP version of the requests.
  package let version: RequestOptions.Version

  /// The transport to check.
  private let stub: StubTransport
  /// The number of attempts to connect to the silent address that `waitForAttempt` has already counted.
  private let attempts = Atomic(0)

  /// Makes a bench. `version` is the HTTP version of the requests.
  package init(version: RequestOptions.Version = .automatic) {
    self.version = version
    let serving = StubOutcome.answer { request, body in Self.answer(request, body) }
      .taking(connect: .milliseconds(1), tls: .milliseconds(1))
    let script: [ConformanceBehaviour: StubOutcome] = [
      .working: serving, .alsoWorking: serving, .refusing: .refuse, .silent: .silentTLS,
      .impostor: .certificate(names: ["impostor.example"]),
    ]
    stub = StubTransport(
      Dictionary(uniqueKeysWithValues: script.map { (Self.address($0.key), $0.value) }),
      resolver: StubResolver(origin.host, [Self.address(.working), Self.address(.refusing)]))
  }

  /// The transport to check.
  package var transport: any Transport { stub }

  /// The address that behaves in a given way, from 192.0.2.0/24.
  package func address(_ behaviour: ConformanceBehaviour) -> IPAddress { Self.address(behaviour) }

  /// The path of a resource: its name.
  package func path(_ resource: ConformanceResource) -> String { "/\(resource.rawValue)" }

  /// The addresses of the requests that the stub has recorded. Does not wait for `expected` requests.
  package func received(_ mark: String, expected: Int) async throws -> [IPAddress] {
    stub.received.filter { $0.request.url.target.hasSuffix(mark) }.compactMap(\.address)
  }

  /// Waits until the stub receives the request.
  package func waitForRequest(_ mark: String) async throws {
    try await wait(for: "a request with the mark \(mark)") {
      stub.received.contains { $0.request.url.target.hasSuffix(mark) }
    }
  }

  /// Waits until the stub has made a further attempt to connect to the `silent` address.
  package func waitForAttempt() async throws {
    let silent = Self.address(.silent)
    let known = attempts.load(ordering: .relaxed)
    var count = known
    try await wait(for: "an attempt to connect to \(silent)") {
      count = stub.opened.filter { $0 == silent }.count
      return count > known
    }
    attempts.store(count, ordering: .relaxed)
  }

  /// Does nothing: the bench has no servers.
  package func stop() async {}

  /// The address of a behaviour: 192.0.2.1 for the first case, and so on.
  private static func address(_ behaviour: ConformanceBehaviour) -> IPAddress {
    let number = ConformanceBehaviour.allCases.firstIndex(of: behaviour) ?? 0
    return IPAddress(v4: 0xc000_0201 + UInt32(number))
  }

  /// The answer of a server to a request with this body. The path of the request names the resource.
  private static func answer(_ request: NetOptRequest, _ body: [UInt8]) -> StubAnswer {
    switch ConformanceResource(rawValue: String(request.url.path.dropFirst())) {
    case .small: .response(StubResponse(body: Array("hello\n".utf8)))
    case .upload: .response(StubResponse(body: Array("\(body.count)\n".utf8)))
    case .pattern:
      .response(
        StubResponse { index in
          let chunk = TransportConformance.pattern.dropFirst(index * 65_536).prefix(65_536)
          return chunk.isEmpty ? nil : Array(chunk)
        })
    case .noAnswer: .silence
    case .dropped: .reset
    case .cut: .response(StubResponse(body: Array("half".utf8), end: .cut))
    case .stalled: .response(StubResponse(body: Array("half".utf8), end: .stalled))
    case nil: .response(StubResponse(404))
    }
  }
}
