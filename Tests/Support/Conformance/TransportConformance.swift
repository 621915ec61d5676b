import NetOptTestSupport
/// The promises of the `Transport` protocol, with one check for each. The checks run against any transport:
/// against the stub, which shows that the checks are correct, and against the real transport.
///
/// ```swift
/// @Test(arguments: TransportConformance.allCases)
/// func keepsPromise(_ promise: TransportConformance) async throws {
///   try await promise.check { try await MyBench() }
/// }
/// ```
package enum TransportConformance: String, CaseIterable, Sendable {
  /// A request gets a response. The response reports its route, its endpoint, its timings and its security.
  case answers
  /// A second request to an address uses the connection of the first.
  case reusesConnections
  /// When a leg fails, the next leg starts at once. The report contains the failure of the failed leg.
  case movesOnFromFailure
  /// A silent leg delays the next leg by the stagger. The report shows the silent leg as failed or cancelled.
  case movesOnFromSilence
  /// A POST whose first legs are silent or refused reaches one server, once.
  case sendsOnce
  /// The transport does not repeat a POST that was sent and whose connection ended without a response.
  case doesNotRepeat
  /// An address with a certificate for another name never gets a request. When the plan has no other leg, the
  /// call fails with an error that contains both names.
  case refusesImpostors
  /// Without verification, the transport uses the impostor, and the response reports the missing
  /// verification.
  case saysWhenUnverified
  /// When every leg fails, the error reports the reason and the route.
  case reportsFailure
  /// A leg for DNS resolves the name and leads to its addresses.
  case looksNamesUp
  /// A name without addresses is a resolver error.
  case reportsUnknownNames
  /// When DNS returns an address that the plan already contains, the transport does not try it twice.
  case triesAddressesOnce
  /// A call ends at its deadline: while it connects, while it waits for a response, and in the middle of the
  /// body.
  case endsAtDeadline
  /// Cancelling the task ends the call: while it connects, while it waits for a response, and in the middle
  /// of the body.
  case endsWhenCancelled
  /// A body that ends early delivers the received bytes, then an error.
  case reportsCutBodies
  /// A large body arrives complete and in order. While the caller does not read it, other requests get
  /// responses.
  case keepsBodiesInOrder
  /// Request bodies arrive complete: from memory, and as streams with and without a length.
  case sendsBodies
  /// A stream with another length than announced is an error.
  case refusesWrongLengths
  /// Many concurrent requests all get responses.
  case carriesManyRequests
  /// `connect` opens a connection once and reports its timings. Over HTTP/2 it keeps the connection for later
  /// requests.
  case connects
  /// `connect` reports why there is no connection, ends at its time limit, and ends when it is cancelled.
  case reportsFailureToConnect
  /// `shutdown` fails all calls under way. After it, the transport refuses every call.
  case shutsDown

  /// Runs the check.
  ///
  /// - Parameter makeBench: makes a bench for this check only. The check shuts its transport down and stops
  ///   the bench.
  /// - Throws: `ConformanceFailure` when the transport broke the promise; errors of `makeBench`.
  package func check(_ makeBench: () async throws -> any ConformanceBench) async throws {
    let bench = try await makeBench()
    let run = ConformanceRun(bench)
    let result: Result<Void, any Error>
    do {
      result = .success(try await withTaskExecutorPreference(run.thread) { try await perform(run) })
    } catch {
      result = .failure(error)
    }
    await bench.transport.shutdown()
    await bench.stop()
    try result.get()
  }

  /// A body of 2 MB whose bytes identify their position: 64-bit numbers from 0, with the most significant
  /// byte first.
  package static let pattern: [UInt8] = {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(2_000_000)
    for number in UInt64(0)..<250_000 {
      withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
    }
    return bytes
  }()

  private func perform(_ run: ConformanceRun) async throws {
    switch self {
    case .answers: try await run.answers()
    case .reusesConnections: try await run.reusesConnections()
    case .movesOnFromFailure: try await run.movesOnFromFailure()
    case .movesOnFromSilence: try await run.movesOnFromSilence()
    case .sendsOnce: try await run.sendsOnce()
    case .doesNotRepeat: try await run.doesNotRepeat()
    case .refusesImpostors: try await run.refusesImpostors()
    case .saysWhenUnverified: try await run.saysWhenUnverified()
    case .reportsFailure: try await run.reportsFailure()
    case .looksNamesUp: try await run.looksNamesUp()
    case .reportsUnknownNames: try await run.reportsUnknownNames()
    case .triesAddressesOnce: try await run.triesAddressesOnce()
    case .endsAtDeadline: try await run.endsAtDeadline()
    case .endsWhenCancelled: try await run.endsWhenCancelled()
    case .reportsCutBodies: try await run.reportsCutBodies()
    case .keepsBodiesInOrder: try await run.keepsBodiesInOrder()
    case .sendsBodies: try await run.sendsBodies()
    case .refusesWrongLengths: try await run.refusesWrongLengths()
    case .carriesManyRequests: try await run.carriesManyRequests()
    case .connects: try await run.connects()
    case .reportsFailureToConnect: try await run.reportsFailureToConnect()
    case .shutsDown: try await run.shutsDown()
    }
  }
}
