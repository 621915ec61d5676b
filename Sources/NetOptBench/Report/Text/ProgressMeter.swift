package import NetOptCore

/// Decides when progress is written, and how.
package struct ProgressMeter: Sendable {
  /// Where progress goes.
  package enum Style: Sendable {
    /// One line of a terminal that is written again and again; the terminal has to understand ECMA-48.
    case terminal
    /// A line now and then, for a log.
    case lines
    /// Nowhere.
    case silent
  }

  private let style: Style
  private var last: MonotonicInstant
  private var isDrawn = false

  /// Makes a meter.
  ///
  /// - Parameter start: when the run began.
  package init(_ style: Style, start: MonotonicInstant) {
    self.style = style
    last = start
  }

  /// What is to be written now, or `nil`: on a terminal every 100 ms at most, otherwise every 10 s.
  ///
  /// - Parameter columns: how many characters fit on a line of the terminal, which may have another size each time; asked only when
  ///   something is written.
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

  /// What is to be written before anything else may be, or `nil`.
  package mutating func clear() -> String? {
    guard isDrawn else { return nil }
    isDrawn = false
    return Self.erase
  }

  /// Goes to the start of the line and erases it (ECMA-48: CR, EL).
  private static let erase = "\r\u{1b}[K"
}
