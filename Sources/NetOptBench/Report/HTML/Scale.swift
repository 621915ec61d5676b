import Glibc
import NetOptCore

/// The scale of a chart's axis. It maps values to positions from 0, at the start of the axis, to 1.
struct Scale {
  /// The kind of a scale.
  enum Kind {
    /// Positions are proportional to the values.
    case linear
    /// Positions are proportional to the logarithms of the values.
    case logarithmic
    /// The values are shares from 0 to 1. Positions are proportional to the negative logarithm of the
    /// remaining share (1 minus the value), so that 90, 99 and 99.9 % are equally far apart.
    case tail
  }

  private let kind: Kind
  /// The value at position 0, converted as the kind demands: unchanged for `linear`, its decimal logarithm
  /// for `logarithmic`, and the result of `tail(_:)` for `tail`.
  private let low: Double
  /// The value at position 1, converted in the same way as `low`.
  private let high: Double
  /// The values at the tick marks of the axis, and their labels.
  let ticks: [(value: Double, label: String)]

  /// Makes a scale that covers at least the values from `lowest` to `highest`. Linear and logarithmic scales
  /// are extended to the next tick mark on each side. A scale of the kind `tail` always begins at 0.
  init(_ kind: Kind, _ lowest: Double, _ highest: Double) {
    self.kind = kind
    switch kind {
    case .linear:
      let step = Self.step((highest - lowest) / 6)
      let first = (lowest / step).rounded(.down)
      let last = max(first + 1, (highest / step).rounded(.up))
      low = first * step
      high = last * step
      ticks = (Int(first)...Int(last)).map { (Double($0) * step, Self.label(Double($0) * step, step)) }
    case .logarithmic:
      let bottom = max(lowest, 1e-3)
      let marks = Self.decades(bottom, max(highest, bottom * 2))
      low = log10(marks.first ?? bottom)
      high = log10(marks.last ?? bottom * 10)
      ticks = marks.map { ($0, Self.label($0, $0)) }
    case .tail:
      let marks = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999].filter { $0 <= highest } + [highest]
      low = 0
      high = Self.tail(marks.last ?? 0.9)
      ticks = marks.dropLast().map { ($0, Self.percent($0)) }
    }
  }

  /// The position of a value. Values outside the scale have the position 0 or 1.
  func position(of value: Double) -> Double {
    let scaled =
      switch kind {
      case .linear: value
      case .logarithmic: log10(max(value, 1e-9))
      case .tail: Self.tail(value)
      }
    return high > low ? min(1, max(0, (scaled - low) / (high - low))) : 0
  }

  /// The negative decimal logarithm of the remaining share, 1 - `share`.
  private static func tail(_ share: Double) -> Double { -log10(max(1 - share, 1e-7)) }

  /// The distance between tick marks of a linear scale: the smallest number of the form 1, 2 or 5 times a
  /// power of 10 that is not below `rough`. 1 when `rough` is not a positive number.
  private static func step(_ rough: Double) -> Double {
    guard rough > 0, rough.isFinite else { return 1 }
    let power = pow(10, log10(rough).rounded(.down))
    return power * ([1, 2, 5, 10].first { rough <= power * $0 * 1.0000001 } ?? 10)
  }

  /// The tick marks of a logarithmic scale. They are 1, 2 and 5 times the powers of 10, or only the powers of
  /// 10 when there are more than three of them. The first mark is at or below `low`, and the last mark is at
  /// or above `high`.
  private static func decades(_ low: Double, _ high: Double) -> [Double] {
    let powers = Int(clamped: log10(low).rounded(.down))...Int(clamped: log10(high).rounded(.up))
    let factors: [Double] = powers.count > 3 ? [1] : [1, 2, 5]
    let all = powers.flatMap { power in factors.map { $0 * pow(10, Double(power)) } }
    let first = all.lastIndex { $0 <= low } ?? 0
    let last = all.firstIndex { $0 >= high } ?? all.count - 1
    return Array(all[first...max(first, last)])
  }

  /// Formats the value of a tick mark with as many decimals as `step` needs. On a linear scale, `step` is the
  /// distance between tick marks. On a logarithmic scale, it is the value itself.
  private static func label(_ value: Double, _ step: Double) -> String {
    let decimals = max(0, Int(clamped: (-log10(max(step, 1e-6))).rounded(.up)))
    let scale = pow(10, Double(decimals))
    return Milliseconds.decimal(Int64(clamped: (value * scale).rounded()), decimals)
  }

  /// Formats a share from 0 to 1 in percent without trailing zeros: 0.999 becomes `99.9`.
  private static func percent(_ share: Double) -> String {
    let text = Milliseconds.decimal(Int64(clamped: (share * 100_000).rounded()), 3)
    return text.contains(".")
      ? String(text.reversed().drop { $0 == "0" }.drop { $0 == "." }.reversed()) : text
  }
}
