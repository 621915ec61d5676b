import NetOpt
import NetOptCore
import NetOptLocking
import NetOptRouting
import NetOptTestSupport
import Testing

/// Tests hedges with a client on a transport without a network. A hedge is a copy of a slow request, which
/// the client sends to another endpoint. The first response with a status that needs no retry wins.
@Suite struct HedgeTests {
  /// Makes a client for a host with two addresses. The first address answers at once until a test makes it
  /// slow. Sends so many requests to it that the client knows the usual latency of the host, without which
  /// the client sends no hedges.
  ///
  /// - Parameter other: the behaviour of the second address.
  private func lab(_ recorder: AttemptRecorder? = nil, other: StubOutcome = .respond(200)) async throws
    -> StubLab
  {
    let lab = try StubLab([.respond(200), other]) { if let recorder { $0.observers = [recorder] } }
    for _ in 0..<LatencyQuantile.leastSamples {
      let response = try await lab.client.execute(try request(lab))
      #expect(response.remote?.address == lab.addresses[0] && response.attempts == 1)
    }
    return lab
  }

  /// A request to the host for which the client may send a hedge.
  private func request(_ lab: StubLab, _ method: NetOptRequest.Method = .get) throws -> NetOptRequest {
    try lab.request(method) { $0.options.hedges = true }
  }

  @Test("a slow request is hedged on another endpoint, whose response wins")
  func slowRequest() async throws {
    let recorder = AttemptRecorder()
    let lab = try await lab(recorder)
    let before = lab.receivers.count
    lab.transport.set(.noAnswer, for: lab.addresses[0])
    let response = try await lab.client.execute(try request(lab))
    #expect(response.status == 200)
    #expect(response.remote?.address == lab.addresses[1])
    #expect(lab.receivers.dropFirst(before).map(\.self) == lab.addresses)
    #expect(response.attempts == 2)
    let other = try #require(response.otherAttempts.first)
    #expect(response.otherAttempts.count == 1)
    #expect(other.number == 1 && other.reason == .first && other.remote?.address == lab.addresses[0])
    if case .overtaken = other.outcome {} else { Issue.record("\(other.outcome)") }
    let hedges = recorder.events.events.count { if case .hedge = $0 { true } else { false } }
    #expect(hedges == 1)
    try await wait(for: "the first copy to end") { lab.transport.openBodies <= 1 }
    await lab.client.shutdown()
  }

  @Test("the first copy of a hedged request can still win")
  func firstCopyWins() async throws {
    let lab = try await lab(other: .noAnswer)
    // The first copy gets its response after 300 ms. The hedge gets none.
    lab.transport.set(.respond(200).taking(answer: .milliseconds(300)), for: lab.addresses[0])
    let response = try await lab.client.execute(try request(lab))
    #expect(response.remote?.address == lab.addresses[0])
    #expect(response.attempts == 2)
    #expect(response.otherAttempts.map(\.reason) == [.hedge])
    #expect(response.otherAttempts.first?.remote?.address == lab.addresses[1])
    await lab.client.shutdown()
  }

  @Test("a hedge that gets 503 does not end the call while the first copy is in flight")
  func failedHedge() async throws {
    let lab = try await lab(other: .respond(503))
    lab.transport.set(.respond(200).taking(answer: .milliseconds(300)), for: lab.addresses[0])
    let response = try await lab.client.execute(try request(lab))
    #expect(response.status == 200)
    #expect(response.remote?.address == lab.addresses[0])
    if case .answered(503) = response.otherAttempts.first?.outcome {} else { Issue.record("503") }
    await lab.client.shutdown()
  }

  @Test("a pinned request is not hedged")
  func pinnedRequest() async throws {
    let lab = try StubLab([.respond(200)]) { $0.list = .none }
    for _ in 0..<LatencyQuantile.leastSamples {
      _ = try await lab.client.execute(try request(pinned: lab))
    }
    lab.transport.set(.respond(200).taking(answer: .milliseconds(100)), for: lab.addresses[0])
    let response = try await lab.client.execute(try request(pinned: lab))
    #expect(response.attempts == 1 && response.otherAttempts.isEmpty)
    await lab.client.shutdown()
  }

  /// A request that may go only to the first address. The client could send a hedge for it otherwise.
  private func request(pinned lab: StubLab) throws -> NetOptRequest {
    var request = try request(lab)
    request.options.routing = .pinned(lab.addresses[0])
    return request
  }

  @Test("a request without hedges, a POST, or a request with one attempt is not hedged")
  func unhedgedRequests() async throws {
    let lab = try await lab()
    lab.transport.set(.respond(200).taking(answer: .milliseconds(100)), for: lab.addresses[0])
    let before = lab.receivers.count
    var single = try request(lab)
    single.options.maxAttempts = 1
    for request in [try lab.request(), try request(lab, .post), single] {
      let response = try await lab.client.execute(request)
      #expect(response.attempts == 1 && response.otherAttempts.isEmpty)
    }
    #expect(lab.receivers.count == before + 3)
    await lab.client.shutdown()
  }

  @Test("the retry budget limits the hedges of a client")
  func hedgeBudget() async throws {
    let lab = try await lab(other: .noAnswer)
    lab.transport.set(.respond(200).taking(answer: .milliseconds(10)), for: lab.addresses[0])
    let before = lab.receivers.count
    let start = SystemTimeSource().now()
    let calls = 100
    for _ in 0..<calls { _ = try await lab.client.execute(try request(lab)) }
    let seconds = Double((SystemTimeSource().now() - start).nanoseconds) / 1e9
    // The limit of `RetryBudget`: one hedge for every five calls, and 10 a second.
    let bound = Double(calls + LatencyQuantile.leastSamples) * 0.2 + 10 * (seconds + 1)
    #expect(Double(lab.receivers.count - before - calls) <= bound)
    await lab.client.shutdown()
  }

  @Test("cancelling a hedged call ends it with one other attempt in the error")
  func cancelledCall() async throws {
    let recorder = AttemptRecorder()
    let lab = try await lab(recorder, other: .noAnswer)
    lab.transport.set(.noAnswer, for: lab.addresses[0])
    let request = try request(lab)
    let before = lab.receivers.count
    let call = Task { try await lab.client.execute(request) }
    try await wait(for: "both copies") { lab.receivers.count == before + 2 }
    call.cancel()
    let error = await #expect(throws: NetOptError.self) { _ = try await call.value }
    #expect(error?.code == .cancelled)
    #expect(error?.otherAttempts.count == 1)
    await lab.client.shutdown()
  }
}
