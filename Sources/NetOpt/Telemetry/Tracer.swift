import NetOptCore
import Synchronization

/// Gives calls and attempts their spans, and keeps the recorded ones for the exporter. Safe from any thread.
final class Tracer: Sendable {
  /// The recorded spans that have ended.
  let spans: SpanQueue
  let timeSource: any TimeSource
  /// Traces whose random part is below this number are recorded.
  private let sampledBelow: UInt64
  /// Where the sequences of identifiers begin. Random, so that no two clients give out the same ones.
  private let seeds: (UInt64, UInt64)
  /// How many identifiers were given out.
  private let given = Atomic<UInt64>(0)

  /// - Parameter random: the source of the seeds.
  init(
    sampledShare: Double, _ spans: SpanQueue, _ timeSource: any TimeSource,
    random: some RandomNumberGenerator = SystemRandomNumberGenerator()
  ) {
    var random = random
    seeds = (random.next(), random.next())
    sampledBelow = UInt64(sampledShare * Double(Self.randomPart + 1))
    self.spans = spans
    self.timeSource = timeSource
  }

  /// The bits of an identifier on which the decision to record depends: the last 7 bytes, which the
  /// recommendation wants to be random.
  private static var randomPart: UInt64 { 1 << 56 - 1 }

  /// Begins the trace of a call: continues the trace of the request, or begins a new one.
  func trace(of request: NetOptRequest) -> CallTrace {
    if let parent = TraceContext(request.headers) {
      return CallTrace(
        TraceContext(traceID: parent.traceID, spanID: spanID(), flags: parent.flags, state: parent.state),
        parentID: parent.spanID)
    }
    let number = given.wrappingAdd(1, ordering: .relaxed).newValue
    let id = TraceContext.ID(high: seeds.0, low: Self.mixed(seeds.1, number))
    let isSampled = id.low & Self.randomPart < sampledBelow
    return CallTrace(
      TraceContext(traceID: id, spanID: spanID(), flags: isSampled ? TraceContext.sampled : 0), parentID: nil)
  }

  /// Returns a new identifier of a span, which is not 0.
  func spanID() -> UInt64 {
    while true {
      let id = Self.mixed(seeds.0, given.wrappingAdd(1, ordering: .relaxed).newValue)
      if id != 0 { return id }
    }
  }

  /// Returns a number that looks random, another one for each `number` with the same seed.
  private static func mixed(_ seed: UInt64, _ number: UInt64) -> UInt64 {
    var random = SplitMix64(seed: seed &+ number &* 0x9e37_79b9_7f4a_7c15)
    return random.next()
  }

  /// Records the span of a call that has ended.
  ///
  /// - Parameter result: what the response was; `nil` without one.
  func callEnded(
    _ trace: CallTrace, _ request: SpanRequest, from started: MonotonicInstant, _ result: SpanResult
  ) {
    guard trace.context.isSampled else { return }
    spans.append(
      Span(
        trace.context, parentID: trace.parentID, .call, from: started, to: timeSource.now(), request, result))
  }
}
