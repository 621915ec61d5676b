import NetOptBench
import NetOptCore
import NetOptLocking

/// Shows the progress of a run on standard error. Thread-safe.
final class ProgressOutput: Sendable {
  private let meter: Locked<ProgressMeter>
  private let output: any ByteOutput
  private let columns: @Sendable () -> Int
  private let timeSource: any TimeSource

  /// Creates an output on a context's standard error. On a terminal, it redraws one line. Elsewhere, and on a
  /// terminal with `TERM=dumb`, it prints a new line from time to time.
  init(_ context: CommandContext, isQuiet: Bool, timeSource: any TimeSource = SystemTimeSource()) {
    let output = context.errors
    let canErase = output.isTerminal && context.variable("TERM") != "dumb"
    let style: ProgressMeter.Style = isQuiet ? .silent : canErase ? .terminal : .lines
    // Evaluated for each update, because the size of the window may change.
    columns = { context.lineWidth }
    meter = Locked(ProgressMeter(style, start: timeSource.now()))
    self.output = output
    self.timeSource = timeSource
  }

  /// Shows the current progress if an update is due.
  func show(_ progress: BenchProgress) {
    write { meter, now in meter.update(progress, at: now, columns: columns()) }
  }

  /// Erases the progress line, so that other output can follow.
  func clear() {
    write { meter, _ in meter.clear() }
  }

  /// Writes a text and ignores failures: a failure to show progress must not end the run.
  private func write(_ text: (inout ProgressMeter, MonotonicInstant) -> String?) {
    let now = timeSource.now()
    if let text = meter.withLock({ text(&$0, now) }) { try? output.write(text) }
  }
}
