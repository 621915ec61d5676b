import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools

/// Sends queries to a name server over UDP (RFC 1035). The tests check the answers of a `DNSServer` with it.
/// It supports only what these answers contain.
struct DNSClient {
  /// The answer to a query.
  struct Answer: Equatable {
    /// The response code (RCODE); 0 for success, 3 for a name that does not exist.
    var code: Int
    /// The addresses of the records, in the order of the answer.
    var addresses: [IPAddress]
    /// The time to live of the last record, in seconds; `nil` if there is no record.
    var timeToLive: Int?
  }

  let server: IPEndpoint

  init(_ server: IPEndpoint) { self.server = server }

  /// Sends a query, and waits up to 5 s for the answer.
  ///
  /// - Parameter type: the record type; 1 for A, 28 for AAAA.
  /// - Throws: `TestSupportError` if no answer arrives in time.
  func ask(_ name: String, type: UInt8) throws -> Answer {
    let labels = name.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + $0.utf8 }
    let question: [UInt8] = [0, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0] + labels + [0, 0, type, 0, 1]
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    defer { close(descriptor) }
    var limit = timeval(tv_sec: 5, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = server.port.bigEndian
    withUnsafeMutableBytes(of: &address.sin_addr) { $0.copyBytes(from: server.address.bytes) }
    withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    _ = send(descriptor, question, question.count, 0)
    var reply = [UInt8](repeating: 0, count: 1500)
    let count = recv(descriptor, &reply, reply.count, 0)
    guard count > question.count - 1 else { throw TestSupportError("no answer to a question for \(name)") }
    return parse(Array(reply.prefix(count)), from: question.count)
  }

  /// Reads the records of a reply.
  ///
  /// - Parameter start: the offset of the first record, which is the end of the question.
  private func parse(_ reply: [UInt8], from start: Int) -> Answer {
    var answer = Answer(code: Int(reply[3] & 15), addresses: [])
    var position = start
    for _ in 0..<Int(reply[7]) {
      // A record begins with a compressed name (2 bytes), type (2), class (2), time to live (4) and the
      // length of its data (2).
      let record = reply[(position + 2)...].prefix(10).map { Int($0) }
      answer.timeToLive = record[4..<8].reduce(0) { $0 << 8 | $1 }
      let data = reply[(position + 12)...].prefix(record[9])
      answer.addresses.append(
        data.count == 4 ? IPAddress(v4: data.reduce(0) { $0 << 8 | UInt32($1) }) : IPAddress(v6: data))
      position += 12 + data.count
    }
    return answer
  }
}
