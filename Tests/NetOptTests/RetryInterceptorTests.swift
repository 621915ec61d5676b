import NetOpt
import NetOptCore
import NetOptLocking
import NetOptRouting
import NetOptTestSupport
import Testing

/// Tests retries with a client on a transport without a network.
@Suite struct RetryInterceptorTests {
  /// The status of the response that an attempt got; `nil` when it got none.
  private func status(of report: AttemptReport) -> Int? {
    if case .answered(let status) = report.outcome { status } else { nil }
  }

  @Test("a GET whose connection is reset is retried on another endpoint, and the response reports both")
  func failedConnection() async throws {
    let lab = try StubLab([.resetAfterSend, .respond(200)])
    let response = try await lab.client.execute(try lab.request())
    #expect(response.status == 200)
    #expect(response.attempts == 2)
    #expect(lab.receivers == lab.addresses)
    #expect(response.remote?.address == lab.addresses[1])
    let other = try #require(response.otherAttempts.first)
    #expect(response.otherAttempts.count == 1)
    #expect(other.number == 1 && other.reason == .first && other.sends == 1)
    #expect(other.remote?.address == lab.addresses[0])
    #expect(other.route?.winner?.address == lab.addresses[0])
    #expect(other.ended >= other.started)
    if case .failed(let error) = other.outcome {
      #expect(error.code == .sendFailed)
    } else {
      Issue.record("failed")
    }
    await lab.client.shutdown()
  }

  @Test("a GET that gets 502, 503 or 504 is retried on other endpoints", arguments: [502, 503, 504])
  func serverErrors(_ status: Int) async throws {
    let lab = try StubLab([.respond(status, body: [1, 2, 3]), .respond(status), .respond(200)])
    let response = try await lab.client.execute(try lab.request())
    #expect(response.status == 200)
    #expect(response.attempts == 3)
    #expect(lab.receivers == lab.addresses)
    #expect(response.otherAttempts.map { self.status(of: $0) } == [status, status])
    #expect(response.otherAttempts.map(\.number) == [1, 2])
    #expect(response.otherAttempts.map(\.reason) == [.first, .retry])
    #expect(lab.transport.openBodies == 1, "the bodies of answers that were thrown away are let go of")
    await lab.client.shutdown()
  }

  @Test("when all attempts get 503, the call returns the last response")
  func lastResponse() async throws {
    let lab = try StubLab([.respond(503, body: Array("busy".utf8))])
    let response = try await lab.client.execute(try lab.request())
    #expect(response.status == 503)
    #expect(try await response.body.collect(upTo: 10) == Array("busy".utf8))
    #expect(response.attempts == 3)
    #expect(response.otherAttempts.count == 2)
    await lab.client.shutdown()
  }

  @Test("when all attempts fail, the call throws the last error with the other attempts")
  func lastError() async throws {
    let recorder = AttemptRecorder()
    let lab = try StubLab([.resetAfterSend, .resetAfterSend]) { $0.observers = [recorder] }
    let request = try lab.request()
    let error = await #expect(throws: NetOptError.self) { _ = try await lab.client.execute(request) }
    #expect(error?.code == .sendFailed)
    #expect(error?.otherAttempts.count == 2)
    #expect(lab.receivers.count == 3)
    let events = recorder.events.events
    #expect(events.count == 3)
    if case .retry(let report, let delay) = events.first {
      #expect(report.number == 1 && delay == .zero)
    } else {
      Issue.record("the first event is a retry")
    }
    if case .failed(let told) = events.last {
      #expect(told.otherAttempts.count == 2)
    } else {
      Issue.record("no end")
    }
    await lab.client.shutdown()
  }

  @Test(
    "a POST without an Idempotency-Key and a streamed PUT are sent once",
    arguments: [
      StubOutcome.resetAfterSend, .respond(503), .respond(421), .respond(503, fields: ["Retry-After": "0"]),
    ])
  func postIsSentOnce(_ outcome: StubOutcome) async throws {
    let lab = try StubLab([outcome, outcome])
    let post = try lab.request(.post) { $0.body = .text("once") }
    let status = try? await lab.client.execute(post).status
    #expect(status != 200)
    #expect(lab.receivers.count == 1)
    // A POST with an `Idempotency-Key` may be repeated.
    let keyed = try lab.request(.post) { $0.headers["Idempotency-Key"] = "1" }
    _ = try? await lab.client.execute(keyed)
    #expect(lab.receivers.count > 2)
    let before = lab.receivers.count
    let stream = try lab.request(.put) { $0.body = .stream(AsyncStream<[UInt8]> { $0.finish() }) }
    _ = try? await lab.client.execute(stream)
    #expect(lab.receivers.count == before + 1)
    await lab.client.shutdown()
  }

  @Test("a request with maxAttempts 1 or 0 is not retried", arguments: [1, 0])
  func retriesOff(_ most: Int) async throws {
    let lab = try StubLab([.respond(503), .respond(200)])
    let response = try await lab.client.execute(try lab.request { $0.options.maxAttempts = most })
    #expect(response.status == 503 && response.otherAttempts.isEmpty)
    #expect(lab.receivers.count == 1)
    await lab.client.shutdown()
  }

  @Test("a GET that gets 421 is retried once over a fresh connection")
  func misdirected() async throws {
    let lab = try StubLab([.respond(421)])
    let response = try await lab.client.execute(try lab.request())
    #expect(response.status == 421 && response.attempts == 2)
    #expect(lab.transport.opened.count == 2)
    #expect(lab.transport.received.last?.request.options.connection == .fresh)
    await lab.client.shutdown()
  }

  @Test("retries in a total outage stay within 20 % of the calls plus 10 a second")
  func totalOutage() async throws {
    let lab = try StubLab([.respond(503), .resetAfterSend])
    let start = SystemTimeSource().now()
    let calls = 400
    await withTaskGroup { group in
      for _ in 0..<calls { group.addTask { _ = try? await lab.client.execute(try lab.request()) } }
    }
    let seconds = Double((SystemTimeSource().now() - start).nanoseconds) / 1e9
    let sent = Double(lab.receivers.count)
    #expect(sent > Double(calls) * 1.15)
    #expect(sent <= Double(calls) * 1.2 + 10 * (seconds + 1))
    await lab.client.shutdown()
  }

  /// 20 calls fail at once. The retry budget allows 14 retries at once: 10 free ones, and 4 for which the
  /// calls pay. The other 6 calls wait for free retries, which come every 0.1 s.
  @Test("a burst of failures waits for the retry budget, and each call succeeds at its second attempt")
  func burstOfFailures() async throws {
    // The targets whose first request was reset.
    let failed = Locked(Set<String>())
    let lab = try StubLab([
      .answer { request, _ in
        failed.withLock { $0.insert(request.url.target).inserted } ? .reset : .response(StubResponse(200))
      }
    ])
    try await withThrowingTaskGroup { group in
      for index in 0..<20 {
        var request = try lab.request()
        request.url = try HTTPURL("https://\(StubLab.host)/\(index)")
        let call = request
        group.addTask { try await lab.client.execute(call) }
      }
      for try await response in group {
        #expect(response.status == 200 && response.attempts == 2)
      }
    }
    #expect(lab.receivers.count == 40)
    await lab.client.shutdown()
  }

  @Test("an error says that the client's retry budget is used up")
  func usedUpBudget() async throws {
    let lab = try StubLab([.resetAfterSend])
    let request = try lab.request()
    let messages = await withTaskGroup(of: String?.self) { group in
      for _ in 0..<100 {
        group.addTask {
          do throws(NetOptError) {
            _ = try await lab.client.execute(request)
            return nil
          } catch { return error.message }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(messages.allSatisfy { $0 != nil })
    #expect(
      messages.contains {
        $0?.contains("the client's budget for retries is used up (10 a second") == true
      })
    await lab.client.shutdown()
  }

  @Test("an error gives the time left and the time that another attempt takes")
  func noTimeLeft() async throws {
    // Each connection takes 400 ms, which the probe below measures. So after the first attempt less than 400
    // ms of 700 ms are left.
    let slow = StubOutcome.resetAfterSend.taking(connect: .milliseconds(400))
    let lab = try StubLab([slow, slow]) { $0.probing.budget = .seconds(20) }
    _ = try await lab.client.probe()
    let request = try lab.request { $0.options.timeout = .milliseconds(700) }
    let error = await #expect(throws: NetOptError.self) { _ = try await lab.client.execute(request) }
    let message = try #require(error?.message)
    #expect(
      message.contains(
        /the request was not sent again, because [0-9.]+ ms were left before the deadline, and another attempt takes 4[0-9.]+ ms at least$/
      ), "\(message)")
    #expect(lab.receivers.count == 1)
    await lab.client.shutdown()
  }

  /// An endpoint that failed recently has a penalty of 10 s in its score. The retry policy must not take this
  /// penalty for the time that an attempt needs. Otherwise it would find no time for a retry before the
  /// deadline.
  @Test("the penalty of a failed endpoint does not prevent retries before the deadline")
  func penaltyIsNotTime() async throws {
    let lab = try StubLab([.refuse, .resetAfterSend])
    let short = try lab.request { $0.options.timeout = .seconds(3) }
    for _ in 0..<2 {
      let error = await #expect(throws: NetOptError.self) { _ = try await lab.client.execute(short) }
      #expect(error?.message.contains("deadline") == false, "\(error?.message ?? "")")
      #expect(error?.otherAttempts.count == 2)
    }
    await lab.client.shutdown()
  }

  /// After a response with `Retry-After`, the endpoint gets no requests for the time that it asked for. The
  /// plans of later requests give this reason.
  @Test("an endpoint that sent Retry-After gets no requests, and the route gives the reason")
  func restingEndpoint() async throws {
    let lab = try StubLab([.respond(503, fields: ["Retry-After": "60"]), .respond(200)])
    let once = try lab.request { $0.options.maxAttempts = 1 }
    #expect(try await lab.client.execute(once).status == 503)
    let next = try await lab.client.execute(once)
    #expect(next.status == 200)
    #expect(lab.receivers == lab.addresses)
    let rested = try #require(next.route.plan.candidates.first { $0.address == lab.addresses[0] })
    #expect(rested.excluded == .resting(for: .seconds(60), last: LegFailure(.other, "it answered 503")))
    #expect(next.route.plan.candidates.first { $0.address == lab.addresses[1] }?.excluded == nil)
    await lab.client.shutdown()
  }

  @Test("cancelling a call ends its wait for Retry-After")
  func cancelledWait() async throws {
    let recorder = AttemptRecorder()
    let lab = try StubLab([.respond(503, fields: ["Retry-After": "9"])]) { $0.observers = [recorder] }
    let request = try lab.request()
    let call = Task { try await lab.client.execute(request) }
    try await recorder.events.wait(for: "the wait") { !$0.isEmpty }
    let start = SystemTimeSource().now()
    call.cancel()
    let error = await #expect(throws: NetOptError.self) { _ = try await call.value }
    #expect(error?.code == .cancelled)
    #expect(error?.otherAttempts.count == 1)
    #expect(error?.route != nil)
    #expect(SystemTimeSource().now() - start < .seconds(5))
    #expect(lab.receivers.count == 1)
    #expect(lab.transport.openBodies == 0)
    await lab.client.shutdown()
  }

  @Test("a shutdown ends a call's wait for Retry-After")
  func shutdownDuringWait() async throws {
    let recorder = AttemptRecorder()
    let lab = try StubLab([.respond(503, fields: ["Retry-After": "9"])]) { $0.observers = [recorder] }
    let request = try lab.request()
    let call = Task { try await lab.client.execute(request) }
    try await recorder.events.wait(for: "the wait") { !$0.isEmpty }
    let start = SystemTimeSource().now()
    await lab.client.shutdown()
    let error = await #expect(throws: NetOptError.self) { _ = try await call.value }
    #expect(error?.code == .shutDown)
    #expect(SystemTimeSource().now() - start < .seconds(5))
  }

  @Test("a call does not wait for a Retry-After that passes its deadline")
  func waitPastDeadline() async throws {
    let lab = try StubLab([.respond(503, fields: ["Retry-After": "5"])])
    let start = SystemTimeSource().now()
    let response = try await lab.client.execute(try lab.request { $0.options.timeout = .seconds(4) })
    #expect(response.status == 503 && response.otherAttempts.isEmpty)
    #expect(SystemTimeSource().now() - start < .seconds(3))
    await lab.client.shutdown()
  }

  @Test("the deadline of a call covers all of its attempts")
  func deadlineOfAllAttempts() async throws {
    let lab = try StubLab([.respond(503), .noAnswer])
    let start = SystemTimeSource().now()
    let request = try lab.request { $0.options.timeout = .milliseconds(400) }
    let error = await #expect(throws: NetOptError.self) { _ = try await lab.client.execute(request) }
    #expect(error?.code == .timeout)
    #expect(error?.otherAttempts.count == 1)
    #expect(SystemTimeSource().now() - start < .seconds(2))
    await lab.client.shutdown()
  }

  /// Each hop of a redirected call has its own retries, as if it were a separate call.
  @Test("a client retries the target of a redirect, not the redirect")
  func redirectAndRetry() async throws {
    let lab = try StubLab([
      .answer { request, _ in
        .response(
          request.url.target == "/" ? StubResponse(302, fields: ["Location": "/next"]) : StubResponse(503))
      }, .respond(200),
    ])
    let response = try await lab.client.execute(try lab.request())
    #expect(response.status == 200 && response.attempts == 2)
    #expect(lab.transport.received.map(\.request.url.target) == ["/", "/next", "/next"])
    await lab.client.shutdown()
  }
}
