import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// What a client counts of its calls.
@Suite struct ClientMetricsTests {
  /// Sums the samples of a name, of those with all of some labels.
  private func sum(_ metrics: ClientMetrics, _ name: String, _ labels: [String: String] = [:]) -> Double {
    metrics.metrics.flatMap(\.samples).filter { sample in
      sample.name == name
        && labels.allSatisfy { label in
          sample.labels.contains { $0.name == label.key && $0.value == label.value }
        }
    }.reduce(0) { $0 + $1.value }
  }

  /// Checks a text with Prometheus' own reader.
  private func check(_ text: String) async throws {
    let directory = try TemporaryDirectory.make("metrics")
    try TextFile.write(text, to: "\(directory)/metrics")
    try await ChildProcess.run("sh", ["-c", "promtool check metrics < \(directory)/metrics"], in: directory)
  }

  private static let request = "http_client_request_duration_seconds"

  @Test("calls are counted once, by method, host, status, error and tag")
  func calls() async throws {
    let lab = try StubLab([
      .answer { request, _ in .response(StubResponse(request.method == .post ? 404 : 200)) }
    ])
    for _ in 0..<3 { _ = try await lab.client.execute(try lab.request()).body.collect(upTo: 10) }
    _ = try await lab.client.execute(try lab.request { $0.options.tag = "item/\"search\"\\\n" })
    _ = try await lab.client.execute(try lab.request(.post)).body.collect(upTo: 10)
    lab.transport.set(.refuse, for: lab.addresses[0])
    await #expect(throws: NetOptError.self) {
      _ = try await lab.client.execute(
        try lab.request {
          $0.options.connection = .fresh
          $0.options.maxAttempts = 1
        })
    }
    let metrics = lab.client.metrics
    await lab.client.shutdown()
    let count = Self.request + "_count"
    #expect(sum(metrics, count) == 6)
    #expect(sum(metrics, count, ["http_request_method": "GET", "http_response_status_code": "200"]) == 4)
    #expect(sum(metrics, count, ["http_request_method": "POST", "error_type": "404"]) == 1)
    #expect(sum(metrics, count, ["error_type": "connect-failed"]) == 1)
    #expect(sum(metrics, count, ["server_address": StubLab.host, "server_port": "443"]) == 6)
    #expect(sum(metrics, count, ["netopt_request_tag": "item/\"search\"\\\u{fffd}"]) == 1)
    #expect(sum(metrics, "netopt_client_responses_total", ["netopt_connection": "new"]) == 1)
    #expect(sum(metrics, "netopt_client_responses_total", ["netopt_connection": "reused"]) == 4)
    #expect(sum(metrics, "netopt_client_calls_under_way") == 0)
    try await check(metrics.prometheusText)
  }

  @Test("a call counts once, however it ends", .timeLimit(.minutes(1)))
  func ends() async throws {
    let lab = try StubLab([
      .answer { request, _ in
        switch request.url.path {
        case "/redirect": .response(StubResponse(302, fields: ["Location": "/"], body: []))
        case "/empty": .response(StubResponse(204))
        case "/silent": .silence
        default: .response(StubResponse(body: Array("body".utf8)))
        }
      }
    ])
    let client = lab.client
    func request(_ path: String, _ method: NetOptRequest.Method = .get) throws -> NetOptRequest {
      try NetOptRequest(method, "https://\(StubLab.host)\(path)")
    }
    var expected = 0.0
    func counted(_ what: String, _ labels: [String: String] = [:]) {
      expected += 1
      #expect(sum(client.metrics, Self.request + "_count") == expected, "\(what)")
      if !labels.isEmpty { #expect(sum(client.metrics, Self.request + "_count", labels) == 1, "\(what)") }
    }
    _ = try await client.execute(try request("/")).body.collect(upTo: 10)
    counted("a body that was read")
    var response = try await client.execute(try request("/"))
    for try await _ in response.body {}
    counted("a body that was read chunk by chunk")
    _ = try await client.execute(try request("/"))
    counted("a body that was released")
    _ = try await client.execute(try request("/", .head)).body.collect(upTo: 10)
    counted("HEAD", ["http_request_method": "HEAD"])
    _ = try await client.execute(try request("/empty"))
    counted("204", ["http_response_status_code": "204"])
    _ = try await client.execute(try request("/redirect")).body.collect(upTo: 10)
    counted("a redirect")
    let cancelled = Task { try await client.execute(try request("/silent")) }
    try await wait(for: "the request") { lab.transport.received.last?.request.url.path == "/silent" }
    cancelled.cancel()
    _ = await cancelled.result
    counted("a cancelled call", ["error_type": "cancelled"])
    // Another client's response, of which an interceptor makes its own.
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    configuration.interceptors = [Forwarding(client: client)]
    let other = try NetOptClient(configuration, transport: StubTransport([:]), resolver: StubResolver())
    response = try await other.execute(try request("/"))
    _ = try await response.body.collect(upTo: 10)
    counted("a response that another client gave on")
    #expect(sum(other.metrics, Self.request + "_count") == 1)
    let waiting = Task { try await client.execute(try request("/silent")) }
    try await wait(for: "the call") { client.status().callsUnderWay == 1 }
    await client.shutdown()
    _ = await waiting.result
    counted("a call that a shutdown ended", ["error_type": "shut-down"])
    await other.shutdown()
  }

  private struct Forwarding: Interceptor {
    let client: NetOptClient

    func intercept(
      _ request: NetOptRequest, next: InterceptorChain
    ) async throws(NetOptError) -> NetOptResponse { try await client.execute(request) }
  }

  @Test("retries, the cache's answers and waits without a server are counted")
  func repeatsAndCache() async throws {
    let lab = try StubLab([
      .respond(503), .respond(fields: ["Cache-Control": "max-age=60"], body: Array("kept".utf8)),
    ]) {
      $0.cache = ClientConfiguration.Cache()
      $0.cache?.options = .http
    }
    for _ in 0..<3 { _ = try await lab.client.execute(try lab.request()).body.collect(upTo: 10) }
    let metrics = lab.client.metrics
    await lab.client.shutdown()
    #expect(sum(metrics, Self.request + "_count") == 3)
    #expect(sum(metrics, "netopt_client_repeats_total", ["netopt_reason": "retry"]) == 1)
    #expect(sum(metrics, "netopt_client_repeats_total", ["netopt_reason": "hedge"]) == 0)
    #expect(sum(metrics, "netopt_client_cache_lookups_total", ["netopt_outcome": "miss"]) == 1)
    #expect(sum(metrics, "netopt_client_cache_lookups_total", ["netopt_outcome": "hit"]) == 2)
    #expect(sum(metrics, "netopt_client_responses_total") == 1)
  }

  @Test("each phase counts in its own histogram, unless it did not happen")
  func phases() async throws {
    let metrics = CallMetrics(SystemTimeSource())
    var timings = Timings()
    timings.queue = .seconds(1)
    timings.dns = .seconds(2)
    timings.connect = .seconds(3)
    timings.tls = .seconds(4)
    timings.send = .seconds(5)
    timings.transfer = .seconds(6)
    let request = NetOptRequest(.get, try HTTPURL("https://\(StubLab.host)/"))
    metrics.ended(CallMetrics.Call(request, started: SystemTimeSource().now(), nil), timings)
    let lab = try StubLab([.respond(200)])
    let shown = ClientMetrics(metrics.current, lab.client.status())
    await lab.client.shutdown()
    let expected: KeyValuePairs = [
      "queue": 1.0, "dns": 2, "connect": 3, "tls": 4, "send": 5, "wait": 0, "transfer": 6,
    ]
    for (phase, seconds) in expected {
      let labels = ["netopt_phase": phase]
      #expect(sum(shown, "netopt_client_phase_duration_seconds_sum", labels) == seconds, "\(phase)")
      let count = sum(shown, "netopt_client_phase_duration_seconds_count", labels)
      #expect(count == (seconds == 0 ? 0 : 1), "\(phase)")
    }
    #expect(sum(shown, Self.request + "_sum") == 21)
  }

  /// Otherwise latencies would look best while a server is unreachable.
  @Test("the time of a response that no server sent contains what the call waited before")
  func waits() async throws {
    let clock = ManualTimeSource()
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    configuration.interceptors = [Late(clock: clock)]
    let client = try NetOptClient(
      configuration, transport: StubTransport([:]), resolver: StubResolver(), timeSource: clock)
    _ = try await client.execute(NetOptRequest(.get, try HTTPURL("https://\(StubLab.host)/")))
    #expect(sum(client.metrics, Self.request + "_sum") == 3)
    #expect(sum(client.metrics, "netopt_client_responses_total") == 0)
    await client.shutdown()
  }

  private struct Late: Interceptor {
    let clock: ManualTimeSource

    func intercept(
      _ request: NetOptRequest, next: InterceptorChain
    ) async throws(NetOptError) -> NetOptResponse {
      clock.advance(by: .seconds(3))
      return NetOptResponse(url: request.url, status: 200)
    }
  }

  /// Texts that a program may use as tags and as names of errors.
  private static let texts = [
    "", "_OTHER", "a\"b", "c\\d", "e\nf", "\u{301}\u{1F600}", String(repeating: "x", count: 200), "\u{0}\r",
    "\u{fffd}\u{fffd}", "{le=\"5\"}", "\u{7f}\u{85}\u{2028}",
  ]

  @Test("Prometheus scrapes the metrics", .timeLimit(.minutes(2)))
  func scrape() async throws {
    let lab = try StubLab([.expired, .respond(200)])
    for _ in 0..<3 {
      _ = try await lab.client.execute(try lab.request { $0.options.connection = .fresh }).body.collect(
        upTo: 10)
    }
    for tag in Self.texts {
      _ = try await lab.client.execute(try lab.request { $0.options.tag = tag }).body.collect(upTo: 10)
    }
    let server = try LoopbackServer(
      .raw {
        try $0.respond(
          200, ["Content-Type": "text/plain; version=0.0.4; charset=utf-8"],
          text: lab.client.metrics.prometheusText)
      })
    defer { server.stop() }
    let directory = try TemporaryDirectory.make("prometheus")
    try TextFile.write(
      """
      global: {scrape_interval: 1s}
      scrape_configs: [{job_name: netopt, static_configs: [{targets: ["\(server.endpoint)"]}]}]
      """, to: "\(directory)/prometheus.yml")
    let port = try FreePort.find(on: [.loopback])
    let prometheus = try ChildProcess(
      "prometheus",
      [
        "--config.file=\(directory)/prometheus.yml", "--storage.tsdb.path=\(directory)/data",
        "--web.listen-address=127.0.0.1:\(port)",
      ], in: directory)
    defer { prometheus.stop() }
    var configuration = ClientConfiguration()
    configuration.allowPrivateAddresses = true
    configuration.proxy = .none
    let reader = try NetOptClient(configuration)
    func query(_ text: String) async throws -> String {
      let url = try HTTPURL("http://127.0.0.1:\(port)/api/v1/query").adding(query: ["query": text])
      guard let response = try? await reader.execute(NetOptRequest(.get, url)) else { return "" }
      return try await response.text()
    }
    let avoided = "netopt_client_endpoint_avoided{network_peer_address=\"\(lab.addresses[0])\"} == 1"
    try await wait(for: "a scrape", within: .seconds(60)) { try await query(avoided).contains("\"1\"]") }
    let calls = try await query(
      "sum(http_client_request_duration_seconds_count{server_address=\"\(StubLab.host)\"})")
    #expect(calls.contains("\"\(3 + Self.texts.count)\"]"), "\(calls)")
    let quantile = try await query("histogram_quantile(0.9, sum by (le) (\(Self.request)_bucket))")
    let value = try #require(quantile.firstMatch(of: /,"([0-9.e-]+)"\]/)?.output.1)
    #expect(try (0...0.005).contains(#require(Double(value))))
    await reader.shutdown()
    await lab.client.shutdown()
  }

  /// The texts of labels are the program's, and may be any.
  @Test("every call is in one series, and there are never too many", arguments: 1...3)
  func bounds(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let metrics = CallMetrics(SystemTimeSource())
    let hosts = (0..<300).map { "host-\($0).test" }
    let codes = (Self.texts + (0..<300).map { "code \($0)" } + ["404", "503"]).map(NetOptError.Code.custom)
    let calls = 60_000
    for index in 0..<calls {
      var options = RequestOptions()
      switch Int.random(in: 0..<4, using: &random) {
      case 0: options.tag = Self.texts.randomElement(using: &random)
      case 1: options.tag = "tag \(Int.random(in: 0..<200, using: &random))"
      default: break
      }
      let method = [NetOptRequest.Method.get, .post, "BREW", NetOptRequest.Method(rawValue: "X\(index)")]
        .randomElement(using: &random)!
      let url = try HTTPURL("https://\(hosts.randomElement(using: &random)!)/\(index)")
      let response =
        Bool.random(using: &random)
        ? CallMetrics.Response(
          status: [404, Int.random(in: -5...1005, using: &random)].randomElement(using: &random)!)
        : nil
      let call = CallMetrics.Call(
        NetOptRequest(method, url, options: options), started: SystemTimeSource().now(), response)
      if Bool.random(using: &random) {
        var timings = Timings()
        timings.waitNanoseconds =
          Int64.random(in: -5...(.max / 8), using: &random) >> Int.random(in: 0..<40, using: &random)
        metrics.ended(call, timings)
      } else {
        metrics.failed(call, NetOptError(codes.randomElement(using: &random)!, phase: .send, ""))
      }
    }
    let counts = metrics.current
    let most = CallMetrics.mostSeries + CallMetrics.mostErrors + 2
    #expect(counts.requests.count == counts.series.count && counts.series.count <= most)
    #expect((0..<counts.requests.count).reduce(0) { $0 + counts.requests[$1].buckets.reduce(0, +) } == calls)
    let lab = try StubLab([.respond(200)])
    let shown = ClientMetrics(counts, lab.client.status())
    await lab.client.shutdown()
    #expect(sum(shown, Self.request + "_count") == Double(calls))
    #expect(sum(shown, Self.request + "_bucket", ["le": "+Inf"]) == Double(calls))
    let limits = [
      "server_address": CallMetrics.mostHosts, "netopt_request_tag": CallMetrics.mostTags,
      // Each status of 400 to 999 is a kind of error too.
      "error_type": CallMetrics.mostErrors + 600, "http_request_method": CallMetrics.methods.count,
    ]
    for (label, limit) in limits {
      let values = Set(
        shown.metrics[0].samples.flatMap(\.labels).filter { $0.name == label }.map(\.value))
      #expect(values.count <= limit + 1 && values.contains("_OTHER") && !values.contains(""), "\(label)")
    }
    // Prometheus takes an empty label for a missing one.
    let samples = shown.metrics.flatMap(\.samples).map { sample in
      [sample.name] + sample.labels.filter { !$0.value.isEmpty }.map { "\($0.name)=\($0.value)" }.sorted()
    }
    #expect(Set(samples).count == samples.count)
    try await check(shown.prometheusText)
  }

  /// Each bucket contains its bound and what is less, so the counts of the text never fall.
  @Test("a histogram counts each duration in the first bucket that is large enough")
  func buckets() {
    var histograms = DurationHistograms(count: 1)
    let number = histograms.append()
    for nanoseconds in [Int64.min, 0, 5_000_000, 5_000_001, 10_000_000_000, 10_000_000_001, .max, .max] {
      histograms.add(nanoseconds, to: number)
    }
    let (buckets, sum) = histograms[number]
    #expect(buckets[0] == 3 && buckets[1] == 1 && buckets[13] == 1 && buckets[14] == 3)
    #expect(buckets.reduce(0, +) == 8 && sum == .max)
    #expect(histograms[0].buckets.allSatisfy { $0 == 0 } && histograms[0].sum == 0)
  }
}
