public import NetOptCore

/// A request that a `LoopbackServer` received.
public struct LoopbackRequest: Sendable, Hashable {
  /// The number of the connection among the connections of the server, from 1.
  public let connection: Int
  /// The number of the request on its connection, from 1.
  public let number: Int
  /// The bytes of the head, including the empty line at its end. Incomplete if the client closed the
  /// connection within the head.
  public let head: [UInt8]

  /// The lines of the head, without the empty line at its end.
  private var lines: [Substring] {
    String(decoding: head, as: UTF8.self).split(separator: "\r\n")
  }

  /// The word at an index of the request line, counted from 0; empty if the line has fewer words.
  private func word(_ index: Int) -> String {
    let words = lines.first?.split(separator: " ", omittingEmptySubsequences: false) ?? []
    return words.count > index ? String(words[index]) : ""
  }

  /// The method: the first word of the request line, which is not checked.
  public var method: NetOptRequest.Method { NetOptRequest.Method(rawValue: word(0)) }

  /// The path and the query: the second word of the request line, which is not checked. Empty if the line has
  /// only one word.
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

/// A request on a connection of a `LoopbackServer`, and functions that send a correct or faulty response.
/// Only the thread of the connection may use an exchange. The functions block. They throw when the connection
/// fails or the server stops.
public final class LoopbackExchange {
  /// The request.
  public let request: LoopbackRequest

  private let connection: LoopbackConnection
  /// Whether `readBody` or `waitForClose` has consumed the body of the request.
  private var bodyWasRead = false

  private init(_ request: LoopbackRequest, on connection: LoopbackConnection) {
    self.request = request
    self.connection = connection
  }

  /// Reads requests from a connection and calls the handler for each, until one side closes the connection.
  /// When the handler returns, reads the body of the request if the handler has not read it.
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

  /// Reads the body of the request: `Content-Length` bytes, or its chunks. Returns no bytes when the body was
  /// already read or the server has closed the connection, and an incomplete body when the client closes the
  /// connection early.
  public func readBody() throws -> [UInt8] {
    guard !bodyWasRead, connection.isOpen else { return [] }
    bodyWasRead = true
    let fields = request.fields
    if fields["Transfer-Encoding"] == "chunked" { return try readChunks() }
    return try read(fields["Content-Length"].flatMap { Int($0) } ?? 0)
  }

  /// Sends bytes as they are.
  public func write(_ bytes: [UInt8]) throws { try connection.write(bytes) }

  /// Sends text as it is. HTTP lines end with `\r\n`.
  public func write(_ text: String) throws { try connection.write(Array(text.utf8)) }

  /// Sends a complete response with a `Content-Length`.
  public func respond(_ status: Int, _ fields: HeaderFields = [:], body: [UInt8] = []) throws {
    var head = "HTTP/1.1 \(status) Status\r\nContent-Length: \(body.count)\r\n"
    for field in fields { head += "\(field.name): \(field.value)\r\n" }
    try write(Array((head + "\r\n").utf8) + body)
  }

  /// Sends a complete response with a `Content-Length`.
  public func respond(_ status: Int, _ fields: HeaderFields = [:], text: String) throws {
    try respond(status, fields, body: Array(text.utf8))
  }

  /// Waits for a duration, or until the server stops.
  public func wait(_ duration: Duration) throws { try connection.wait(duration) }

  /// Reads and discards bytes until the client closes the connection.
  public func waitForClose() throws {
    bodyWasRead = true
    try connection.waitForClose()
  }

  /// Shuts down the sending direction, then reads and discards bytes until the client closes the connection.
  /// The connection ends without a reset even if the client has sent bytes that were not read. In this case,
  /// `close` would reset the connection.
  public func end() throws {
    connection.shutDownSending()
    try waitForClose()
  }

  /// Closes the connection. If the client has sent bytes that were not read, Linux resets the connection.
  public func close() { connection.close() }

  /// Closes the connection with a reset.
  public func reset() { connection.reset() }

  /// Reads `count` bytes; fewer if the client closes the connection early.
  private func read(_ count: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let chunk = try connection.read(upTo: count - bytes.count)
      if chunk.isEmpty { break }
      bytes += chunk
    }
    return bytes
  }

  /// Reads a chunked body and returns it without the framing.
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
