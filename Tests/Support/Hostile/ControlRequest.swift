import NetOptTestSupport
import Glibc
import NetOptCore

/// A request to the hostile server that controls it, such as `/received`. It is sent over a plain socket, not
/// by the client under test, whose faults must not influence what the test learns from the server.
enum ControlRequest {
  /// Sends a request and returns the body of the response. Blocks the calling thread until the response has
  /// come.
  ///
  /// - Parameters:
  ///   - target: the path of the command.
  ///   - host: the host name, which selects the state of the server that the command concerns.
  ///   - endpoint: the server's endpoint for HTTP.
  static func perform(
    _ target: String, of host: String, at endpoint: IPEndpoint, body: [UInt8] = []
  ) throws -> String {
    let descriptor = try LoopbackSocket.connecting(to: endpoint)
    defer { close(descriptor) }
    let head = "POST \(target) HTTP/1.1\r\nHost: \(host)\r\nContent-Length: \(body.count)\r\n\r\n"
    try send(Array(head.utf8) + body, to: descriptor)
    // The server then closes the connection after its response, which ends the response.
    shutdown(descriptor, Int32(SHUT_WR))
    let answer = try receive(from: descriptor)
    guard let end = answer.firstRange(of: Array("\r\n\r\n".utf8)) else {
      throw TestSupportError("the hostile server's controls did not answer")
    }
    return String(decoding: answer[end.upperBound...], as: UTF8.self)
  }

  /// Writes all bytes to a non-blocking socket.
  private static func send(_ bytes: [UInt8], to descriptor: Int32) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      var descriptors = [pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)]
      LoopbackSocket.wait(&descriptors)
      let sent = rest.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if sent < 0, errno == EAGAIN || errno == EINTR { continue }
      guard sent > 0 else { throw systemError("the hostile server is gone") }
      rest = rest.dropFirst(sent)
    }
  }

  /// Reads from a non-blocking socket until the other side closes the connection.
  private static func receive(from descriptor: Int32) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      var descriptors = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
      LoopbackSocket.wait(&descriptors)
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count < 0, errno == EAGAIN || errno == EINTR { continue }
      guard count >= 0 else { throw systemError("the hostile server is gone") }
      if count == 0 { return bytes }
      bytes += buffer[..<count]
    }
  }
}
