import NetOptSigning

/// The text report of `netopt verify`.
struct VerificationText {
  private let report: VerificationReport

  init(_ report: VerificationReport) { self.report = report }

  /// The report as text: the verdict, the result of each check, and the explanation of a mismatch. If the
  /// string that the signer signed is known, "^" marks its first byte that differs from the verifier's.
  var text: String {
    var lines: [String] = []
    if report.isValid {
      lines.append(
        "valid: \(report.scheme.rawValue), key \(report.keyID ?? ""), assurance \(report.assurance.rawValue)")
    } else {
      lines.append("invalid: \(report.reason.rawValue): \(report.detail)")
    }
    lines += report.checks.map { check in
      "  \(check.ok ? "ok  " : "FAIL")  \(Text.left(check.name, 10)) \(check.detail)"
    }
    if let miss = report.nearMiss {
      lines += ["", "near miss: \(miss.code)", "  \(miss.detail)"]
      if let difference = miss.firstDifference { lines += marked(difference) }
    }
    if let difference = report.firstDifference {
      lines += ["", "the signer's string differs:"] + marked(difference)
    }
    if let canonical = report.canonicalRequest { lines += listed("canonical request", canonical) }
    if let string = report.stringToSign { lines += listed("string to sign", string) }
    if let signature = report.expectedSignature {
      lines += ["", "expected signature (keep it secret): \(signature)"]
    }
    return Text.lines(lines.map(Text.printable))
  }

  /// The maximum number of bytes to show before the differing byte.
  private static let lead = 40
  /// The maximum number of bytes of a line to show.
  private static let width = 100

  /// Returns the verifier's line and the signer's line around the first differing byte, and a line with "^"
  /// below this byte. Shows bytes that are not printable ASCII as ".", so that the mark is in the right
  /// column.
  private func marked(_ difference: VerificationReport.Difference) -> [String] {
    let start = max(difference.byte - 1 - Self.lead, 0)
    func part(_ line: String) -> String {
      let bytes = line.utf8.dropFirst(start).prefix(Self.width)
      return (start > 0 ? "…" : " ")
        + bytes.map { (0x20...0x7e).contains($0) ? String(UnicodeScalar($0)) : "." }.joined()
    }
    return [
      "  line \(difference.line), byte \(difference.byte):",
      "    verifier: \(part(difference.ours))",
      "    signer:   \(part(difference.theirs))",
      "              " + Text.spaces(difference.byte - start) + "^",
    ]
  }

  /// Returns a title, and the lines of a text with "|" before each.
  private func listed(_ title: String, _ text: String) -> [String] {
    ["", "\(title):"]
      + text.split(separator: "\n", omittingEmptySubsequences: false).map { "  | \($0)" }
  }
}
