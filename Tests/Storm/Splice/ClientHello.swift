/// Reads the server name from the first bytes of a TLS connection (RFC 8446, section 4.1.2; RFC 6066, section
/// 3).
enum ClientHello {
  /// What the bytes say.
  enum Reading: Equatable {
    /// The bytes end before the end of the ClientHello.
    case incomplete
    /// The server name; `nil` for a ClientHello without a name and for bytes that are no ClientHello.
    case complete(String?)
  }

  /// Reads a ClientHello that fits in one TLS record, as that of every common client does.
  ///
  /// - Parameter bytes: all bytes of the connection so far.
  static func read(_ bytes: [UInt8]) -> Reading {
    guard bytes.count >= 5 else { return .incomplete }
    guard bytes[0] == 22 else { return .complete(nil) }
    let length = Int(bytes[3]) << 8 | Int(bytes[4])
    guard bytes.count >= 5 + length else { return .incomplete }
    return .complete(serverName(bytes[5..<5 + length]))
  }

  /// The server name in a ClientHello; `nil` without a name and for malformed bytes.
  ///
  /// - Parameter record: the content of the TLS record, without its header.
  private static func serverName(_ record: ArraySlice<UInt8>) -> String? {
    var hello = Cursor(rest: record)
    // Type, length, version and random, then session id, cipher suites and compression methods.
    guard hello.skip(1 + 3 + 2 + 32), hello.take(lengthBytes: 1) != nil, hello.take(lengthBytes: 2) != nil,
      hello.take(lengthBytes: 1) != nil, let block = hello.take(lengthBytes: 2)
    else { return nil }
    var extensions = Cursor(rest: block)
    while let type = extensions.number(2), let content = extensions.take(lengthBytes: 2) {
      guard type == 0 else { continue }
      var list = Cursor(rest: content)
      guard list.skip(2), list.number(1) == 0, let name = list.take(lengthBytes: 2) else { return nil }
      return String(decoding: name, as: UTF8.self)
    }
    return nil
  }

  /// Reads bytes from the front of `rest`. Each function removes what it reads. It fails and removes nothing
  /// when there are too few bytes; only `take` may then have removed the length.
  private struct Cursor {
    var rest: ArraySlice<UInt8>

    /// Skips bytes. Returns whether there were enough.
    mutating func skip(_ count: Int) -> Bool {
      guard rest.count >= count else { return false }
      rest = rest.dropFirst(count)
      return true
    }

    /// Reads a big-endian number of `count` bytes.
    mutating func number(_ count: Int) -> Int? {
      guard rest.count >= count else { return nil }
      defer { rest = rest.dropFirst(count) }
      return rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
    }

    /// Reads the length of a block, which has `lengthBytes` bytes, and then the block.
    mutating func take(lengthBytes: Int) -> ArraySlice<UInt8>? {
      guard let length = number(lengthBytes), rest.count >= length else { return nil }
      defer { rest = rest.dropFirst(length) }
      return rest.prefix(length)
    }
  }
}
