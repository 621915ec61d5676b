/// Reads the server name from the first bytes of a TLS connection (RFC 8446, section 4.1.2; RFC 6066, section
/// 3).
enum ClientHello {
  enum Reading: Equatable {
    /// The ClientHello is incomplete.
    case incomplete
    /// The server name; `nil` for a ClientHello without a name and for bytes that are no ClientHello.
    case complete(String?)
  }

  /// Reads a ClientHello that fits in one record, as that of every common client does.
  static func read(_ bytes: [UInt8]) -> Reading {
    guard bytes.count >= 5 else { return .incomplete }
    guard bytes[0] == 22 else { return .complete(nil) }
    let length = Int(bytes[3]) << 8 | Int(bytes[4])
    guard bytes.count >= 5 + length else { return .incomplete }
    return .complete(serverName(bytes[5..<5 + length]))
  }

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

  private struct Cursor {
    var rest: ArraySlice<UInt8>

    mutating func skip(_ count: Int) -> Bool {
      guard rest.count >= count else { return false }
      rest = rest.dropFirst(count)
      return true
    }

    mutating func number(_ count: Int) -> Int? {
      guard rest.count >= count else { return nil }
      defer { rest = rest.dropFirst(count) }
      return rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
    }

    /// Takes a block of bytes that follows its length, which has `lengthBytes` bytes.
    mutating func take(lengthBytes: Int) -> ArraySlice<UInt8>? {
      guard let length = number(lengthBytes), rest.count >= length else { return nil }
      defer { rest = rest.dropFirst(length) }
      return rest.prefix(length)
    }
  }
}
