import Glibc
import NetOptCore
import NetOptCrypto
import NetOptLocking

/// Gives calls and attempts their spans, and keeps the recorded ones for the exporter. Safe from any thread.
final class Tracer: Sendable {
  /// The recorded spans that have ended.
  let spans: SpanQueue
  let timeSource: any TimeSource
  /// Traces whose random part is below this number are recorded.
  private let sampledBelow: UInt64
  /// Random numbers that were not given out yet. The system makes many at once, because each time costs a system
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

  /// Returns a random number that is not 0, such as the identifier of a span.
  func number() -> UInt64 {
    random.withLock { numbers in
      while true {
        if let number = numbers.popLast() {
          if number != 0 { return number }
        } else if let bytes = try? randomBytes(64 * 8) {
          bytes.withUnsafeBytes { numbers.append(contentsOf: $0.bindMemory(to: UInt64.self)) }
        } else {
          // OpenSSL has no random numbers. Those of Swift cost a system call each.
          numbers.append(UInt64.random(in: 1 ... .max))
        }
      }
    }
  }
}
