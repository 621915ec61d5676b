/// Finds texts that Swift compares or searches slowly because of long runs of certain scalars.
///
/// - Combining marks: Swift compares and hashes strings by canonical equivalence, for which it sorts each run
///   of marks. The sort takes time quadratic in the length of the run: 13 s for one comparison of 95 KB.
/// - Regional indicators, two of which are a flag: to find where a `Character` begins, Swift goes back to the
///   first indicator of the run. A search from the end takes quadratic time: 12 s for 1.5 MB.
///
/// Therefore code must not process an unchecked text of a peer as a `String`. The code either rejects a text
/// with a long run first, or processes only the bytes of the text.
package enum SlowText {
  /// The maximum number of combining marks in a row in Unicode's Stream-Safe Text Format (UAX #15, section
  /// 13). No language needs as many.
  package static let mostMarks = 30
  /// The maximum number of regional indicators in a row: 300 flags. There are fewer than 300 different flags.
  package static let mostIndicators = 600

  /// Counts the marks and the indicators in a row while a text is read scalar by scalar. Both counts are for
  /// the run that ends with the last scalar read.
  struct Run {
    private var marks = 0
    private var indicators = 0

    /// Adds the next scalar.
    ///
    /// - Returns: whether a run is now longer than `mostMarks` or `mostIndicators`.
    mutating func add(_ scalar: Unicode.Scalar) -> Bool {
      marks = SlowText.isMark(scalar) ? marks + 1 : 0
      indicators = SlowText.isIndicator(scalar) ? indicators + 1 : 0
      return marks > SlowText.mostMarks || indicators > SlowText.mostIndicators
    }
  }

  /// Whether a text has a run longer than `mostMarks` or `mostIndicators`.
  package static func hasLongRun(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { hasLongRun(UnsafeRawBufferPointer($0)) }
  }

  /// What is wrong with a text with a long run, in words for users: a noun phrase.
  package static let longRun =
    "more than \(mostMarks) combining marks or \(mostIndicators / 2) flags in a row, which no real text has"

  /// The reason for rejecting a text with a long run, in words for users: a sentence.
  package static let violation = "it has \(longRun)"

  /// Whether a text has a run longer than `mostMarks` or `mostIndicators`.
  ///
  /// - Parameter text: the text in UTF-8. Invalid bytes are treated as replacement characters.
  package static func hasLongRun(_ text: UnsafeRawBufferPointer) -> Bool {
    guard !isASCII(text) else { return false }
    var run = Run()
    var decoder = UTF8()
    var bytes = text.makeIterator()
    while true {
      switch decoder.decode(&bytes) {
      case .scalarValue(let scalar): if run.add(scalar) { return true }
      case .emptyInput: return false
      case .error: run = Run()
      }
    }
  }

  /// Returns a text of which every scalar is replaced by U+FFFD that belongs to a kind of which the text has
  /// a long run; the text itself if it has none. For texts of a file that are not worth an error of their
  /// own.
  package static func withoutLongRuns(_ text: String) -> String {
    guard hasLongRun(text) else { return text }
    var cleaned = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      cleaned.append(isMark(scalar) || isIndicator(scalar) ? "\u{fffd}" : scalar)
    }
    return String(cleaned)
  }

  /// Returns the reason why Foundation's JSON decoder must not read a text, in words for users; `nil` if it
  /// may. The decoder hashes the keys as strings, so a long run would take seconds. It also accepts UTF-16
  /// and UTF-32, in which the search finds no runs; RFC 8259, section 8.1, allows only UTF-8.
  package static func fault(ofJSON text: [UInt8]) -> String? {
    // Each ASCII character of a text in UTF-16 or UTF-32 has a byte that is zero.
    if text.contains(0) { return "it is not UTF-8, or contains a NUL" }
    return hasLongRun(inJSON: text) ? "a string is not usable: \(violation)" : nil
  }

  /// Whether a JSON text in UTF-8 has a run longer than `mostMarks` or `mostIndicators`. A scalar may be
  /// written as itself or as an escape (`\u0301`).
  package static func hasLongRun(inJSON text: [UInt8]) -> Bool {
    guard text.contains(UInt8(ascii: "\\")) else { return text.withUnsafeBytes { hasLongRun($0) } }
    // JSON escapes a scalar as one `\u` with four hexadecimal digits, or, from U+10000, as two (surrogates).
    var units: [UInt16] = []
    var resolved: [UInt8] = []
    var rest = text[...]
    func resolve() {
      resolved += String(decoding: units, as: UTF16.self).utf8
      units = []
    }
    while let byte = rest.first {
      if byte == UInt8(ascii: "\\"), let unit = escapedUnit(rest) {
        units.append(unit)
        rest = rest.dropFirst(6)
        continue
      }
      if !units.isEmpty { resolve() }
      // An escaped backslash does not begin another escape.
      let next = rest.dropFirst(byte == UInt8(ascii: "\\") ? 2 : 1)
      let end = next.firstIndex(of: UInt8(ascii: "\\")) ?? rest.endIndex
      resolved += rest[..<end]
      rest = rest[end...]
    }
    if !units.isEmpty { resolve() }
    return resolved.withUnsafeBytes { hasLongRun($0) }
  }

  /// Returns the UTF-16 code unit of the escape (`\u0301`) at the start of a text that begins with a
  /// backslash. Returns `nil` for any other escape.
  private static func escapedUnit(_ text: ArraySlice<UInt8>) -> UInt16? {
    guard text.count >= 6, text[text.startIndex + 1] == UInt8(ascii: "u") else { return nil }
    var unit: UInt16 = 0
    for byte in text.dropFirst(2).prefix(4) {
      guard let digit = Hex.digit(byte) else { return nil }
      unit = unit << 4 | UInt16(digit)
    }
    return unit
  }

  /// Whether a text is ASCII. Checks 32 bytes at a time, because this code runs for each response.
  private static func isASCII(_ text: UnsafeRawBufferPointer) -> Bool {
    var index = 0
    var bits: UInt64 = 0
    while index + 32 <= text.count {
      bits |= text.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      bits |= text.loadUnaligned(fromByteOffset: index + 8, as: UInt64.self)
      bits |= text.loadUnaligned(fromByteOffset: index + 16, as: UInt64.self)
      bits |= text.loadUnaligned(fromByteOffset: index + 24, as: UInt64.self)
      index += 32
    }
    while index + 8 <= text.count {
      bits |= text.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      index += 8
    }
    while index < text.count {
      bits |= UInt64(text[index])
      index += 1
    }
    return bits & 0x8080_8080_8080_8080 == 0
  }

  /// Whether a scalar is a regional indicator.
  private static func isIndicator(_ scalar: Unicode.Scalar) -> Bool {
    (0x1f1e6...0x1f1ff).contains(scalar.value)
  }

  /// Whether a scalar is a combining mark. U+0F73, U+0F75 and U+0F81 count as marks: they decompose into
  /// marks only, but have the combining class of a letter.
  static func isMark(_ scalar: Unicode.Scalar) -> Bool {
    // Scalars below U+0300 (Latin-1 and its extensions) are not marks. This test is cheaper than looking up
    // the class.
    if scalar.value < 0x300 { return false }
    return scalar.properties.canonicalCombiningClass != .notReordered
      || scalar == "\u{f73}" || scalar == "\u{f75}" || scalar == "\u{f81}"
  }
}
