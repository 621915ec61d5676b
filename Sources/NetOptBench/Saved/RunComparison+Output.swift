package import NetOptCore

extension RunComparison {
  /// The note in the text output when the file of a run does not contain the serial dependence of its
  /// requests.
  package static let independence =
    "a run does not record how its requests depend on each other, so they count as independent: "
    + "if they are dependent, the p values are too small"

  /// The comparison as JSON: `docs/schemas/compare.schema.json`.
  package var json: JSONValue {
    [
      "schema_version": 1, "tool": "netopt compare",
      "before": .array(runs.before.map(JSONValue.string)), "after": .array(runs.after.map(JSONValue.string)),
      "interleaved": false,
      "comparisons": .array(
        entries.map { entry in
          [
            "target": .string(entry.id), "block": .string(entry.block.rawValue),
            "before_us": .integer(entry.before), "after_us": .integer(entry.after),
            "shift_us": .integer(entry.shift),
            "lo": .number(entry.interval.lowerBound.rounded()),
            "hi": .number(entry.interval.upperBound.rounded()),
            "p": .number(entry.p), "p_adjusted": .number(entry.adjusted), "method": "rank-sum of histograms",
            "significant": .bool(entry.isSignificant),
            "dependence_known": .bool(entry.knowsDependence),
          ]
        }),
      "lost": .array(
        lost.map { loss in
          [
            "target": .string(loss.id), "block": .string(loss.block.rawValue),
            "before_us": .integer(loss.before), "reason": .string(loss.reason),
          ]
        }),
      "failures": .array(
        failures.map { found in
          func count(_ count: (count: Int, of: Int)) -> JSONValue {
            ["failed": .integer(Int64(count.count)), "n": .integer(Int64(count.of))]
          }
          return [
            "target": .string(found.id), "before": count(found.before), "after": count(found.after),
            "p": .number(found.test.p), "p_adjusted": .number(found.adjusted),
            "method": .string(found.test.method.rawValue), "significant": .bool(found.isSignificant),
          ]
        }),
      "missing": .array(missing.map(JSONValue.string)), "regression": .bool(hasRegression),
    ]
  }

  /// The comparison as text.
  package var text: String {
    let time = Milliseconds(smallest: entries.map { min($0.before, $0.after) }.min())
    let names = "\(runs.before.joined(separator: "+")) -> \(runs.after.joined(separator: "+"))"
    var lines = [TextLayout.cut("netopt compare  \(TextLayout.printable(names))", to: TextLayout.width), ""]
    if !entries.isEmpty {
      let width = min(24, max(13, entries.map(\.id.count).max() ?? 0))
      lines.append(
        TextLayout.left("TARGET", width) + TextLayout.right("before", 10) + TextLayout.right("after", 10)
          + "   p50, ms [difference]")
      for entry in entries {
        let ends = [entry.interval.lowerBound, entry.interval.upperBound].map {
          time.text(Int64(clamped: $0.rounded()))
        }
        let verdict =
          entry.isSignificant
          ? Milliseconds.percent(entry.relative) + "%"
          : "~ (\(PValue.text(entry.adjusted)))"
        let cells =
          TextLayout.right(time.text(entry.before), 10) + TextLayout.right(time.text(entry.after), 10) + "   "
          + "\(verdict) [\(ends.joined(separator: " "))]" + (entry.block == .cold ? " cold" : "")
        lines += TextLayout.row(TextLayout.printable(entry.id), width, cells)
      }
      lines.append("")
    }
    for loss in lost {
      lines += TextLayout.hanging(
        "LOST    ",
        "\(TextLayout.printable(loss.id)): p50 \(Milliseconds(smallest: loss.before).text(loss.before)) ms before "
          + "(\(loss.block.rawValue)), none after: \(TextLayout.printable(loss.reason))")
    }
    for found in failures {
      let change = found.isSignificant ? (found.isWorse ? "more" : "fewer") : "no significant difference"
      lines += TextLayout.hanging(
        "FAILED  ",
        "\(TextLayout.printable(found.id)): \(found.before.count) of \(found.before.of) requests before, "
          + "\(found.after.count) of \(found.after.of) after, \(change) (\(PValue.text(found.adjusted)))")
    }
    if !missing.isEmpty {
      lines += TextLayout.hanging(
        "NOTE    ",
        "not compared, because a median is missing: \(TextLayout.printable(missing.joined(separator: ", ")))")
    }
    if assumesIndependence { lines += TextLayout.hanging("NOTE    ", Self.independence) }
    lines += TextLayout.hanging("NOTE    ", Self.caution)
    return lines.map { $0 + "\n" }.joined()
  }
}
