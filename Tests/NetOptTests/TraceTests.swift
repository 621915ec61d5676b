import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// What a collector learns of the calls of a client.
@Suite(.enabled("\(TraceCollector.missing)") { TraceCollector.isInstalled })
struct TraceTests {
  /// A call of a test, with what it sends and what becomes of it.
  private struct Call: Sendable {
    let id: Int
    let request: NetOptRequest
    /// The trace and the span of the program; `nil` when it sends none, or an invalid one.
    let parent: (trace: String, span: String, isSampled: Bool)?
    let state: String
    let isCancelled: Bool

    /// Chooses a call at random. It has a valid `traceparent`, an invalid one, or none. The server answers with
    /// 200, 404 or 503, redirects the request, or closes the connection without an answer.
    init(_ id: Int, _ collector: TraceCollector, _ random: inout SplitMix64) throws {
      self.id = id
      let behaviour = random.element(of: [
        "", "", "", "&status=404", "&status=503&failing=1", "&status=302", "&end=close", "&status=503",
      ])
      let method = random.element(of: [NetOptRequest.Method.get, .get, .post, "REPORT"])
      var request = NetOptRequest(
        method, try collector.url("call?id=\(id)&api_key=hunter2\(behaviour)"),
        body: method == .post ? .bytes([1, 2, 3]) : .none)
      if random.isOne(in: 3) { request.options.tag = "tag \(id % 3)" }
      let trace = Hex.text((0..<16).map { _ in UInt8(truncatingIfNeeded: random.next()) })
      let span = Hex.text((0..<8).map { _ in UInt8(truncatingIfNeeded: random.next()) })
      let isSampled = random.isOne(in: 2)
      state = random.isOne(in: 2) ? "vendor=\(id),other=x" : ""
      let valid = "00-\(trace)-\(span)-0\(isSampled ? 1 : 0)"
      switch random.below(4) {
      case 0: parent = nil
      case 1:
        parent = nil
        request.headers["traceparent"] = random.element(of: [
          valid.uppercased() + "A", "ff\(valid.dropFirst(2))", String(valid.dropLast()), valid + "-x",
          "00-\(String(repeating: "0", count: 32))-\(span)-01",
          "00-\(trace)-\(String(repeating: "0", count: 16))-01",
        ])
      default:
        parent = (trace, span, isSampled)
        request.headers["traceparent"] = valid
      }
      if !state.isEmpty { request.headers["tracestate"] = state }
      self.request = request
      isCancelled = random.isOne(in: 20)
    }
  }

  @Test(
    "each sampled call and each of its attempts has one span, and each request carries the id of its attempt's span",
    arguments: 1...3)
  func spans(seed: UInt64) async throws {
    let collector = try await TraceCollector()
    let client = try collector.client { $0.telemetry?.sampledShare = 0.5 }
    var random = SplitMix64(seed: seed)
    let calls = try (0..<250).map { try Call($0, collector, &random) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, call) in calls.enumerated() {
        if index >= 8 { try await group.next() }
        group.addTask {
          let task = Task {
            let body = try? await client.execute(call.request).body.collect(upTo: 1000)
            if let body, !body.isEmpty {
              #expect(String(decoding: body, as: UTF8.self) == "answer to \(call.id)")
            }
          }
          if call.isCancelled { task.cancel() }
          await task.value
        }
      }
      try await group.waitForAll()
    }
    await client.shutdown(draining: .seconds(10))
    let dump = try await collector.dump()
    await collector.stop()
    #expect(dump.faults == [])
    #expect(dump.spans.allSatisfy { $0.service == "tests" && $0.scope == "netopt" })
    #expect(Set(dump.spans.map(\.span)).count == dump.spans.count)
    let attempts = Dictionary(grouping: dump.spans.filter { $0.kind == 3 }, by: \.parent)
    let roots = dump.spans.filter { $0.kind == 1 }
    #expect(attempts.values.reduce(0) { $0 + $1.count } + roots.count == dump.spans.count)
    // A call is known by the number in its URL.
    let rootOf = Dictionary(grouping: roots) { Self.id($0) }
    let requestsOf = Dictionary(grouping: dump.requests, by: \.id)
    var recorded = 0
    for call in calls {
      let (root, requests) = (rootOf[String(call.id)] ?? [], requestsOf[String(call.id)] ?? [])
      #expect(root.count <= 1)
      #expect(Set(requests.map(\.trace)).count <= 1)
      // Within an attempt, the client sends a request again if its connection of the pool was closed.
      let isResent = call.request.url.query?.contains("end=close") == true
      #expect(isResent || Set(requests.map(\.span)).count == requests.count)
      #expect(requests.allSatisfy { $0.parents.count == 1 && $0.span != call.parent?.span })
      if let parent = call.parent {
        #expect(requests.allSatisfy { $0.trace == parent.trace && $0.sampled == parent.isSampled })
        #expect(requests.allSatisfy { $0.state == call.state })
        #expect(root.count == (parent.isSampled ? 1 : 0))
        #expect(root.allSatisfy { $0.trace == parent.trace && $0.parent == parent.span && $0.flags == 0x301 })
        #expect(root.allSatisfy { $0.state == call.state })
      } else {
        #expect(root.allSatisfy { $0.parent == "" && $0.state == "" && $0.flags == 1 })
        #expect(requests.allSatisfy { $0.state == "" })
        if let request = requests.first { #expect(request.sampled == !root.isEmpty) }
      }
      guard let root = root.first else { continue }
      recorded += 1
      let ours = (attempts[root.span] ?? []).sorted { Self.number($0) < Self.number($1) }
      #expect(ours.map { Self.number($0) } == Array(0..<ours.count))
      #expect(ours.allSatisfy { $0.trace == root.trace && $0.flags == 0x101 && Self.id($0) == Self.id(root) })
      #expect(ours.allSatisfy { root.start <= $0.start && $0.start <= $0.end && $0.end <= root.end })
      let method = call.request.method == "REPORT" ? "HTTP" : call.request.method.rawValue
      #expect(root.name == (call.request.options.tag ?? method))
      for request in requests {
        let span = try #require(ours.first { $0.span == request.span }, "\(call.id)")
        let attributes = span.attributes
        // A redirect may have changed the method.
        let sent = request.method == "REPORT" ? "HTTP" : request.method
        #expect(span.name == sent && attributes["network.peer.address"] == "127.0.0.1")
        #expect(attributes["network.peer.port"] == String(collector.port))
        // A cancelled call did not wait for the response, and a connection may close before it.
        guard let status = attributes["http.response.status_code"] else {
          #expect(span.error && attributes["error.type"] != nil)
          continue
        }
        #expect(status == String(request.status) && attributes["network.protocol.version"] == "1.1")
        #expect(span.error == (request.status >= 400))
        #expect(attributes["error.type"] == (request.status >= 400 ? status : nil))
      }
    }
    let began = calls.filter { $0.parent == nil }
    let share = Double(began.filter { rootOf[String($0.id)] != nil }.count) / Double(began.count)
    #expect((0.3...0.7).contains(share))
    #expect(recorded == roots.count && recorded > 80 && dump.spans.count > 2 * recorded)
  }

  /// The number of the call in the URL of a span.
  private static func id(_ span: TraceCollector.Dump.Span) -> String? {
    span.attributes["url.full"]?.firstMatch(of: /[?&]id=([0-9]+)/).map { String($0.output.1) }
  }

  /// How many attempts came before the attempt of a span.
  private static func number(_ span: TraceCollector.Dump.Span) -> Int {
    span.attributes["http.request.resend_count"].flatMap { Int($0) } ?? 0
  }

  @Test("a batch that the collector cannot take is sent again, and the spans arrive once")
  func refusals() async throws {
    let collector = try await TraceCollector()
    let warnings = EventRecorder<NetOptError>()
    let client = try collector.client { $0.warningHandler = { warnings.record($0) } }
    try await collector.refuse([503, 429])
    let count = SpanQueue.batch
    try await withThrowingTaskGroup(of: Void.self) { group in
      for id in 0..<count {
        if id >= 16 { try await group.next() }
        let request = NetOptRequest(.get, try collector.url("call?id=\(id)"))
        group.addTask { _ = try await client.execute(request).body.collect(upTo: 100) }
      }
      try await group.waitForAll()
    }
    // There are two spans for each call. The first batch is refused twice.
    try await wait(for: "the exports", within: .seconds(60)) {
      client.spanExporter?.counts.exported == 2 * count
    }
    await client.shutdown()
    let dump = try await collector.dump()
    await collector.stop()
    #expect(dump.faults == [] && dump.spans.count == 2 * count)
    #expect(Set(dump.spans.map(\.span)).count == 2 * count)
    // One warning, although two exports failed.
    #expect(warnings.events.map(\.message).count == 1)
    let metrics = client.metrics.prometheusText
    #expect(metrics.contains("netopt_client_spans_total{netopt_outcome=\"exported\"} \(2 * count)\n"))
    // The exports are no calls.
    let calls = metrics.matches(of: /http_client_request_duration_seconds_count\{.*\} ([0-9]+)\n/)
    #expect(calls.map(\.output.1) == ["\(count)"])
    #expect(!metrics.contains("v1/traces") && !metrics.contains("http_request_method=\"POST\""))
  }

  @Test("a call continues the trace that an interceptor of the program begins")
  func interceptors() async throws {
    let collector = try await TraceCollector()
    let client = try collector.client { $0.interceptors = [Injecting()] }
    _ = try await client.execute(NetOptRequest(.get, try collector.url("call?id=1"))).body.collect(upTo: 100)
    await client.shutdown()
    let dump = try await collector.dump()
    await collector.stop()
    #expect(dump.requests.map(\.trace) == ["0af7651916cd43dd8448eb211c80319c"] && dump.spans.count == 2)
    #expect(dump.requests.map(\.state) == ["vendor=1"])
    #expect(
      dump.spans.allSatisfy { $0.trace == "0af7651916cd43dd8448eb211c80319c" && $0.state == "vendor=1" })
    let root = try #require(dump.spans.first { $0.kind == 1 })
    #expect(root.parent == "b7ad6b7169203331" && dump.spans.contains { $0.parent == root.span })
  }

  private struct Injecting: Interceptor {
    func intercept(
      _ request: NetOptRequest, next: InterceptorChain
    ) async throws(NetOptError) -> NetOptResponse {
      var request = request
      request.headers["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
      request.headers["tracestate"] = "vendor=1"
      return try await next.proceed(request)
    }
  }

  @Test("the span of an attempt has an event for each leg of its race, with address, outcome and failure")
  func legs() async throws {
    let collector = try await TraceCollector()
    let dead = IPAddress(v4: 0x7f00_0009)
    let client = try collector.client {
      $0.allowPrivateAddresses = true
      $0.probing.atStart = false
      $0.list = .list(
        EndpointList(hosts: [
          "api.test": HostEntry(
            port: collector.port,
            endpoints: [
              ListedEndpoint(dead, weight: 9), ListedEndpoint(IPAddress(v4: 0x7f00_0001), weight: 1),
            ])
        ]))
    }
    let url = try HTTPURL("http://api.test:\(collector.port)/call?id=1")
    _ = try await client.execute(NetOptRequest(.get, url)).body.collect(upTo: 100)
    await client.shutdown()
    let dump = try await collector.dump()
    await collector.stop()
    let span = try #require(dump.spans.first { $0.kind == 3 })
    #expect(span.attributes["server.address"] == "api.test" && span.attributes["netopt.route"] == "list")
    #expect(span.events.map { $0["network.peer.address"] } == ["127.0.0.9", "127.0.0.1"])
    #expect(span.events.map { $0["netopt.leg.outcome"] } == ["failed", "won"])
    #expect(span.events[0]["netopt.leg.failure"]?.isEmpty == false)
  }
}
