import NetOpt
import NetOptLocking
import NetOptTestSupport

/// A server that answers each request with its number, and the length and the digest of its body.
enum EchoServer {
  static func start() throws -> LoopbackServer {
    try LoopbackServer(
      .raw { exchange in
        let query = parameters(of: exchange.request.target)
        let body = try exchange.readBody()
        let hops = query["hops"] ?? 0
        if let delay = query["delay"], delay > 0 { try exchange.wait(.milliseconds(delay)) }
        guard hops == 0 else {
          // 307 keeps the method and the body.
          let next = exchange.request.target.split(separator: "&").dropLast().joined(separator: "&")
          try exchange.respond(307, ["Location": "\(next)&hops=\(hops - 1)"], text: "moved")
          return
        }
        let id = query["id"] ?? 0
        let answer =
          Array("\(id) \(body.count) \(digest(body))\n".utf8)
          + Array(repeating: UInt8(truncatingIfNeeded: id), count: query["size"] ?? 0)
        guard query["chunked"] == 1 else { return try exchange.respond(200, body: answer) }
        try exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        var rest = answer[...]
        while !rest.isEmpty {
          let piece = rest.prefix(30_000)
          try exchange.write(Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + Array("\r\n".utf8))
          rest = rest.dropFirst(piece.count)
        }
        try exchange.write("0\r\n\r\n")
      })
  }

  /// A number that depends on all bytes and their order.
  static func digest(_ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(14_695_981_039_346_656_037) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
  }

  private static func parameters(of target: String) -> [String: Int] {
    var found: [String: Int] = [:]
    for pair in target.drop(while: { $0 != "?" }).dropFirst().split(separator: "&") {
      let parts = pair.split(separator: "=")
      if parts.count == 2 { found[String(parts[0])] = Int(parts[1]) }
    }
    return found
  }
}

/// A number that the threads of a server increase.
final class Counter: Sendable {
  private let value = Locked(0)

  var count: Int { value.withLock { $0 } }

  func add(_ number: Int) { value.withLock { $0 += number } }
}
