import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptRouting

/// Sends the spans of a client to a collector: a batch of 512 at once, and the rest 5 s after the first. Safe
/// from any thread.
///
/// A batch that the collector cannot take now is sent again with growing waits, as OTLP asks, while further
/// spans wait in the queue. So no span is lost unless the queue is full, the collector refuses it, or the client
/// ends first. The collector gets a batch twice if its response is lost.
final class SpanExporter: Sendable {
  /// The times of an exporter.
  struct Times: Sendable {
    /// How long spans wait for others.
    var interval = Duration.seconds(5)
    /// The time limit of a request.
    var request = Duration.seconds(10)
    /// The time limit of what is left at the shutdown.
    var finish = Duration.seconds(2)
    /// The shortest and the longest wait before a batch is sent again.
    var waits = Duration.seconds(1)...Duration.seconds(60)
  }

  private let times: Times
  private let telemetry: ClientConfiguration.Telemetry
  private let queue: SpanQueue
  /// Sends a request past the metrics, observers and interceptors of the client.
  private let perform: @Sendable (NetOptRequest) async throws(NetOptError) -> NetOptResponse
  private let warn: @Sendable (NetOptError) -> Void
  private let task = Locked<Task<Void, Never>?>(nil)

  /// What has become of the spans.
  private struct Progress {
    /// The number of exported spans.
    var exported = 0
    /// The number of dropped spans that were reported.
    var reportedDrops = 0
    /// Whether the last batch failed. One warning is enough until a batch succeeds again.
    var isFailing = false
  }

  private let progress = Locked(Progress())

  init(
    _ telemetry: ClientConfiguration.Telemetry, _ queue: SpanQueue, times: Times = Times(),
    warn: @escaping @Sendable (NetOptError) -> Void,
    perform: @escaping @Sendable (NetOptRequest) async throws(NetOptError) -> NetOptResponse
  ) {
    self.telemetry = telemetry
    self.queue = queue
    self.times = times
    self.warn = warn
    self.perform = perform
  }

  /// The numbers of spans that were exported and dropped.
  var counts: (exported: Int, dropped: Int) { (progress.withLock(\.exported), queue.dropped) }

  /// Exports spans until `stop` or `finish`.
  func start() {
    // The task lasts as long as the client, so it takes neither priority nor values of the task that makes it.
    task.withLock { $0 = Task.detached(priority: .utility) { await self.run() } }
  }

  /// Stops without a further export.
  func stop() { task.withLock { $0 }?.cancel() }

  /// Sends the spans that are left, and stops. Lets a running export end. Cancels everything after 2 s. A second
  /// call waits for the same end.
  func finish() async {
    guard let task = task.withLock({ $0 }) else { return }
    queue.close()
    let limit = Task {
      if (try? await Task.sleep(for: times.finish)) != nil { task.cancel() }
    }
    await task.value
    limit.cancel()
    queue.end()
    reportDrops("when the client shut down")
  }

  private func run() async {
    while !Task.isCancelled {
      await queue.wait(for: 1)
      await pause(times.interval, orUntil: SpanQueue.batch)
      // Spans that end meanwhile wait for others again, unless they are a batch.
      repeat {
        let spans = queue.take()
        if !spans.isEmpty { await export(spans) }
      } while !Task.isCancelled && queue.count >= (queue.isClosed ? 1 : SpanQueue.batch)
      if queue.isClosed { return }
    }
  }

  /// Waits for a time, or until there are so many spans, the queue is closed, or the task is cancelled.
  private func pause(_ time: Duration, orUntil count: Int) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.queue.wait(for: count) }
      group.addTask { try? await Task.sleep(for: time) }
      await group.next()
      group.cancelAll()
    }
  }

  /// Sends a batch until the collector takes or refuses it. Sends it only once when the client shuts down.
  private func export(_ spans: [Span]) async {
    var wait = times.waits.lowerBound
    while true {
      switch await send(spans) {
      case .done: return
      case .refused: return queue.countDropped(spans.count)
      case .later(let asked):
        if queue.isClosed || Task.isCancelled { return queue.countDropped(spans.count) }
        // A random part, so that the clients of a collector do not come back at the same time.
        let time = max(asked ?? .zero, wait * Double.random(in: 0.5...1))
        await pause(min(time, times.waits.upperBound), orUntil: .max)
        wait = min(wait * 2, times.waits.upperBound)
      }
    }
  }

  /// How the collector answered.
  private enum Answer {
    case done
    /// It will never take the batch.
    case refused
    /// It may take the batch later, after the wait that it asks for.
    case later(Duration?)
  }

  private func send(_ spans: [Span]) async -> Answer {
    var request = NetOptRequest(
      .post, telemetry.tracesURL, headers: telemetry.headers,
      body: .bytes(SpanDocument(spans, of: telemetry).bytes))
    request.headers["Content-Type"] = "application/json"
    request.options.timeout = times.request
    request.options.maxRedirects = 0
    let response: NetOptResponse
    do throws(NetOptError) { response = try await perform(request) } catch {
      if error.code != .cancelled, error.code != .shutDown { report(error.message, error) }
      // The client itself refuses the request, so it would refuse it again.
      return error.code == .invalidRequest ? .refused : .later(nil)
    }
    switch response.status {
    case 200..<300:
      await took(spans.count, response)
      return .done
    // OTLP names the statuses after which a batch may be sent again.
    case 429, 502, 503, 504:
      report("the collector answered with status \(response.status)", nil)
      return .later(RetryAfter.delay(response.head) { Date() })
    default:
      report("the collector answered with status \(response.status), so the spans are dropped", nil)
      return .refused
    }
  }

  /// Counts a batch that the collector took, perhaps without some spans.
  private func took(_ count: Int, _ response: NetOptResponse) async {
    // A body that cannot be read says nothing of refusals.
    let answer = (try? await response.body.collect(upTo: 1 << 16)).flatMap { Self.partialSuccess($0) }
    let refused = min(max(0, answer.flatMap { Int($0.rejectedSpans) } ?? 0), count)
    progress.withLock { $0.exported += count - refused }
    queue.countDropped(refused)
    if refused > 0 {
      let reason = answer?.errorMessage.map { ": \($0.printable(200))" } ?? ""
      report("the collector refused \(refused) of \(count) spans\(reason)", nil)
    } else {
      progress.withLock { $0.isFailing = false }
      reportDrops("because the collector did not take them, or more than \(SpanQueue.most) waited")
    }
  }

  /// A successful response that refuses some spans (ExportTraceServiceResponse).
  private struct PartialSuccess: Decodable {
    struct Part: Decodable {
      /// A 64-bit number, which is a string in the JSON of protocol buffers. Some collectors write a number.
      let rejectedSpans: String
      /// Why, for people.
      let errorMessage: String?

      private enum Key: CodingKey { case rejectedSpans, errorMessage }

      init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        rejectedSpans =
          try (try? container.decode(String.self, forKey: .rejectedSpans))
          ?? String(container.decode(Int64.self, forKey: .rejectedSpans))
        errorMessage = try? container.decode(String.self, forKey: .errorMessage)
      }
    }

    let partialSuccess: Part
  }

  private static func partialSuccess(_ body: [UInt8]) -> PartialSuccess.Part? {
    try? JSONDecoder().decode(PartialSuccess.self, from: Data(body)).partialSuccess
  }

  /// Reports how many spans were dropped since the last report, if any.
  private func reportDrops(_ reason: String) {
    let dropped = queue.dropped
    let new = progress.withLock { progress in
      defer { progress.reportedDrops = dropped }
      return dropped - progress.reportedDrops
    }
    if new > 0 {
      warn(NetOptError(.receiveFailed, phase: .receive, "\(new) spans were dropped, \(reason)"))
    }
  }

  /// Reports a failed batch, if the one before did not fail.
  private func report(_ reason: String, _ error: NetOptError?) {
    let isNew = progress.withLock { progress in
      defer { progress.isFailing = true }
      return !progress.isFailing
    }
    guard isNew else { return }
    warn(
      NetOptError(
        error?.code ?? .receiveFailed, phase: error?.phase ?? .receive,
        "spans could not be exported to \(telemetry.tracesURL.shown): \(reason)", endpoint: error?.endpoint,
        underlying: error?.underlying, isRetryable: true, route: error?.route))
  }
}
