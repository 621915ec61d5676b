import NetOptTestSupport
/// The promises of the `Transport` protocol. Each case is one promise with its check. The checks can run
/// against any transport. The tests run them against the stub transport, which shows that the checks are
/// correct, and against the real transport.
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
  /// A second request to an address uses the connection of the first request.
  case reusesConnections
  /// When a leg fails, the next leg starts at once. The report contains the failure of the failed leg.
  case movesOnFromFailure
  /// When a leg is silent, the next leg starts after the stagger of the silent leg. The report shows the
  /// silent leg as failed or cancelled.
  case movesOnFromSilence
  /// When the first legs of a POST are silent or refused, the POST reaches one server, once.
  case sendsOnce
  /// When the connection of a POST ends without a response, the transport does not send the POST again.
  case doesNotRepeat
  /// An address with a certificate for another name never gets a request. When the plan has no other leg, the
  /// call fails with an error that contains both names.
  case refusesImpostors
  /// When a request turns the verification of certificates off, the transport uses the impostor, and the
  /// response reports that nothing was verified. A request that requires verification does not get that
  /// connection.
  case saysWhenUnverified
  /// When every leg fails, the error reports the failure and the route.
  case reportsFailure
  /// A DNS leg looks the name up, and its addresses become legs.
  case looksNamesUp
  /// When the resolver finds no address for the name, the call fails with `nameNotFound`.
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
  /// When the stream of a request body is shorter or longer than its announced length, the call fails.
  case refusesWrongLengths
  /// Many concurrent requests all get responses.
  case carriesManyRequests
  /// `connect` opens a connection once and reports its timings. Over HTTP/2 it keeps the connection for later
  /// requests.
  case connects
  /// `connect` reports why there is no connection, ends at its time limit, and ends when it is cancelled.
  case reportsFailureToConnect
  /// `shutdown` fails all calls under way. Afterwards the transport refuses every call.
  case shutsDown

  /// Makes a bench and runs the check of this promise on it.
  ///
  /// - Parameter makeBench: makes a bench for this check only. This function shuts the bench's transport down
  ///   and stops the bench.
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

  /// Runs the check of this promise.
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
