import NetOptTestSupport
package import NetOptCore

/// A text with numbers, such as a JSON file or the fields of a response. Makes variants of the text, in which
/// `ExtremeNumbers.numerals` replace some of the numbers.
package struct ExtremeText: Sendable {
  /// The text, in UTF-8.
  private let bytes: [UInt8]
  /// The ranges of the numbers in `bytes`, minus signs included.
  private let ranges: [Range<Int>]

  /// Finds the numbers of a text. Each run of digits counts as a number, also in quotes.
  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
    var ranges: [Range<Int>] = []
    var next = 0
    while next < bytes.count {
      guard Self.isDigit(bytes[next]) else {
        next += 1
        continue
      }
      let start = next > 0 && bytes[next - 1] == UInt8(ascii: "-") ? next - 1 : next
      while next < bytes.count, Self.isDigit(bytes[next]) { next += 1 }
      ranges.append(start..<next)
    }
    self.ranges = ranges
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  /// The number of variants in which exactly one number is replaced.
  package var count: Int { ranges.count * ExtremeNumbers.numerals.count }

  /// The variant with this index, from 0 to `count` - 1, in which exactly one number is replaced.
  package subscript(index: Int) -> [UInt8] {
    let numerals = ExtremeNumbers.numerals
    return replaced([ranges[index / numerals.count]: numerals[index % numerals.count]])
  }

  /// A random variant in which about every third number is replaced.
  package func drawn(using random: inout SplitMix64) -> [UInt8] {
    var changes: [Range<Int>: String] = [:]
    for range in ranges where random.isOne(in: 3) {
      changes[range] = random.element(of: ExtremeNumbers.numerals)
    }
    return replaced(changes)
  }

  /// The text with other numerals in the given ranges, each of which must be one of `ranges`.
  private func replaced(_ changes: [Range<Int>: String]) -> [UInt8] {
    var out: [UInt8] = []
    var next = 0
    for range in ranges {
      guard let numeral = changes[range] else { continue }
      out += bytes[next..<range.lowerBound]
      out += numeral.utf8
      next = range.upperBound
    }
    return out + bytes[next...]
  }
}
