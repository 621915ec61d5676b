import NetOptCore

/// The phase bars of the text report. Each target has a bar of letters. Each phase has a letter of its own
/// (`SamplePhase.letter`). The more often the letter occurs, the longer the phase. All bars have the same
/// scale.
struct PhaseBars {
  /// The phases of one target.
  struct Row {
    /// The target's name.
    let name: String
    /// The medians of the phases in chronological order, in microseconds. Medians that would print as 0 are
    /// left out.
    let medians: [(phase: SamplePhase, microseconds: Int64)]
  }

  private let rows: [Row]
  /// The format of the numbers beside the bars.
  private let time: Milliseconds

  /// Makes the bars; `nil` when no target has a median of a phase.
  ///
  /// - Parameter block: the block whose medians the bars show.
  init?(_ results: [BenchReport.TargetResult], _ block: Block) {
    let medians = results.compactMap { result -> (String, [(SamplePhase, Int64)])? in
      guard let phases = result.blocks[block]?.phases else { return nil }
      let values = SamplePhase.allCases.compactMap { phase in
        phases[phase]?.value(.p50).map { (phase, $0) }
      }
      return values.isEmpty ? nil : (result.target.id, values)
    }
    guard !medians.isEmpty else { return nil }
    let totals = medians.map { $0.1.reduce(0) { $0 + $1.1 } }
    let time = Milliseconds(smallest: totals.min())
    self.time = time
    rows = medians.map { name, values in
      // A median that would print as 0.0 gets no letter, so that letters and numbers correspond.
      Row(
        name: name, medians: values.filter { $0.1 * 2 >= time.unit }.map { (phase: $0.0, microseconds: $0.1) }
      )
    }
  }

  /// The lines: a bar and its numbers for each target, then the legend of the letters.
  ///
  /// - Parameter nameWidth: the width of the column with the targets' names, in characters.
  func lines(nameWidth: Int) -> [String] {
    let numbers = rows.map { $0.medians.map { time.text($0.microseconds) }.joined(separator: "+") }
    let numberWidth = numbers.map(\.count).max() ?? 0
    let barWidth = max(12, TextLayout.width - nameWidth - numberWidth - 4)
    let longest = rows.map { $0.medians.reduce(0) { $0 + $1.microseconds } }.max() ?? 0
    // Every phase gets at least one letter. The calculation reserves these letters before it shares out the
    // rest of the width.
    let letters = rows.map(\.medians.count).max() ?? 0
    let scale = Double(max(0, barWidth - letters)) / Double(max(longest, 1))
    let lines = zip(rows, numbers).flatMap { row, numbers in
      let bar = Self.bar(row.medians, scale: scale)
      return TextLayout.row(" " + row.name, 1 + nameWidth, " \(TextLayout.left(bar, barWidth))  \(numbers)")
        .map { TextLayout.cut($0, to: TextLayout.width) }
    }
    let used = SamplePhase.allCases.filter { phase in
      rows.contains { $0.medians.contains { $0.phase == phase } }
    }
    let legend = used.map { "\($0.letter) \($0.rawValue)" }.joined(separator: "  ")
    return lines + [String(repeating: " ", count: nameWidth + 2) + legend]
  }

  /// The letters of a bar.
  ///
  /// - Parameter scale: the number of letters per microsecond.
  private static func bar(_ medians: [(phase: SamplePhase, microseconds: Int64)], scale: Double) -> String {
    medians.map { phase, microseconds in
      String(repeating: phase.letter, count: max(1, Int(clamped: (Double(microseconds) * scale).rounded())))
    }.joined()
  }
}

extension SamplePhase {
  /// The letter of the phase in a bar.
  var letter: String {
    switch self {
    case .queue: "Q"
    case .dns: "D"
    case .tcp: "T"
    case .tls: "S"
    case .send: "R"
    case .wait: "W"
    case .transfer: "X"
    }
  }
}
