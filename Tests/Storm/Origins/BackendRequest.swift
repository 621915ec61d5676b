import Glibc
import NetOptCore

/// A connection from nginx to the backend, with blocking calls. Only its own thread uses it.
final class BackendConnection {
  /// Thrown when the exchange cannot continue: nginx has closed the connection, the request is malformed, or
  /// the plan of the response breaks the connection.
  struct Gone: Error {}

  let descriptor: Int32
  /// The bytes that were received but not read yet.
  private var pending: [UInt8] = []

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Reads a request head, up to and including the empty line at its end. Returns `nil` when nginx closes the
  /// connection between two requests.
  func readHead() throws -> [UInt8]? {
    let end = Array("\r\n\r\n".utf8)
    var searched = 0
    while true {
      if let range = pending[searched...].firstRange(of: end) {
        defer { pending = Array(pending[range.upperBound...]) }
        return Array(pending[..<range.upperBound])
      }
      searched = max(0, pending.count - 3)
      guard try receive() else {
        if pending.isEmpty { return nil }
        throw Gone()
      }
    }
  }

  /// Reads `count` bytes.
  func read(_ count: Int) throws -> [UInt8] {
    while pending.count < count { if try !receive() { throw Gone() } }
    defer { pending.removeFirst(count) }
    return Array(pending[..<count])
  }

  /// Reads up to the next LF. The result has no LF, but has the CR before it.
  func readLine() throws -> String {
    while true {
      if let end = pending.firstIndex(of: 10) {
        defer { pending.removeFirst(end + 1) }
        return String(decoding: pending[..<end], as: UTF8.self)
      }
      if try !receive() { throw Gone() }
    }
  }

  /// Writes all bytes.
  func write(_ bytes: some Collection<UInt8>) throws {
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw Gone() }
      rest = rest.dropFirst(count)
    }
  }

  /// Waits for bytes and adds them to `pending`. Returns false when nginx has closed the connection.
  private func receive() throws -> Bool {
    var count = 0
    let chunk = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, initialized in
      repeat {
        count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      } while count < 0 && errno == EINTR
      initialized = max(0, count)
    }
    guard count >= 0 else { throw Gone() }
    pending += chunk
    return count > 0
  }
}

/// The head of a request as the backend received it.
struct BackendRequest {
  let method: String
  let target: String
  private let fields: [(name: Substring, value: Substring)]

  /// Parses a head; returns `nil` when the request line does not have three words.
  init?(_ head: [UInt8]) {
    let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
    let words = lines.first?.split(separator: " ") ?? []
    guard words.count == 3 else { return nil }
    (method, target) = (String(words[0]), String(words[1]))
    fields = lines.dropFirst().compactMap { line in
      guard let colon = line.firstIndex(of: ":") else { return nil }
      return (line[..<colon], line[line.index(after: colon)...].drop { $0 == " " })
    }
  }

  /// The value of the first field with this name; `nil` without one.
  ///
  /// - Parameter name: the name in lower case.
  subscript(name: String) -> String? {
    fields.first { $0.name.lowercased() == name }.map { String($0.value) }
  }

  /// The index of the request in the storm, from its field `X-Id`; `nil` for other requests.
  var index: Int? { self["x-id"].flatMap { Int($0) } }
  /// The value of `X-Flavour`; `"0"` without this field.
  var flavour: String { self["x-flavour"] ?? "0" }
  /// The host and port that the client asked for (`Host`). Each port has only one scheme.
  var authority: String { self["host"] ?? "" }

  /// Reads the body of the request, with a length or in chunks.
  func readBody(from connection: BackendConnection) throws -> [UInt8] {
    if let length = self["content-length"].flatMap({ Int($0) }) { return try connection.read(length) }
    guard self["transfer-encoding"] != nil else { return [] }
    var body: [UInt8] = []
    while true {
      let line = try connection.readLine()
      guard let size = Int(line.prefix { $0.isHexDigit }, radix: 16) else { throw BackendConnection.Gone() }
      if size > 0 { body += try connection.read(size) }
      _ = try connection.readLine()
      if size == 0 { return body }
    }
  }
}
