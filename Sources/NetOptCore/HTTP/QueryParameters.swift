/// The decoded parameters of a query, in the order of the query. `append` writes them in the canonical form
/// for signatures.
package struct QueryParameters: Sendable {
  /// One decoded `key=value` pair.
  package struct Pair: Sendable {
    /// The key, without percent-encoding.
    package var key: [UInt8]
    /// The value, without percent-encoding.
    package var value: [UInt8]
  }

  /// The order in which `append` writes the pairs.
  package enum Order {
    /// Sorted by the encoded key. Pairs with equal keys keep their order: a server may use only the first or
    /// only the last of them, so their order has a meaning.
    case byKey
    /// Sorted by the encoded key, and for equal keys by the encoded value.
    case byKeyAndValue
    /// In the order of the query.
    case asGiven
  }

  /// The pairs in the order of the query.
  package var pairs: [Pair]
  /// Whether the query contains a "+" that is not percent-encoded.
  package let hasPlus: Bool

  /// Parses a query. Each piece between two "&" is a pair; a piece without "=" has an empty value.
  ///
  /// - Parameters:
  ///   - query: the query without its "?"; `nil` for no parameters.
  ///   - plus: whether "+" stands for a space.
  package init(_ query: String?, plus: Bool) {
    pairs = []
    guard let query, !query.isEmpty else {
      hasPlus = false
      return
    }
    var text = query
    (pairs, hasPlus) = text.withUTF8 { Self.read($0, plus: plus) }
  }

  /// Returns the decoded pairs of a query, and whether the query contains a "+".
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

  /// Appends the canonical form of a query to `out`. Gives the same bytes as `append(to:)` of a
  /// `QueryParameters` value, but is faster.
  ///
  /// - Parameter plus: whether "+" stands for a space.
  package static func append(query: String, plus: Bool, to out: inout [UInt8]) {
    var query = query
    query.withUTF8 { bytes in
      guard !bytes.isEmpty else { return }
      // Each byte takes at most 3 bytes, and each piece gains a "=".
      withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 3 * bytes.count + bytes.count + 1) { room in
        var pieces: [EncodedPiece] = []
        pieces.reserveCapacity(8)
        EncodedPiece.encode(bytes, plus: plus, into: room, &pieces)
        let encoded = UnsafeBufferPointer(room)
        if pieces.count > 1 { pieces.sort { $0.precedes($1, in: encoded) } }
        for index in pieces.indices {
          if index > 0 { out.append(0x26) }
          out.append(
            contentsOf: UnsafeBufferPointer(rebasing: encoded[pieces[index].start..<pieces[index].end]))
        }
      }
    }
  }

  /// Appends the parameters to `out` as `k=v&k=v`, with encoded keys and values. The default arguments give
  /// the canonical form.
  ///
  /// - Parameter dropsEmpty: whether to leave out parameters with an empty value.
  package func append(
    to out: inout [UInt8], style: PercentEncoding.Style = .plain, order: Order = .byKey,
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
      // Compare the positions of equal keys too: the documentation of the standard library's sort does not
      // guarantee that equal elements keep their order.
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

extension HTTPURL {
  /// Returns this URL with further parameters at the end of its query, in their order. Names and values are
  /// percent-encoded (RFC 3986): a space becomes `%20`, and `&`, `=`, `+` and `/` are encoded too.
  ///
  /// ```swift
  /// let url = try HTTPURL("https://api.example.com/search").adding(query: ["q": "lamp & shade", "page": "2"])
  /// ```
  public func adding(query parameters: KeyValuePairs<String, String>) -> HTTPURL {
    var bytes = Array((query ?? "").utf8)
    for (name, value) in parameters {
      if !bytes.isEmpty { bytes.append(UInt8(ascii: "&")) }
      PercentEncoding.append(name.utf8, to: &bytes)
      bytes.append(UInt8(ascii: "="))
      PercentEncoding.append(value.utf8, to: &bytes)
    }
    guard !bytes.isEmpty else { return self }
    return HTTPURL(origin: origin, target: "\(path)?\(String(decoding: bytes, as: UTF8.self))")
  }
}

/// Whether `a` comes before `b` when both are compared byte by byte.
package func less(_ a: [UInt8], _ b: [UInt8]) -> Bool { a.lexicographicallyPrecedes(b) }
