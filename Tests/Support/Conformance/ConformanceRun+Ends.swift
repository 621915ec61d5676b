import NetOptTestSupport
import NetOptCore

// The checks of the ends of calls, of `connect` and of `shutdown`. `TransportConformance` describes the
// promise that each method checks.

extension ConformanceRun {
  func endsAtDeadline() async throws {
    let limit = Duration.milliseconds(300)
    for (behaviour, resource) in [
      (ConformanceBehaviour.silent, ConformanceResource.small), (.working, .noAnswer),
    ] {
      let start = bench.timeSource.now()
      let error = try await failure(of: try request(.get, resource), along: plan(behaviour), limit: limit)
      try requireEnd(
        at: start + limit, "the call to a \(behaviour.rawValue) address for \(resource.rawValue)")
      try require(error.code, equals: .timeout, "the code")
      try require(
        try route(error).legs.map(\.address), equals: [bench.address(behaviour)], "the legs' addresses")
    }
    let start = bench.timeSource.now()
    let response = try await call(try request(.get, .stalled), along: plan(.working), limit: limit)
    let (bytes, error) = try await failure(of: response.body)
    try requireEnd(at: start + limit, "the body that stalls")
    try require(error.code, equals: .timeout, "the body's code")
    try require(bytes > 0, "nothing of the body came")
  }

  func endsWhenCancelled() async throws {
    for (behaviour, resource) in [
      (ConformanceBehaviour.silent, ConformanceResource.small), (.working, .noAnswer),
    ] {
      let request = try request(.get, resource, mark: "cancelled")
      let task = Task(executorPreference: thread) { try await failure(of: request, along: plan(behaviour)) }
      if behaviour == .silent {
        try await bench.waitForAttempt()
      } else {
        try await bench.waitForRequest("cancelled")
      }
      let start = bench.timeSource.now()
      task.cancel()
      let error = try await task.value
      try requireEnd(
        at: start, "the cancelled call to a \(behaviour.rawValue) address for \(resource.rawValue)")
      try require(error.code, equals: .cancelled, "the code")
      try require(try route(error).plan.legs.count, equals: 1, "the number of legs of the plan")
    }
    let response = try await call(try request(.get, .stalled), along: plan(.working))
    let firstChunk = Latch()
    let task = Task(executorPreference: thread) {
      var iterator = response.body.makeAsyncIterator()
      do throws(NetOptError) {
        while try await iterator.next() != nil { firstChunk.open() }
        return NetOptError?.none
      } catch {
        return error
      }
    }
    try await firstChunk.wait()
    let start = bench.timeSource.now()
    task.cancel()
    let error = await task.value
    try requireEnd(at: start, "the body whose reader was cancelled")
    try require(error?.code, equals: .cancelled, "the body's code")
  }

  func connects() async throws {
    let (address, origin) = (bench.address(.working), bench.origin)
    let endpoint = IPEndpoint(address, port: origin.port)
    let first = try await bench.transport.connect(to: endpoint, of: origin, within: .seconds(30), keep: true)
    try require(!first.reused, "the first connection counts as reused")
    try require(first.tls != nil, "the report has no time of TLS")
    guard multiplexes else { return }
    let second = try await bench.transport.connect(to: endpoint, of: origin, within: .seconds(30), keep: true)
    try require(second.reused, "the second one opened a connection")
    let response = try await call(try request(mark: "connected"), along: plan(.working))
    try require(response.reused, "the request opened a connection")
    _ = try await response.body.collect(upTo: 100)
    try require(await received("connected", expected: 1), equals: [address], "where requests arrived")
  }

  func reportsFailureToConnect() async throws {
    let refused = try await failureToConnect(.refusing, within: .seconds(30))
    try require(refused.failure.kind, equals: .refused, "the failure of a refused connection")
    try require(!refused.isInconclusive, "a refused connection counts as cancelled")
    let impostor = try await failureToConnect(.impostor, within: .seconds(30))
    try require(
      impostor.failure.kind, equals: .certificateName(presented: ["impostor.example"]),
      "the failure with a certificate for another name")

    let limit = Duration.milliseconds(200)
    let start = bench.timeSource.now()
    let silent = try await failureToConnect(.silent, within: limit)
    try requireEnd(at: start + limit, "the attempt to connect to a silent address")
    try require(silent.failure.kind, equals: .tlsTimeout, "the failure of a silent address")

    try await bench.waitForAttempt()
    let task = Task(executorPreference: thread) { try await failureToConnect(.silent, within: .seconds(30)) }
    try await bench.waitForAttempt()
    let cancelled = bench.timeSource.now()
    task.cancel()
    let error = try await task.value
    try requireEnd(at: cancelled, "the cancelled attempt")
    try require(error.isInconclusive, "the cancelled attempt does not count as cancelled: \(error.failure)")
  }

  func shutsDown() async throws {
    let waiting = try request(.get, .noAnswer, mark: "waiting")
    let call = Task(executorPreference: thread) { try await failure(of: waiting, along: plan(.working)) }
    try await bench.waitForRequest("waiting")
    let body = try await self.call(try request(.get, .stalled), along: plan(.working)).body
    let start = bench.timeSource.now()
    await bench.transport.shutdown()
    try require(try route(try await call.value).plan.legs.count, equals: 1, "the number of legs of the plan")
    _ = try await failure(of: body)
    try require(bench.timeSource.now() - start < .seconds(5), "shutdown took until something else ended it")

    let refused = try await failure(of: try request(), along: plan(.working))
    try require(refused.code, equals: .shutDown, "the code of a call after shutdown")
    _ = try await failureToConnect(.working, within: .seconds(30))
    await bench.transport.shutdown()
  }

  /// Calls `connect` of the transport, which must fail, and returns its error. Throws a `ConformanceFailure`
  /// if a connection is ready within the limit.
  private func failureToConnect(
    _ behaviour: ConformanceBehaviour, within limit: Duration
  ) async throws -> LegError {
    let endpoint = IPEndpoint(bench.address(behaviour), port: bench.origin.port)
    do throws(LegError) {
      _ = try await bench.transport.connect(to: endpoint, of: bench.origin, within: limit, keep: true)
    } catch {
      return error
    }
    throw ConformanceFailure("a connection to the \(behaviour.rawValue) address came about")
  }

  /// Throws a `ConformanceFailure` unless the current time differs from `due` by at most the bench's `grace`.
  /// The caller calls this right after the end that it checks, which `what` names in the message.
  private func requireEnd(at due: MonotonicInstant, _ what: String) throws {
    let late = bench.timeSource.now() - due
    try require(late >= .zero - bench.grace, "\(what) ended \(.zero - late) early")
    try require(late <= bench.grace, "\(what) ended \(late) late")
  }
}
