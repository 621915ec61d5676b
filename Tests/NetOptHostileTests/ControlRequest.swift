import Glibc
import NetOptCore
import NetOptTestSupport

/// A request to the hostile server's controls over a socket of its own: what the client under test does is not judged by
/// that client.
enum ControlRequest {
  /// Performs it, and returns the body of the answer. It blocks: the controls answer at once.
  static func get(_ target: String, of host: String, at endpoint: Endpoint) throws -> String {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw TestSupportError("there is no socket") }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = endpoint.port.bigEndian
    withUnsafeMutableBytes(of: &address.sin_addr) { $0.copyBytes(from: endpoint.address.bytes) }
    let connected = withUnsafePointer(to: address) { pointer in
      // sockaddr is how the socket calls name every kind of address: socket(7).
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    let request = Array("GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8)
    guard connected, send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
      throw TestSupportError("the hostile server is gone")
    }
    // The end of the answer is that of the connection.
    shutdown(descriptor, Int32(SHUT_WR))
    var answer: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while case let count = recv(descriptor, &buffer, buffer.count, 0), count > 0 {
      answer += buffer[..<count]
    }
    guard let end = answer.firstRange(of: Array("\r\n\r\n".utf8)) else {
      throw TestSupportError("the hostile server's controls did not answer")
    }
    return String(decoding: answer[end.upperBound...], as: UTF8.self)
  }
}
