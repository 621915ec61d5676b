import NetOptCore

/// Formats the times of a table or sentence in milliseconds, all with an equal number of decimals.
struct Milliseconds {
  /// The number of decimals, 0 to 3.
  let decimals: Int

  /// Chooses the number of decimals so that the smallest time gets at least three digits: `0.812`, `8.12`,
  /// `81.2`, `1240`.
  ///
  /// - Parameter microseconds: the smallest time in microseconds; `nil` counts as 10 ms.
  init(smallest microseconds: Int64?) {
    decimals =
      switch microseconds ?? 10_000 {
      case ..<1_000: 3
      case ..<10_000: 2
      case ..<1_000_000: 1
      default: 0
      }
  }

  /// The time that a 1 in the last printed digit stands for, in microseconds.
  var unit: Int64 { [0: 1_000, 1: 100, 2: 10][decimals] ?? 1 }

  /// Formats a time given in microseconds as milliseconds: `24.1`. Halves are rounded away from 0.
  func text(_ microseconds: Int64) -> String {
    let units = Int64((microseconds.magnitude + unit.magnitude / 2) / unit.magnitude)
    return Self.decimal(microseconds < 0 ? -units : units, decimals)
  }

  /// Formats a relative change in percent, with its sign and without a percent sign: `-18.3` for -0.183.
  static func percent(_ share: Double) -> String {
    let tenths = Int64(clamped: (share * 1000).rounded())
    return (tenths > 0 ? "+" : "") + decimal(tenths, 1)
  }

  /// Formats `units` divided by 10 to the power of `digits`, with that many decimals: `decimal(1234, 2)` is
  /// `12.34`.
  static func decimal(_ units: Int64, _ digits: Int) -> String {
    if digits == 0 { return "\(units)" }
    let base = (0..<digits).reduce(Int64(1)) { power, _ in power * 10 }
    let fraction = String(units.magnitude % UInt64(base))
    let padding = String(repeating: "0", count: digits - fraction.count)
    return (units < 0 ? "-" : "") + "\(units.magnitude / UInt64(base)).\(padding)\(fraction)"
  }
}
