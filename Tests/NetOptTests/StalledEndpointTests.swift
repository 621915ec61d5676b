import Glibc
import NetOpt
import NetOptCore
import NetOptLocking
import NetOptRouting
import NetOptTestSupport
import Testing

/// Tests a server that stops (SIGSTOP) and keeps its connections open, while the other servers of its host
/// work. Requests must leave this server, unless they may not be repeated or the caller pinned them to its
/// address. A server that is only slow must stay in use.
@Suite(.serialized) struct StalledEndpointTests {
  /// A call that `load` made, with its result.
  private struct Call: Sendable {
    /// The number of the call, from which its method and its target follow.
    let number: Int
    let method: NetOptRequest.Method
    /// When the call began, as an offset from the moment that `load` got as `start`.
    let began: Duration
    /// The time from the start of the call until its body was read or the call failed.
    let time: Duration
    /// The body of the response as text, or the error of the call.
    let answer: Result<String, NetOptError>
    /// The reports of the call's other attempts (`NetOptResponse.otherAttempts`). Empty if the call made one
    /// attempt.
    var attempts: [AttemptReport] = []
    /// The address that sent the response; `nil` if the call failed.
    let remote: IPAddress?
  }

  /// How long the server is stopped: the number of seconds in the environment variable `STALL_SECONDS`, by
  /// default 3 s.
  private static let stall =
    Duration.seconds(getenv("STALL_SECONDS").flatMap { Int(String(cString: $0)) } ?? 3)

  /// An nginx location that answers with the method and the URI of the request.
  private static let echo = "location /echo { return 200 \"$request_method $request_uri\"; }"

  /// The target of the call with this number. An even number is written in digits. The planner ignores path
  /// segments with digits, so requests of one method with even numbers are of one kind (`RequestKind`). An
  /// odd number is written in letters, so each of these requests is of a kind of its own.
  private static func target(_ number: Int) -> String {
    let word = String(
      String(number).map { Character(UnicodeScalar(UInt8(ascii: "a") + UInt8($0.wholeNumberValue ?? 0))) })
    return "/echo/\(number % 2 == 0 ? String(number) : word)?q=\(number)"
  }

  /// Sends requests at a fixed rate. Each request goes out at its own time, whether or not earlier requests
  /// have been answered. Every tenth request is a POST, the others are GETs.
  ///
  /// - Parameters:
  ///   - first: the number of the first call; the other calls have the following numbers.
  ///   - time: how long to send requests, in whole seconds.
  ///   - start: the moment from which `Call.began` counts.
  /// - Returns: the calls, in the order in which they ended.
  private func load(
    _ client: NetOptClient, _ fleet: Fleet, perSecond: Int, from first: Int, for time: Duration,
    since start: MonotonicInstant, _ clock: SystemTimeSource
  ) async -> [Call] {
    let count = Int(time.nanoseconds / 1_000_000_000) * perSecond
    let begin = clock.now()
    return await withTaskGroup(of: Call?.self) { group in
      for index in 0..<count {
        let due = begin + .nanoseconds(Int64(index) * 1_000_000_000 / Int64(perSecond))
        let rest = due - clock.now()
        if rest > .zero { try? await Task.sleep(for: rest) }
        let number = first + index
        group.addTask {
          guard
            var request = try? fleet.request(number % 10 == 9 ? .post : .get, Self.target(number))
          else { return nil }
          request.options.timeout = .seconds(5)
          let began = clock.now()
          var call: Call
          do throws(NetOptError) {
            let response = try await client.execute(request)
            let bytes = try await response.body.collect(upTo: 1000)
            call = Call(
              number: number, method: request.method, began: began - start, time: clock.now() - began,
              answer: .success(String(decoding: bytes, as: UTF8.self)), remote: response.remote?.address)
            call.attempts = response.otherAttempts
          } catch {
            call = Call(
              number: number, method: request.method, began: began - start, time: clock.now() - began,
              answer: .failure(error), remote: nil)
            call.attempts = error.otherAttempts
          }
          return call
        }
      }
      return await group.reduce(into: []) { calls, call in if let call { calls.append(call) } }
    }
  }

  /// The 99th percentile of the times of the calls; zero without calls.
  private static func p99(_ calls: [Call]) -> Duration {
    let times = calls.map(\.time).sorted()
    return times.isEmpty ? .zero : times[min(times.count * 99 / 100, times.count - 1)]
  }

  /// Stops the server in use while the client sends `rate` requests per second. No GET fails, the client soon
  /// sends requests elsewhere, and it sends no POST twice.
  @Test(
    "requests leave a server that stops under load: no GET fails, and no POST is sent twice",
    arguments: [20, 200])
  func stoppedServer(_ rate: Int) async throws {
    let fleet = try await Fleet(3, directives: Self.echo)
    defer { fleet.stop() }
    // The policy `pinned` keeps the server in use as long as it works. With the policy `fastest`, load on
    // this machine could change the measured times, and another server than `victim` might be in use by the
    // time that `victim` stops.
    let client = try await fleet.client { $0.routing.policy = .pinned }
    let clock = SystemTimeSource()
    let start = clock.now()
    let before = await load(
      client, fleet, perSecond: rate, from: 0, for: .seconds(2), since: start, clock)
    let victim = try #require(before.max { $0.began < $1.began }?.remote)
    let origin = try fleet.origin(victim)
    origin.freeze()
    defer { origin.thaw() }
    let stopped = clock.now()
    let during = await load(
      client, fleet, perSecond: rate, from: before.count, for: Self.stall, since: stopped, clock)
    origin.thaw()

    for call in before + during {
      switch call.answer {
      case .success(let answer):
        #expect(answer == "\(call.method) \(Self.target(call.number))")
      case .failure(let error):
        // A POST that was written waits for its server, because it may not be repeated. It succeeds if the
        // server resumes before the call's deadline.
        #expect(call.method == .post, "\(error)")
        #expect(error.code == .timeout, "\(error)")
      }
    }
    // The calls that began at least 1 s after the server had stopped.
    let late = during.filter { $0.began >= .seconds(1) }
    let p99 = Self.p99(late)
    // At most twice the p99 before the stop. A p99 of up to 50 ms is right in any case, because this
    // machine's scheduler may cause it.
    #expect(p99 <= max(Self.p99(before) * 2, .milliseconds(50)), "\(p99), before \(Self.p99(before))")
    #expect(late.allSatisfy { $0.remote != victim })
    // The calls that were taken from the stopped server and made a second attempt.
    let moved = during.filter { !$0.attempts.isEmpty }
    #expect(!moved.isEmpty)
    for call in moved {
      #expect(call.method == .get)
      guard case .failed(let error) = call.attempts[0].outcome else {
        Issue.record("\(call.attempts)")
        continue
      }
      #expect(error.code == .receiveFailed && error.message.contains("went silent"), "\(error)")
    }
    try await wait(for: "the server to be used again", within: .seconds(15)) {
      let response = try await client.execute(try fleet.request(.get, "/echo/after"))
      return response.route.plan.candidates.allSatisfy { $0.excluded == nil }
    }
    // The old connection to the server is gone. The first request opens a new connection, and the pool keeps
    // this connection for the second request.
    var again = try fleet.request(.get, "/echo/again")
    again.options.routing = .pinned(victim)
    _ = try await client.execute(again).body.collect(upTo: 1000)
    #expect(try await client.execute(again).reused)
    await client.shutdown()
    // How often each target of a POST is in the access logs of the servers.
    var posts: [String: Int] = [:]
    for address in fleet.addresses {
      let origin = try fleet.origin(address)
      origin.stop()
      for entry in try origin.accessLog() where entry.method == "POST" {
        posts[entry.target, default: 0] += 1
      }
    }
    #expect(posts.values.allSatisfy { $0 == 1 })
    if let length = getenv("STALL_SECONDS") {
      let failed = (before + during).filter { if case .failure = $0.answer { true } else { false } }
      print(
        "stall of \(String(cString: length)) s at \(rate)/s: \(during.count) calls, \(moved.count) moved,",
        "\(failed.count { $0.method == .get }) GETs and \(failed.count { $0.method == .post }) POSTs failed,",
        "p99 before \(Self.p99(before)), after a second \(p99), longest \(during.map(\.time).max() ?? .zero)")
    }
  }

  /// A server takes 1.5 s for each of many concurrent requests, and stays in use.
  @Test("a server that answers many concurrent requests slowly stays in use")
  func slowServer() async throws {
    let slow = "location /unhurried { echo_sleep 1.5; echo slow; } \(Self.echo)"
    let fleet = try await Fleet(2, directives: slow)
    defer { fleet.stop() }
    let client = try await fleet.client()
    for _ in 0..<20 {
      _ = try await client.execute(try fleet.request(.get, "/echo/again")).body.collect(upTo: 100)
    }
    let request = try fleet.request(.get, "/unhurried")
    let clock = SystemTimeSource()
    let began = clock.now()
    // Sends eight requests at once and nothing else. So their server sends nothing for 1.5 s, as a stopped
    // server would.
    let responses = try await withThrowingTaskGroup(of: NetOptResponse.self) { group in
      for _ in 0..<8 { group.addTask { try await client.execute(request) } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(clock.now() - began >= .milliseconds(1500))
    #expect(responses.allSatisfy { $0.status == 200 && $0.attempts == 1 && $0.otherAttempts.isEmpty })
    let after = try await client.execute(try fleet.request(.get, "/echo/again"))
    #expect(after.route.plan.candidates.allSatisfy { $0.excluded == nil }, "\(after.route.plan.candidates)")
    await client.shutdown()
  }

  /// The caller pins the requests to the address of a server, so they cannot go elsewhere. They wait until
  /// this server responds.
  @Test("a pinned request waits for a server that stops, and is sent once")
  func pinnedRequest() async throws {
    let fleet = try await Fleet(2, directives: Self.echo)
    defer { fleet.stop() }
    let client = try await fleet.client()
    let pinned = fleet.addresses[0]
    var request = try fleet.request(.get, "/echo/pinned")
    request.options.routing = .pinned(pinned)
    request.options.timeout = .seconds(20)
    for _ in 0..<20 { _ = try await client.execute(request).body.collect(upTo: 1000) }
    let origin = try fleet.origin(pinned)
    origin.freeze()
    defer { origin.thaw() }
    let sent = request
    let calls = (0..<5).map { _ in Task { try await client.execute(sent) } }
    // Waits until plans exclude the server: the client has suspected the server, and a new connection to the
    // server has failed.
    try await wait(for: "the server to be left") {
      let response = try await client.execute(try fleet.request(.get, "/echo/other"))
      return response.route.plan.candidates.contains { $0.address == pinned && $0.excluded != nil }
    }
    origin.thaw()
    for call in calls {
      let response = try await call.value
      #expect(response.status == 200 && response.attempts == 1 && response.otherAttempts.isEmpty)
    }
    await client.shutdown()
  }

  /// Sends a single request to a server that stops. No other request waits there, so only a failed new
  /// connection shows that the server has stopped.
  @Test("a lone request to a server that stops goes elsewhere when a new connection fails too")
  func loneRequest() async throws {
    let fleet = try await Fleet(2, directives: Self.echo)
    defer { fleet.stop() }
    let client = try await fleet.client()
    var victim: IPAddress?
    for _ in 0..<20 {
      let response = try await client.execute(try fleet.request(.get, "/echo/again"))
      victim = response.remote?.address
      _ = try await response.body.collect(upTo: 100)
    }
    let origin = try fleet.origin(try #require(victim))
    origin.freeze()
    defer { origin.thaw() }
    var request = try fleet.request(.get, "/echo/lone")
    request.options.timeout = .seconds(10)
    let clock = SystemTimeSource()
    let began = clock.now()
    let response = try await client.execute(request)
    #expect(response.remote?.address != victim && response.attempts == 2)
    // The request waits for 0.25 s before the client suspects the server. The connection that the client then
    // opens to the server fails after 1 s. The rest of the 4 s is for a slow machine.
    #expect(clock.now() - began < .seconds(4))
    await client.shutdown()
  }
}
