import Glibc
import NetOptCore
import NetOptLocking

/// Gives calls and attempts their spans, and keeps the recorded ones for the exporter. Safe from any thread.
final class Tracer: Sendable {
  /// The recorded spans that have ended.
  let spans: SpanQueue
  let timeSource: any TimeSource
  /// Traces whose random part is below this number are recorded.
  private let sampledBelow: UInt64
  /// Random numbers that were not given out yet. The kernel makes many at once, because each time costs a system
  /// call. A generator with a seed would tell a server how many requests others get.
  private let random = Locked<[UInt64]>([])

  init(sampledShare: Double, _ spans: SpanQueue, _ timeSource: any TimeSource) {
    sampledBelow = UInt64(sampledShare * Double(Self.randomPart + 1))
    self.spans = spans
    self.timeSource = timeSource
  }

  /// The bits of an identifier on which the decision to record depends: the last 7 bytes, which the
  /// recommendation wants to be random.
  private static var randomPart: UInt64 { 1 << 56 - 1 }

  /// Begins the trace of a call: continues the trace of the request, or begins a new one.
  func trace(of request: NetOptRequest) -> CallTrace {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    let epoch =
      Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec) - timeSource.now().nanoseconds
    if let parent = TraceContext(request.headers) {
      return CallTrace(parent.with(spanID: number()), parent: parent, epoch: epoch)
    }
    let id = TraceContext.ID(high: number(), low: number())
    let isSampled = id.low & Self.randomPart < sampledBelow
    return CallTrace(
      TraceContext(traceID: id, spanID: number(), flags: isSampled ? TraceContext.sampled : 0), parent: nil,
      epoch: epoch)
  }

  /// The number of random numbers that the kernel makes at once: 256 bytes are the most of getentropy(3).
  private static var draws: Int { 32 }

  /// Returns some random numbers, at least one.
  private static func draw() -> [UInt64] {
    let numbers = [UInt64](unsafeUninitializedCapacity: draws) { buffer, count in
      count = getentropy(buffer.baseAddress, draws * 8) == 0 ? draws : 0
    }
    return numbers.isEmpty ? [UInt64.random(in: 1 ... .max)] : numbers
  }

  /// Returns a random number that is not 0, such as the identifier of a span.
  func number() -> UInt64 {
    random.withLock { numbers in
      while true {
        if let number = numbers.popLast() {
          if number != 0 { return number }
        } else {
          numbers = Self.draw()
        }
      }
    }
  }
}
