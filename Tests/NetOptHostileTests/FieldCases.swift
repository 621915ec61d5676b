import NetOptCore

/// Odd field lines in the head of an HTTP/1.1 response (RFC 9112, sections 2.2 and 5; RFC 9110, section 5).
enum FieldCases {
  static let all: [HostileCase] = .together(folds, controls, names, lineEnds)

  /// Folded values, which continue on the next line (RFC 9112, section 5.2). The client replaces each fold
  /// with spaces, or rejects the response. Also values with long runs of combining marks or flags, with which
  /// functions of Swift for strings are slow (`SlowText`). The client rejects them.
  private static let folds: [HostileCase] = .together(
    .either(
      with: ExpectedAnswer(fields: ["X-Fold": "one two"]),
      ["fold", "fold-by-tab", "fold-behind-bare-lf", "fold-of-spaces"]),
    .either(with: ExpectedAnswer(fields: ["X-Fold": "one two three"]), ["fold-twice"]),
    .either(with: ExpectedAnswer(fields: ["X-Fold": "one"]), ["fold-of-an-empty-value"]),
    .either(with: ExpectedAnswer(fields: ["X-Fold": "one X-Answer: 0"]), ["fold-that-looks-like-a-field"]),
    .either([
      "fold-before-the-first-field", "fold-in-length", "fold-in-transfer-encoding",
    ]),
    .fails(["fold-hides-second-length"]),
    .fails([
      "marks", "marks-in-a-coding", "marks-in-cache-control", "marks-in-vary", "marks-in-folds", "flags",
      "flags-in-vary",
    ]),
    .answers(["thirty-marks-twice", "three-hundred-flags"]),
    .either([
      "fold-hides-no-store", "fold-hides-no-store-behind-lf", "fold-by-tab-hides-no-store",
      "fold-hides-vary-of-all",
    ]) { $0.mayBeStored = false })

  /// Control characters (RFC 9110, section 5.5). The client replaces CR, LF and NUL in a value with spaces,
  /// or rejects the response.
  private static let controls: [HostileCase] = .together(
    .either(with: ExpectedAnswer(fields: ["X-Odd": "one two"]), ["cr-in-value", "nul-in-value"]),
    .either(with: ExpectedAnswer(absent: ["X-Forged"]), ["cr-makes-a-field"]),
    .either(with: ExpectedAnswer(fields: ["X-Odd": "one"]), ["cr-at-the-end", "nul-at-the-end"]),
    .either(["cr-before-the-name", "cr-in-name", "nul-in-name", "bell-in-value", "delete-in-value"]),
    .either(["nul-hides-no-store", "cr-hides-no-store"]) { $0.mayBeStored = false })

  /// Odd names, and lines that are no field lines. Such a line makes the response invalid. It must not reach
  /// the caller as a field.
  private static let names: [HostileCase] = .together(
    .either([
      "field-like-a-status-line", "field-like-a-status-line-with-colon",
      "field-like-a-status-line-of-http2", "field-like-a-status-line-of-101", "space-before-colon",
      "tab-before-colon", "space-in-name", "empty-name", "no-colon", "quotes-in-name", "8-bit-name",
      "pseudo-field", "space-before-colon-of-length", "space-before-colon-of-transfer-encoding",
    ]),
    .either(["space-before-colon-hides-no-store"]) { $0.mayBeStored = false },
    .answers(["8-bit-value", "long-value", "head-in-pieces-of-a-byte"]),
    .answers(with: ExpectedAnswer(fields: ["X-Odd": "café"]), ["utf-8-value"]),
    .answers(with: ExpectedAnswer(fields: ["X-Odd": ""]), ["empty-value"]))

  /// Odd ends of lines (RFC 9112, section 2.2). LF alone may end a line; CR alone may not.
  private static let lineEnds: [HostileCase] = .together(
    .either(["bare-lf-everywhere", "bare-lf-at-the-end-of-the-head", "cr-cr-lf-at-line-ends"]),
    .fails(as: .lost, ["bare-cr-everywhere", "space-line-ends-the-head"]))
}
