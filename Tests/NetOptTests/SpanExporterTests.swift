import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// What becomes of spans when a collector fails in every way.
@Suite struct SpanExporterTests {
  private static func telemetry() throws -> ClientConfiguration.Telemetry {
    var telemetry = ClientConfiguration.Telemetry(
      collector: try HTTPURL("http://127.0.0.1:4318/"), serviceName: "tests")
    telemetry.headers = ["X-Key": "hunter2"]
    return telemetry
  }

  private static func span(_ number: UInt64) throws -> Span {
    let now = SystemTimeSource().now()
    return Span(
      TraceContext(traceID: .init(high: 1, low: 2), spanID: number, flags: 1), parentID: nil, epoch: 0, .call,
      from: now,
      to: now, SpanRequest(NetOptRequest(.get, try HTTPURL("https://api.test/"))),
      SpanResult(status: 200, callStarted: now))
  }

  /// A collector that fails at random. It keeps the numbers of the spans that it took.
  private final class Collector: Sendable {
    struct State {
      var random: SplitMix64
      var taken: [UInt64] = []
      var refused = 0
      /// Whether it takes everything from now on.
      var isWell = false
    }

    let state: Locked<State>

    init(seed: UInt64) { state = Locked(State(random: SplitMix64(seed: seed))) }

    func answer(_ request: NetOptRequest) throws(NetOptError) -> NetOptResponse {
      guard case .bytes(let body) = request.body.source else {
        throw NetOptError(.invalidRequest, phase: .send, "no body")
      }
      let numbers = String(decoding: body, as: UTF8.self).matches(of: /"spanId":"([0-9a-f]{16})"/)
        .compactMap { UInt64($0.output.1, radix: 16) }
      let answer = state.withLock { state -> (status: Int, body: String)? in
        let kind = state.isWell ? 0 : state.random.below(8)
        switch kind {
        case 0, 1:
          state.taken += numbers
          return (200, "{}")
        case 2:
          // Refuses the last one.
          state.taken += numbers.dropLast()
          state.refused += 1
          return (200, #"{"partialSuccess":{"rejectedSpans":"1","errorMessage":"x"}}"#)
        case 3:
          state.refused += numbers.count
          return (400, "")
        case 4: return (503, "")
        case 5: return (429, "not JSON")
        case 6:
          state.taken += numbers
          return (200, "{\"partialSuccess\":7}")
        default: return nil
        }
      }
      guard let answer else { throw NetOptError(.connectFailed, phase: .connect, "refused") }
      return NetOptResponse(
        url: request.url, status: answer.status, body: ResponseBody(Array(answer.body.utf8)))
    }
  }

  @Test("each span is taken, refused or dropped, and counted", .timeLimit(.minutes(1)), arguments: 1...10)
  func everySpan(seed: UInt64) async throws {
    let (collector, queue) = (Collector(seed: seed), SpanQueue())
    let warnings = EventRecorder<NetOptError>()
    var times = SpanExporter.Times()
    times.interval = .milliseconds(2)
    times.waits = .milliseconds(1)...(.milliseconds(4))
    let exporter = SpanExporter(
      try Self.telemetry(), queue, times: times, warn: { warnings.record($0) }
    ) { (request) throws(NetOptError) in try collector.answer(request) }
    exporter.start()
    var random = SplitMix64(seed: seed + 100)
    var number: UInt64 = 0
    while number < 20_000 {
      for _ in 0...random.below(3000) {
        number += 1
        queue.append(try Self.span(number))
      }
      if random.isOne(in: 2) { await Task.yield() }
    }
    collector.state.withLock { $0.isWell = true }
    await exporter.finish()
    let (taken, refused) = collector.state.withLock { ($0.taken, $0.refused) }
    let counts = exporter.counts
    #expect(counts.exported == taken.count && counts.exported + counts.dropped == Int(number))
    #expect(counts.dropped >= refused && !taken.isEmpty)
    // No span is taken twice, and the order is that of their ends.
    #expect(zip(taken, taken.dropFirst()).allSatisfy { $0 < $1 })
    #expect(
      warnings.events.allSatisfy {
        !$0.message.contains("hunter2")
          && ($0.message.contains("/v1/traces: ") || $0.message.contains("spans were dropped"))
      })
    #expect(warnings.events.isEmpty == (counts.dropped == 0))
  }

  @Test("spans that end during an export wait for others", .timeLimit(.minutes(1)))
  func batches() async throws {
    let (queue, exports) = (SpanQueue(), EventRecorder<Int>())
    var times = SpanExporter.Times()
    times.interval = .seconds(3600)
    let exporter = SpanExporter(
      try Self.telemetry(), queue, times: times, warn: { _ in }
    ) { (request) throws(NetOptError) in
      // More spans end while each of the first exports is under way, but no further batch.
      if exports.events.count < 2, let span = try? Self.span(1) { queue.append(span) }
      exports.record(1)
      return NetOptResponse(url: request.url, status: 200)
    }
    for number in 1...SpanQueue.batch { queue.append(try Self.span(UInt64(number))) }
    exporter.start()
    try await wait(for: "the first batch") { exporter.counts.exported == SpanQueue.batch }
    #expect(queue.count == 1)
    await exporter.finish()
    // The rest, and what ended during its export.
    #expect(exports.events.count == 3 && exporter.counts == (SpanQueue.batch + 2, 0))
    #expect(queue.count == 0)
  }

  @Test("two shutdowns at once let a running export end", .timeLimit(.minutes(1)))
  func shutdowns() async throws {
    let (queue, gate, started) = (SpanQueue(), Latch(), Latch())
    var times = SpanExporter.Times()
    times.interval = .zero
    times.finish = .seconds(30)
    let exporter = SpanExporter(
      try Self.telemetry(), queue, times: times, warn: { _ in }
    ) { (request) throws(NetOptError) in
      started.open()
      let isCancelled = (try? await gate.wait()) == nil
      return NetOptResponse(url: request.url, status: isCancelled ? 400 : 200)
    }
    exporter.start()
    queue.append(try Self.span(1))
    try await started.wait()
    async let first: Void = exporter.finish()
    async let second: Void = exporter.finish()
    try await wait(for: "the end") { queue.isClosed }
    gate.open()
    _ = await (first, second)
    #expect(exporter.counts == (1, 0))
  }

  @Test("a client that is released without a shutdown ends its exporter", .timeLimit(.minutes(1)))
  func release() async throws {
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    configuration.telemetry = try Self.telemetry()
    var client: NetOptClient? = try NetOptClient(configuration)
    weak let exporter = client?.spanExporter
    #expect(exporter != nil)
    client = nil
    try await wait(for: "the exporter") { exporter == nil }
  }

  @Test("a collector that does not respond delays a shutdown by the limit at most", .timeLimit(.minutes(1)))
  func silence() async throws {
    let server = try LoopbackServer(.silent)
    defer { server.stop() }
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    configuration.telemetry = ClientConfiguration.Telemetry(
      collector: try HTTPURL("http://\(server.endpoint)"), serviceName: "tests")
    let warnings = EventRecorder<NetOptError>()
    configuration.warningHandler = { warnings.record($0) }
    let client = try NetOptClient(configuration)
    // The call fails, and its spans are left at the shutdown.
    await #expect(throws: NetOptError.self) {
      try await client.execute(NetOptRequest(.get, "http://127.0.0.1:1/"))
    }
    let clock = ContinuousClock()
    let began = clock.now
    // The export does not count as a call that the drain waits for.
    await client.shutdown(draining: .seconds(50))
    // The limit is 2 s.
    #expect(clock.now - began < .seconds(10))
    #expect(client.spanExporter?.counts.dropped == 2)
    #expect(warnings.events.last?.message == "2 spans were dropped, when the client shut down")
  }

  @Test("settings that cannot work are refused by name, and no text shows the secret fields")
  func settings() throws {
    let url = try HTTPURL("http://127.0.0.1:4318")
    func error(_ change: (inout ClientConfiguration.Telemetry) -> Void) -> String? {
      var telemetry = ClientConfiguration.Telemetry(collector: url, serviceName: "tests")
      change(&telemetry)
      var configuration = ClientConfiguration()
      configuration.telemetry = telemetry
      do throws(NetOptError) {
        _ = try configuration.checked()
        return nil
      } catch { return error.code == .invalidConfiguration ? error.message : "another error" }
    }
    #expect(error { _ in } == nil)
    for share in [-0.1, 1.1, .nan, .infinity] {
      #expect(error { $0.sampledShare = share }?.contains("telemetry.sampledShare") == true)
    }
    #expect(error { $0.serviceName = "" }?.contains("serviceName") == true)
    #expect(error { $0.collector = url.adding(query: ["a": "b"]) }?.contains("query") == true)
    #expect(error { $0.headers = ["Host": "a.test"] }?.contains("the field Host") == true)
    let fault = try #require(error { $0.headers = ["X-Key": "hunter2\r\nA: b"] })
    #expect(fault.contains("X-Key") && !fault.contains("hunter2"))
    var text = ""
    var below = try Self.telemetry()
    dump(below, to: &text)
    #expect(!"\(below) \(text)".contains("hunter2"))
    #expect(below.tracesURL.description == "http://127.0.0.1:4318/v1/traces")
    below.collector = try HTTPURL("https://collector.test/otlp")
    #expect(below.tracesURL.description == "https://collector.test/otlp/v1/traces")
  }

  @Test("fields of requests to the collector have the form of OTEL_EXPORTER_OTLP_HEADERS")
  func headers() {
    let read = ClientConfiguration.Telemetry.headers
    #expect(read("a=b, X-Key = c%20d=%2C ,") == ["a": "b", "X-Key": "c d=,"])
    #expect(read("") == [:])
    for text in ["a", "a=b,c", "=b", "a b=c", "a=%0A", "a=%ff"] { #expect(read(text) == nil, "\(text)") }
  }
}
