import NetOptTestSupport
import NetOptCore

// The checks of routes: which legs start, which leg sends the request, and what the report says.
// `TransportConformance` describes the promise that each method checks.

extension ConformanceRun {
  func answers() async throws {
    let response = try await call(try request(), along: plan(.working))
    let body = try await response.body.collect(upTo: 100)
    let address = bench.address(.working)
    try require(response.status, equals: 200, "the status")
    try require(String(decoding: body, as: UTF8.self), equals: "hello\n", "the body")
    try require(response.remote, equals: IPEndpoint(address, port: bench.origin.port), "the remote endpoint")
    try require(response.attempts, equals: 1, "the number of attempts")
    try require(!response.reused, "the first connection counts as reused")
    try require(response.tls?.verified, equals: true, "tls.verified")
    try require(response.version, equals: multiplexes ? .http2 : .http1_1, "the version")
    try require(response.route.legs.count, equals: 1, "the number of legs")
    let leg = response.route.legs[0]
    try require(leg.address, equals: address, "the leg's address")
    try require(leg.source, equals: .list, "the leg's source")
    try require(leg.outcome, equals: .won, "the leg's outcome")
    guard let connected = leg.connected, let secured = leg.secured else {
      throw ConformanceFailure("the leg says not when it was connected and secured: \(leg)")
    }
    try require(
      leg.started <= connected && connected <= secured && secured <= leg.ended,
      "the leg's times are not in order: \(leg)")
    let timings = response.timings
    try require(timings.connect > .zero && timings.tls > .zero, "the timings lack connect or tls: \(timings)")
    try require(leg.failure, equals: nil, "the leg's failure")
  }

  func reusesConnections() async throws {
    _ = try await call(try request(), along: plan(.working)).body.collect(upTo: 100)
    let second = try await call(try request(), along: plan(.working))
    _ = try await second.body.collect(upTo: 100)
    try require(second.reused, "the second request was sent on a new connection")
    try require(
      second.timings.connect + second.timings.tls, equals: .zero, "connect + tls of a reused connection")
    try require(second.route.winner?.reused, equals: true, "the leg's reused")
    try require(second.route.winner?.connected, equals: nil, "the leg's connected")
  }

  func movesOnFromFailure() async throws {
    let response = try await call(try request(), along: plan(.refusing, .working))
    try require(response.route.legs.map(\.outcome), equals: [.failed, .won], "the legs' outcomes")
    try require(response.route.legs[0].failure?.kind, equals: .refused, "the first leg's failure")
    try require(response.remote?.address, equals: bench.address(.working), "the remote address")
    try require(response.route.legs[1].started < Self.never, "the second leg waited for its time")
  }

  func movesOnFromSilence() async throws {
    let stagger = Duration.milliseconds(50)
    let response = try await call(try request(), along: plan(.silent, .working, stagger: stagger))
    let legs = response.route.legs
    try require(legs.count, equals: 2, "the number of legs")
    try require(legs[0].outcome == .cancelled || legs[0].outcome == .failed, "the first leg is \(legs[0])")
    try require(legs[1].outcome, equals: .won, "the second leg's outcome")
    try require(legs[1].started - legs[0].started >= stagger, "the second leg did not wait: \(legs[1])")
  }

  func sendsOnce() async throws {
    let plan = plan(.silent, .refusing, .working, .alsoWorking, stagger: .milliseconds(50))
    let response = try await call(
      try request(.post, .upload, mark: "once", body: .text("body")), along: plan)
    try require(response.status, equals: 200, "the status")
    try require(response.remote?.address, equals: bench.address(.working), "the remote address")
    _ = try await response.body.collect(upTo: 100)
    try require(
      await received("once", expected: 1), equals: [bench.address(.working)], "where the request arrived")
  }

  func doesNotRepeat() async throws {
    let error = try await failure(
      of: try request(.post, .dropped, mark: "dropped", body: .text("body")),
      along: plan(.working, .alsoWorking))
    try require(error.code == .sendFailed || error.code == .receiveFailed, "the code is \(error.code)")
    try require(!error.isRetryable, "the error says that a POST may be sent again")
    try require(try route(error).winner?.address, equals: bench.address(.working), "the winner's address")
    try require(
      await received("dropped", expected: 1), equals: [bench.address(.working)], "where the request arrived")
  }

  func refusesImpostors() async throws {
    let impostor = bench.address(.impostor)
    let alone = try await failure(of: try request(mark: "impostor"), along: plan(.impostor))
    try require(alone.code, equals: .certificateName, "the code")
    try require(
      alone.message.contains(bench.origin.host) && alone.message.contains("impostor.example"),
      "the message does not name both names: \(alone.message)")
    try require(alone.endpoint?.address, equals: impostor, "the error's endpoint")
    try require(try route(alone).legs.map(\.outcome), equals: [.failed], "the legs' outcomes")

    let response = try await call(try request(mark: "impostor"), along: plan(.impostor, .working))
    try require(
      response.route.legs[0].failure?.kind, equals: .certificateName(presented: ["impostor.example"]),
      "the first leg's failure")
    _ = try await response.body.collect(upTo: 100)
    try require(
      await received("impostor", expected: 1), equals: [bench.address(.working)], "where requests arrived")
  }

  func saysWhenUnverified() async throws {
    var request = try request()
    request.options.verification = .none
    let response = try await call(request, along: plan(.impostor))
    try require(response.status, equals: 200, "the status")
    try require(response.tls?.verified, equals: false, "tls.verified")
    // A connection that was opened without verification must not carry a request that requires verification.
    let error = try await failure(of: try self.request(), along: plan(.impostor))
    try require(error.code, equals: .certificateName, "the code of a verified request")
  }

  func reportsFailure() async throws {
    let error = try await failure(of: try request(), along: plan(.refusing))
    try require(error.code, equals: .connectFailed, "the code")
    try require(error.phase, equals: .connect, "the phase")
    try require(error.isRetryable, "a refused connection cannot be retried")
    let endpoint = IPEndpoint(bench.address(.refusing), port: bench.origin.port)
    try require(error.endpoint, equals: endpoint, "the endpoint")
    try require(
      error.message.contains("\(endpoint)"), "the message does not name \(endpoint): \(error.message)")
    let legs = try route(error).legs
    try require(legs.map(\.outcome), equals: [.failed], "the legs' outcomes")
    try require(legs[0].failure?.kind, equals: .refused, "the leg's failure")
  }

  func looksNamesUp() async throws {
    let response = try await call(try request(), along: plan(thenDNS: true))
    try require(response.status, equals: 200, "the status")
    try require(response.route.source, equals: .dns, "the source")
    try require(response.remote?.address, equals: bench.address(.working), "the remote address")
    try require(response.route.legs.map(\.address), equals: [bench.address(.working)], "the legs' addresses")
  }

  func reportsUnknownNames() async throws {
    let error = try await failure(
      of: try request(of: bench.unknownOrigin), along: plan(thenDNS: true, of: bench.unknownOrigin))
    try require(error.code, equals: .nameNotFound, "the code")
    try require(error.phase, equals: .resolve, "the phase")
    let legs = try route(error).legs
    try require(legs.map(\.failure?.kind), equals: [.nameNotFound], "the legs' failures")
    try require(legs[0].address, equals: nil, "the leg's address")
  }

  func triesAddressesOnce() async throws {
    let response = try await call(try request(), along: plan(.refusing, thenDNS: true))
    try require(
      response.route.legs.map(\.address), equals: [bench.address(.refusing), bench.address(.working)],
      "the legs' addresses")
    try require(response.route.legs.map(\.source), equals: [.list, .dns], "the legs' sources")
  }
}
