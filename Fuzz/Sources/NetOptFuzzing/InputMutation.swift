package import NetOptCore

/// Random mutations of inputs. The state of the random number generator determines the mutation.
package enum InputMutation {
  /// Characters that separate or quote parts in one of the formats.
  private static let separators = Array("\"%,;=:()[]{}\\ \0\r\n+&?/".utf8)

  /// Changes the input at one place.
  ///
  /// - Parameter others: inputs of which a part may be inserted; if there are none, a part of the input
  ///   itself is.
  package static func mutate(_ bytes: inout [UInt8], _ others: [[UInt8]], _ random: inout SplitMix64) {
    guard !bytes.isEmpty else {
      bytes = [UInt8(truncatingIfNeeded: random.next())]
      return
    }
    let index = Int(random.below(UInt64(bytes.count)))
    switch random.below(6) {
    case 0: bytes[index] = UInt8(truncatingIfNeeded: random.next())
    case 1: bytes.removeSubrange(index..<min(index + 1 + Int(random.below(8)), bytes.count))
    case 2:
      bytes.insert(contentsOf: bytes[index..<min(index + 1 + Int(random.below(20)), bytes.count)], at: index)
    case 3: bytes.insert(separators[Int(random.below(UInt64(separators.count)))], at: index)
    case 4: bytes[index] ^= 1 << UInt8(random.below(8))
    default:
      // Inserts a part of another input.
      let other = others.isEmpty ? bytes : others[Int(random.below(UInt64(others.count)))]
      let start = Int(random.below(UInt64(max(other.count, 1))))
      bytes.insert(contentsOf: other[start..<min(start + Int(random.below(40)), other.count)], at: index)
    }
  }
}
