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
    #expect(sum(metrics, count, ["netopt_request_tag": "item/\"search\"\\\n"]) == 1)
    #expect(sum(metrics, "netopt_client_sends_total") == 5)
    #expect(sum(metrics, "netopt_client_connections_total") == 5)
    #expect(sum(metrics, "http_client_active_requests") == 0)
    try await check(metrics.prometheusText)
  }

  @Test("Prometheus scrapes the metrics", .timeLimit(.minutes(2)))
  func scrape() async throws {
    let lab = try StubLab([.expired, .respond(200)])
    for _ in 0..<3 {
      _ = try await lab.client.execute(try lab.request { $0.options.connection = .fresh }).body.collect(
        upTo: 10)
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
    #expect(calls.contains("\"3\"]"), "\(calls)")
    #expect(
      try await query("histogram_quantile(0.9, http_client_request_duration_seconds_bucket)").contains(
        "netopt"))
    await reader.shutdown()
    await lab.client.shutdown()
  }

  /// The texts of labels are the program's, and may be any.
  @Test("every call is in one series, and there are never too many", arguments: 1...3)
  func bounds(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let metrics = CallMetrics(SystemTimeSource())
    let hosts = (0..<300).map { "host-\($0).test" }
    let codes = (0..<300).map { NetOptError.Code.custom("code \($0)\"\\\n") }
    let texts = [
      "", "a\"b", "c\\d", "e\nf", "\u{301}\u{1F600}", String(repeating: "x", count: 200), "\u{0}\r",
    ]
    let calls = 60_000
    for index in 0..<calls {
      var options = RequestOptions()
      switch Int.random(in: 0..<4, using: &random) {
      case 0: options.tag = texts.randomElement(using: &random)
      case 1: options.tag = "tag \(Int.random(in: 0..<200, using: &random))"
      default: break
      }
      let method = [NetOptRequest.Method.get, .post, "BREW", NetOptRequest.Method(rawValue: "X\(index)")]
        .randomElement(using: &random)!
      let url = try HTTPURL("https://\(hosts.randomElement(using: &random)!)/\(index)")
      let response =
        Bool.random(using: &random)
        ? CallMetrics.Response(
          status: Int.random(in: 100...999, using: &random), version: .http2, sends: 1, reused: nil,
          cache: .off)
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
    let most = CallMetrics.mostSeries + 10 * (CallMetrics.mostErrors + 2)
    #expect(counts.requests.count == counts.series.count && counts.series.count <= most)
    #expect((0..<counts.requests.count).reduce(0) { $0 + counts.requests[$1].buckets.reduce(0, +) } == calls)
    let lab = try StubLab([.respond(200)])
    let shown = ClientMetrics(counts, lab.client.status())
    await lab.client.shutdown()
    #expect(sum(shown, Self.request + "_count") == Double(calls))
    #expect(sum(shown, Self.request + "_bucket", ["le": "+Inf"]) == Double(calls))
    for label in ["server_address", "netopt_request_tag", "error_type", "http_request_method"] {
      let values = Set(
        shown.metrics[0].samples.flatMap(\.labels).filter { $0.name == label }.map(\.value))
      #expect(values.count <= CallMetrics.mostHosts + 1 && values.contains("_OTHER"), "\(label)")
    }
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
