import NetOptTestSupport
/// The promises of the `Transport` protocol, one check for each. They run against any transport: the stub, which
/// shows that the checks hold, and the real one.
///
/// ```swift
/// @Test(arguments: TransportConformance.allCases)
/// func keepsPromise(_ promise: TransportConformance) async throws {
///   try await promise.check { try await MyBench() }
/// }
/// ```
package enum TransportConformance: String, CaseIterable, Sendable {
  /// A request is answered; the response carries its route, the endpoint, timings and how it was secured.
  case answers
  /// A second request to an address is carried by the connection of the first.
  case reusesConnections
  /// A leg that fails makes the next one start at once, and is reported with its failure.
  case movesOnFromFailure
  /// A leg that is silent costs its stagger, and is reported as failed or cancelled.
  case movesOnFromSilence
  /// A POST whose first legs are silent and refused reaches one server, once.
  case sendsOnce
  /// A POST that was sent, and whose connection ended without an answer, is not sent again.
  case doesNotRepeat
  /// An address with a certificate for another name never gets a request; without another leg it is an error that
  /// names both names.
  case refusesImpostors
  /// Without verification the impostor is used, and the response says so.
  case saysWhenUnverified
  /// When every leg fails, the error says why and carries the route.
  case reportsFailure
  /// A leg for DNS leads to the addresses of the name.
  case looksNamesUp
  /// A name without addresses is an error of the look-up.
  case reportsUnknownNames
  /// An address of DNS that the plan has is not tried twice.
  case triesAddressesOnce
  /// A call ends at its deadline: while connecting, while waiting for an answer, in the middle of the body.
  case endsAtDeadline
  /// Cancelling the task ends the call: while connecting, while waiting for an answer, in the middle of the body.
  case endsWhenCancelled
  /// A body that ends early is an error, after the bytes that came.
  case reportsCutBodies
  /// A large body comes in order and whole, and while nobody reads it other requests are answered.
  case keepsBodiesInOrder
  /// Request bodies arrive whole: from memory, and as streams with and without a length.
  case sendsBodies
  /// A stream that is not as long as was announced is an error.
  case refusesWrongLengths
  /// Many requests at once are all answered.
  case carriesManyRequests
  /// `connect` opens a connection once, says what it took, and over HTTP/2 leaves it for the requests to come.
  case connects
  /// `connect` says why there is no connection, keeps its limit, and ends when it is cancelled.
  case reportsFailureToConnect
  /// `shutdown` fails what is under way; from then on every call is refused.
  case shutsDown

  /// Runs the check.
  ///
  /// - Parameter makeBench: makes a bench for this check alone; its transport is shut down and it is stopped.
  /// - Throws: `ConformanceFailure` when the promise was broken; what `makeBench` throws.
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

  /// A body of 2 MB in which every position can be told: numbers of eight bytes, counting from 0, the most significant
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
