/// The parameters of a query, decoded, in their order, and the canonical form in which they are signed.
package struct QueryParameters: Sendable {
  /// One `key=value`, decoded.
  struct Pair: Sendable {
    var key: [UInt8]
    var value: [UInt8]
  }

  /// The order in which the pairs are written. Everything but `byKeyAndValue` is another implementation's.
  enum Order {
    case byKeyAndValue
    /// By key alone; the values of one key stay in the order in which they came.
    case byKey
    case asGiven
  }

  var pairs: [Pair]
  /// Whether the query has a "+" that is not encoded.
  let hasPlus: Bool

  /// Reads a query. Every piece between two "&" is a pair; one without "=" has an empty value.
  ///
  /// - Parameter plus: whether "+" stands for a space.
  init(_ query: String?, plus: Bool) {
    pairs = []
    guard let query, !query.isEmpty else {
      hasPlus = false
      return
    }
    var text = query
    (pairs, hasPlus) = text.withUTF8 { Self.read($0, plus: plus) }
  }

  private static func read(_ query: UnsafeBufferPointer<UInt8>, plus: Bool) -> ([Pair], Bool) {
    var pairs: [Pair] = []
    for piece in query.split(separator: 0x26, omittingEmptySubsequences: false) {
      let mark = piece.firstIndex(of: 0x3d) ?? piece.endIndex
      pairs.append(
        Pair(
          key: PercentEncoding.decoded(piece[..<mark], plus: plus),
          value: PercentEncoding.decoded(piece[mark...].dropFirst(), plus: plus)))
    }
    return (pairs, query.contains(0x2b))
  }

  /// Appends the canonical form of a query, as `append` does it of its pairs, but at once.
  static func append(query: String, plus: Bool, to out: inout [UInt8]) {
    struct Piece {
      let start: Int
      let equals: Int
      let end: Int
    }
    var pieces: [Piece] = []
    var encoded: [UInt8] = []
    encoded.reserveCapacity(query.utf8.count + 16)
    var start = 0
    var equals: Int?
    func close() {
      if equals == nil {
        equals = encoded.count
        encoded.append(0x3d)
      }
      pieces.append(Piece(start: start, equals: equals ?? 0, end: encoded.count))
      start = encoded.count
      equals = nil
    }
    let digits = Hex.upper
    var query = query
    query.withUTF8 { bytes in
      guard !bytes.isEmpty else { return }
      var index = 0
      while index < bytes.count {
        var byte = bytes[index]
        index += 1
        if byte == 0x26 {
          close()
          continue
        }
        if byte == 0x3d, equals == nil {
          equals = encoded.count
          encoded.append(0x3d)
          continue
        }
        if byte == 0x25, index + 1 < bytes.count, let high = Hex.digit(bytes[index]),
          let low = Hex.digit(bytes[index + 1])
        {
          byte = high << 4 | low
          index += 2
        } else if plus, byte == 0x2b {
          byte = 0x20
        }
        if ByteClass.isUnreserved(byte) {
          encoded.append(byte)
        } else {
          encoded.append(0x25)
          encoded.append(digits[Int(byte >> 4)])
          encoded.append(digits[Int(byte & 15)])
        }
      }
      close()
    }
    // A key that another one begins with comes first, as it does when keys are compared by themselves.
    pieces.sort { a, b in
      let (key, other) = (encoded[a.start..<a.equals], encoded[b.start..<b.equals])
      if key.elementsEqual(other) {
        return encoded[a.equals..<a.end].lexicographicallyPrecedes(encoded[b.equals..<b.end])
      }
      return key.lexicographicallyPrecedes(other)
    }
    for (index, piece) in pieces.enumerated() {
      if index > 0 { out.append(0x26) }
      out += encoded[piece.start..<piece.end]
    }
  }

  /// Appends the canonical form: keys and values encoded, sorted as bytes, joined as `k=v&k=v`.
  func append(
    to out: inout [UInt8], style: PercentEncoding.Style = .plain, order: Order = .byKeyAndValue,
    dropsEmpty: Bool = false
  ) {
    struct Encoded {
      var key: [UInt8] = []
      var value: [UInt8] = []
    }
    var encoded: [Encoded] = []
    encoded.reserveCapacity(pairs.count)
    for pair in pairs where !(dropsEmpty && pair.value.isEmpty) {
      var next = Encoded()
      PercentEncoding.append(pair.key, to: &next.key, style)
      PercentEncoding.append(pair.value, to: &next.value, style)
      encoded.append(next)
    }
    switch order {
    case .asGiven: break
    case .byKeyAndValue:
      encoded.sort { $0.key == $1.key ? less($0.value, $1.value) : less($0.key, $1.key) }
    case .byKey:
      // The standard library's sort is stable, but does not promise to be.
      encoded = encoded.enumerated().sorted {
        $0.element.key == $1.element.key ? $0.offset < $1.offset : less($0.element.key, $1.element.key)
      }.map(\.element)
    }
    for (index, pair) in encoded.enumerated() {
      if index > 0 { out.append(0x26) }
      out += pair.key
      out.append(0x3d)
      out += pair.value
    }
  }
}

/// Whether bytes come before others.
func less(_ a: [UInt8], _ b: [UInt8]) -> Bool { a.lexicographicallyPrecedes(b) }
