public import NetOptCore

/// A request that a `LoopbackServer` received.
public struct LoopbackRequest: Sendable, Hashable {
  /// The number of its connection, from 1.
  public let connection: Int
  /// Its number on that connection, from 1.
  public let number: Int
  /// The head byte for byte, with the empty line that ends it.
  public let head: [UInt8]

  private var lines: [Substring] {
    String(decoding: head, as: UTF8.self).split(separator: "\r\n")
  }

  private func word(_ index: Int) -> String {
    let words = lines.first?.split(separator: " ", omittingEmptySubsequences: false) ?? []
    return words.count > index ? String(words[index]) : ""
  }

  /// The method; empty when the request line is malformed.
  public var method: NetOptRequest.Method { NetOptRequest.Method(rawValue: word(0)) }

  /// Path and query; empty when the request line is malformed.
  public var target: String { word(1) }

  /// The header fields in their order.
  public var fields: HeaderFields {
    var fields = HeaderFields()
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      let value = line[line.index(after: colon)...].drop { $0 == " " }
      fields.append(HeaderField(String(line[..<colon]), String(value)))
    }
    return fields
  }
}

/// A request on a connection of a `LoopbackServer`, and the means to answer it well or badly. It belongs to the
/// connection's thread: its calls block, and throw when the client goes away or the server is stopped.
public final class LoopbackExchange {
  /// The request.
  public let request: LoopbackRequest

  private let connection: LoopbackConnection
  private var bodyWasRead = false

  private init(_ request: LoopbackRequest, on connection: LoopbackConnection) {
    self.request = request
    self.connection = connection
  }

  /// Handles the requests of a connection until one side closes it.
  static func serve(
    _ connection: LoopbackConnection, with handler: (LoopbackExchange) throws -> Void
  ) throws {
    while connection.isOpen {
      let head = try connection.read(through: Array("\r\n\r\n".utf8))
      if head.isEmpty { return }
      connection.requests += 1
      let request = LoopbackRequest(connection: connection.number, number: connection.requests, head: head)
      connection.note(request)
      let exchange = LoopbackExchange(request, on: connection)
      try handler(exchange)
      _ = try exchange.readBody()
    }
  }

  /// The request's body, by its `Content-Length` or its chunks; empty when it was read before. Less than was announced
  /// when the client closes early.
  public func readBody() throws -> [UInt8] {
    guard !bodyWasRead, connection.isOpen else { return [] }
    bodyWasRead = true
    let fields = request.fields
    if fields["Transfer-Encoding"] == "chunked" { return try readChunks() }
    return try read(fields["Content-Length"].flatMap { Int($0) } ?? 0)
  }

  /// Sends bytes as they are.
  public func write(_ bytes: [UInt8]) throws { try connection.write(bytes) }

  /// Sends text as it is; lines end with `\r\n` in HTTP.
  public func write(_ text: String) throws { try connection.write(Array(text.utf8)) }

  /// Sends a whole response with its `Content-Length`.
  public func respond(_ status: Int, _ fields: HeaderFields = [:], body: [UInt8] = []) throws {
    var head = "HTTP/1.1 \(status) Status\r\nContent-Length: \(body.count)\r\n"
    for field in fields { head += "\(field.name): \(field.value)\r\n" }
    try write(Array((head + "\r\n").utf8) + body)
  }

  /// Sends a whole response with its `Content-Length`.
  public func respond(_ status: Int, _ fields: HeaderFields = [:], text: String) throws {
    try respond(status, fields, body: Array(text.utf8))
  }

  /// Lets time pass before the next step.
  public func wait(_ duration: Duration) throws { try connection.wait(duration) }

  /// Reads and drops what comes until the client closes.
  public func waitForClose() throws {
    bodyWasRead = true
    try connection.waitForClose()
  }

  /// Ends what it sends, and reads until the client closes. A connection that is closed with bytes unread is reset.
  public func end() throws {
    connection.shutDownSending()
    try waitForClose()
  }

  /// Closes the connection in order.
  public func close() { connection.close() }

  /// Resets the connection.
  public func reset() { connection.reset() }

  private func read(_ count: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let chunk = try connection.read(upTo: count - bytes.count)
      if chunk.isEmpty { break }
      bytes += chunk
    }
    return bytes
  }

  private func readChunks() throws -> [UInt8] {
    let lineEnd = Array("\r\n".utf8)
    var body: [UInt8] = []
    while true {
      let line = String(decoding: try connection.read(through: lineEnd), as: UTF8.self)
      let size = line.prefix { $0.isHexDigit }
      guard let count = Int(size, radix: 16) else { return body }
      if count > 0 { body += try read(count) }
      _ = try connection.read(through: lineEnd)
      if count == 0 { return body }
    }
  }
}
