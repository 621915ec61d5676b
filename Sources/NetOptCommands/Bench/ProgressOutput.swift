import NetOptBench
import NetOptCore
import NetOptLocking

/// Shows the progress of a run on standard error. Thread-safe.
final class ProgressOutput: Sendable {
  /// Formats the progress, and decides when an update is due.
  private let meter: Locked<ProgressMeter>
  /// Standard error.
  private let output: any ByteOutput
  /// Returns the current number of characters per line.
  private let columns: @Sendable () -> Int
  private let timeSource: any TimeSource

  /// Creates an output on the standard error of a context. On a terminal, the output redraws one line. If
  /// standard error is not a terminal, or if `TERM` is "dumb", the output prints a new line from time to
  /// time.
  ///
  /// - Parameter isQuiet: whether to show nothing.
  init(_ context: CommandContext, isQuiet: Bool, timeSource: any TimeSource = SystemTimeSource()) {
    let output = context.errors
    let canErase = output.isTerminal && context.variable("TERM") != "dumb"
    let style: ProgressMeter.Style = isQuiet ? .silent : canErase ? .terminal : .lines
    // Asks for the width at each update, because the size of the window may change.
    columns = { context.lineWidth }
    meter = Locked(ProgressMeter(style, start: timeSource.now()))
    self.output = output
    self.timeSource = timeSource
  }

  /// Shows the current progress if an update is due.
  func show(_ progress: BenchProgress) {
    write { meter, now in meter.update(progress, at: now, columns: columns()) }
  }

  /// Erases the progress line of a terminal, so that other output can follow.
  func clear() {
    write { meter, _ in meter.clear() }
  }

  /// Writes the text that the closure returns. Ignores failures, because progress is not important enough to
  /// end the run.
  private func write(_ text: (inout ProgressMeter, MonotonicInstant) -> String?) {
    let now = timeSource.now()
    if let text = meter.withLock({ text(&$0, now) }) { try? output.write(text) }
  }
}
