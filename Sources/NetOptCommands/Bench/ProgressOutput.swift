import NetOptBench
import NetOptCore
import NetOptLocking

/// Shows how far a run has come, on standard error. Safe from any task.
final class ProgressOutput: Sendable {
  private let meter: Locked<ProgressMeter>
  private let output: any ByteOutput
  private let columns: @Sendable () -> Int
  private let timeSource: any TimeSource

  /// Makes an output on a context's standard error: one line on a terminal that is written anew, a line now and then elsewhere, and
  /// on a terminal that can do no more (`TERM=dumb`).
  init(_ context: CommandContext, isQuiet: Bool, timeSource: any TimeSource = SystemTimeSource()) {
    let output = context.errors
    let canErase = output.isTerminal && context.variable("TERM") != "dumb"
    let style: ProgressMeter.Style = isQuiet ? .silent : canErase ? .terminal : .lines
    // Asked for each time: a window changes its size.
    columns = { context.lineWidth }
    meter = Locked(ProgressMeter(style, start: timeSource.now()))
    self.output = output
    self.timeSource = timeSource
  }

  /// Shows a state, when it is time to.
  func show(_ progress: BenchProgress) {
    write { meter, now in meter.update(progress, at: now, columns: columns()) }
  }

  /// Takes the line away, so that something else can be written.
  func clear() {
    write { meter, _ in meter.clear() }
  }

  /// Nobody is served by a run that ends because its progress cannot be shown: a failure is passed over.
  private func write(_ text: (inout ProgressMeter, MonotonicInstant) -> String?) {
    let now = timeSource.now()
    if let text = meter.withLock({ text(&$0, now) }) { try? output.write(text) }
  }
}
