package import NetOptCore

/// Decides when to write progress, and in which form.
package struct ProgressMeter: Sendable {
  /// The form of the progress output.
  package enum Style: Sendable {
    /// One terminal line that is rewritten repeatedly. The terminal must understand ECMA-48.
    case terminal
    /// A new line at most every 10 s, for a log.
    case lines
    /// No output.
    case silent
  }

  private let style: Style
  /// When the meter last returned progress to write. Before the first time, the start of the run.
  private var last: MonotonicInstant
  /// Whether the current line of the terminal shows progress. Only for the style `terminal`.
  private var isDrawn = false

  /// Makes a meter.
  ///
  /// - Parameter start: the moment when the run began.
  package init(_ style: Style, start: MonotonicInstant) {
    self.style = style
    last = start
  }

  /// The text to write now, or `nil` when it is too early to write. A terminal gets progress at most every
  /// 100 ms, but a terminal that shows no progress gets it at once. A log gets a line at most every 10 s.
  ///
  /// - Parameter columns: the width of the terminal in characters. It may change between calls. It is
  ///   evaluated only when the meter writes to a terminal.
  package mutating func update(
    _ progress: BenchProgress, at now: MonotonicInstant, columns: @autoclosure () -> Int = TextLayout.width
  ) -> String? {
    switch style {
    case .silent: return nil
    case .lines:
      guard now - last >= .seconds(10) else { return nil }
      last = now
      return progress.text() + "\n"
    case .terminal:
      guard !isDrawn || now - last >= .milliseconds(100) else { return nil }
      last = now
      isDrawn = true
      return Self.erase + progress.text(columns: columns())
    }
  }

  /// The text that removes the progress from the terminal. Write it before any other output. `nil` when the
  /// terminal shows no progress.
  package mutating func clear() -> String? {
    guard isDrawn else { return nil }
    isDrawn = false
    return Self.erase
  }

  /// Moves the cursor to the start of the line and erases the line (ECMA-48: CR, EL).
  private static let erase = "\r\u{1b}[K"
}
