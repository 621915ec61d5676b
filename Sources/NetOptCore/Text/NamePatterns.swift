/// Texts of two letters and more that are looked for in names, without regard to case. Looking allocates nothing: every request that may be
/// answered from the cache has the names of its fields looked at.
package final class NamePatterns: Sendable {
  /// Where in a name a text has to stand.
  private enum Place { case anywhere, asWord, alone }

  /// Small letters, and where they have to stand.
  private typealias Pattern = (text: [UInt8], place: Place)

  /// The patterns, by the two bytes that each begins with: nearly no two letters of a harmless name are among them.
  private let byBeginning: [[Pattern]]

  /// Makes patterns.
  ///
  /// - Parameters:
  ///   - parts: what may stand anywhere in a name.
  ///   - words: what has to be a word of it.
  ///   - names: what has to be all of it.
  package init(parts: [String], words: [String], names: [String]) {
    var table = [[Pattern]](repeating: [], count: 1024)
    for (texts, place) in [(parts, Place.anywhere), (words, .asWord), (names, .alone)] {
      for text in texts.map({ Array($0.loweredASCII.utf8) }) where text.count > 1 {
        table[Self.beginning(text[0], text[1])].append((text, place))
      }
    }
    byBeginning = table
  }

  /// One number for two letters of any case. Bytes that are no letters share the numbers of letters.
  private static func beginning(_ first: UInt8, _ second: UInt8) -> Int {
    Int(first & 31) << 5 | Int(second & 31)
  }

  /// Whether a name has one of the texts where it has to stand.
  package func match(_ name: String) -> Bool {
    var name = name
    return name.withUTF8 { name in
      for index in name.indices.dropLast() {
        for pattern in byBeginning[Self.beginning(name[index], name[index + 1])]
        where Self.stands(pattern, at: index, in: name) {
          return true
        }
      }
      return false
    }
  }

  private static func stands(_ pattern: Pattern, at start: Int, in name: UnsafeBufferPointer<UInt8>) -> Bool {
    let end = start + pattern.text.count
    guard end <= name.count, pattern.place != .alone || start == 0 && end == name.count else { return false }
    for index in pattern.text.indices where lowered(name[start + index]) != pattern.text[index] {
      return false
    }
    return pattern.place != .asWord || endsWord(name, at: start) && endsWord(name, at: end)
  }

  /// Whether a word ends at a position, or one begins: where a letter does not go on, before a capital behind a small letter, and before the
  /// last of several capitals in front of a small one (`AWSKey`).
  private static func endsWord(_ name: UnsafeBufferPointer<UInt8>, at position: Int) -> Bool {
    guard position > 0, position < name.count else { return true }
    let (before, after) = (name[position - 1], name[position])
    guard isLetter(before), isLetter(after) else { return true }
    guard after & 0x20 == 0 else { return false }
    return before & 0x20 != 0 || position + 1 < name.count && (0x61...0x7a).contains(name[position + 1])
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }

  private static func lowered(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }
}
