/// A set of texts to search for in names, ignoring case. Each text has at least two letters. A search
/// allocates no memory, because the cache searches the field names of every request that it may serve.
package final class NamePatterns: Sendable {
  /// The way in which a text must match a name.
  private enum MatchMode { case substring, word, wholeName }

  /// A text in lower case and its match mode.
  private typealias Pattern = (text: [UInt8], mode: MatchMode)

  /// The patterns, indexed by `beginning` of their first two bytes. Few pairs of letters in a name begin a
  /// pattern, so a search compares few patterns.
  private let byBeginning: [[Pattern]]

  /// Creates a set of patterns. Ignores texts of fewer than two bytes.
  ///
  /// - Parameters:
  ///   - parts: the texts that may occur anywhere in a name.
  ///   - words: the texts that must be a whole word of the name.
  ///   - names: the texts that must be the whole name.
  package init(parts: [String], words: [String], names: [String]) {
    var table = [[Pattern]](repeating: [], count: 1024)
    for (texts, mode) in [(parts, MatchMode.substring), (words, .word), (names, .wholeName)] {
      Self.add(texts, mode, to: &table)
    }
    byBeginning = table
  }

  private init(_ table: [[Pattern]]) { byBeginning = table }

  /// Returns a set with these patterns and further texts that must be the whole name. Ignores texts of fewer
  /// than two bytes.
  package func adding(names: some Sequence<String>) -> NamePatterns {
    var table = byBeginning
    Self.add(names, .wholeName, to: &table)
    return NamePatterns(table)
  }

  private static func add(_ texts: some Sequence<String>, _ mode: MatchMode, to table: inout [[Pattern]]) {
    for text in texts {
      let text = Array(text.loweredASCII.utf8)
      guard text.count > 1 else { continue }
      table[beginning(text[0], text[1])].append((text, mode))
    }
  }

  /// Returns the index in `byBeginning` for two letters, ignoring their case. Other bytes share their index
  /// with letters. This causes no wrong match, because `matches` compares the whole pattern.
  private static func beginning(_ first: UInt8, _ second: UInt8) -> Int {
    Int(first & 31) << 5 | Int(second & 31)
  }

  /// Whether any of the patterns matches a name.
  package func match(_ name: String) -> Bool {
    var name = name
    return name.withUTF8 { name in
      for index in name.indices.dropLast() {
        for pattern in byBeginning[Self.beginning(name[index], name[index + 1])]
        where Self.matches(pattern, at: index, in: name) {
          return true
        }
      }
      return false
    }
  }

  /// Whether a pattern matches the bytes of a name that begin at an index.
  private static func matches(
    _ pattern: Pattern, at start: Int, in name: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    let end = start + pattern.text.count
    guard end <= name.count, pattern.mode != .wholeName || start == 0 && end == name.count else {
      return false
    }
    for index in pattern.text.indices where lowered(name[start + index]) != pattern.text[index] {
      return false
    }
    return pattern.mode != .word || isWordBoundary(name, at: start) && isWordBoundary(name, at: end)
  }

  /// Whether a word of the name begins or ends before the byte at a position. The boundaries of words are the
  /// start and the end of the name, and the places next to a byte that is not a letter. A word also begins at
  /// a capital after a small letter (`apiKey`), and at the last of several capitals if a small letter follows
  /// (the K of `AWSKey`).
  private static func isWordBoundary(_ name: UnsafeBufferPointer<UInt8>, at position: Int) -> Bool {
    guard position > 0, position < name.count else { return true }
    let (before, after) = (name[position - 1], name[position])
    guard isLetter(before), isLetter(after) else { return true }
    guard after & 0x20 == 0 else { return false }
    return before & 0x20 != 0 || position + 1 < name.count && (0x61...0x7a).contains(name[position + 1])
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }

  private static func lowered(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }
}
