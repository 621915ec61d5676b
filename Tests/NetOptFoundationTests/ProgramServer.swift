import Foundation
import NetOptCore
import NetOptTestSupport
import TestTools

/// The server of `urlsession-program`.
enum ProgramServer {
  static func start() throws -> LoopbackServer {
    let slow = Counter()
    return try LoopbackServer(
      .raw { exchange in
        let path = exchange.request.target.prefix { $0 != "?" }
        switch path {
        case "/slow":
          slow.add(1)
          try exchange.waitForClose()
        case "/slow/arrived":
          // The request before it waits for its response when the cancellation comes. The timeout was the
          // first such request.
          while slow.count < 2 { try exchange.wait(.milliseconds(1)) }
          try exchange.respond(200)
        default:
          if try !respond(exchange, path), try !redirect(exchange, path), try !fail(exchange, path) {
            try exchange.respond(404)
          }
        }
      })
  }

  /// 220 bytes of text in gzip's form.
  private static let gzip: [UInt8] = [
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0x48,
    0xaf, 0xca, 0x2c, 0x50, 0xc8, 0x18, 0x6e, 0x4c, 0x00, 0xd9, 0x94, 0xfb, 0xac, 0xdc, 0x00, 0x00, 0x00,
  ]

  /// Responds to the paths of ordinary responses.
  ///
  /// - Returns: whether the path is one of them.
  private static func respond(_ exchange: LoopbackExchange, _ path: Substring) throws -> Bool {
    let isHead = exchange.request.method == .head
    switch path {
    case "/hello":
      let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n"
      try exchange.write(head + "X-One: 1\r\n\r\n" + (isHead ? "" : "hello"))
    case "/echo": try echo(exchange)
    case "/empty": try exchange.write("HTTP/1.1 204 No Content\r\nX-Empty: yes\r\n\r\n")
    case "/unmodified": try exchange.write("HTTP/1.1 304 Not Modified\r\nX-Empty: yes\r\n\r\n")
    case "/status/404": try exchange.respond(404, text: "nothing here")
    case "/status/500": try exchange.respond(500, text: "failed")
    case "/status/302": try exchange.respond(302)
    case "/chunked":
      try exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
      for number in 1...5 {
        let piece = "piece \(number);"
        try exchange.write("\(String(piece.utf8.count, radix: 16))\r\n\(piece)\r\n")
        try exchange.wait(.milliseconds(5))
      }
      try exchange.write("0\r\n\r\n")
    case "/large": try exchange.respond(200, body: (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 / 3) })
    case "/gzip":
      try exchange.respond(200, ["Content-Encoding": "gzip", "Content-Type": "text/plain"], body: gzip)
    case "/repeated": try exchange.respond(200, ["X-Twice": "one", "X-Other": "", "X-Twice": "two"])
    case "/auth":
      if exchange.request.fields["Authorization"] == "Basic dTpw" {
        try exchange.respond(200, text: "welcome")
      } else {
        try exchange.respond(401, ["WWW-Authenticate": "Basic realm=\"the realm\""], text: "who?")
      }
    default: return false
    }
    return true
  }

  /// Responds with what arrived.
  private static func echo(_ exchange: LoopbackExchange) throws {
    let body = try exchange.readBody()
    let digest = body.reduce(14_695_981_039_346_656_037 as UInt64) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
    var lines = ["\(exchange.request.method) \(body.count) bytes \(digest)"]
    for name in ["X-Custom", "X-Everywhere", "Accept", "Accept-Language", "Authorization"] {
      if let value = exchange.request.fields[name] { lines.append("\(name): \(value)") }
    }
    // Foundation's order differs from run to run.
    let cookies = exchange.request.fields["Cookie"]?.components(separatedBy: "; ") ?? []
    lines += cookies.sorted().map { "Cookie: \($0)" }
    // A redirected request keeps the type of a body that it no longer has, with Foundation on Linux.
    if exchange.request.method != .get, let type = exchange.request.fields["Content-Type"] {
      lines.append("Content-Type: \(type)")
    }
    try exchange.respond(200, text: lines.joined(separator: "; "))
  }

  /// Responds to the paths of redirects and cookies.
  ///
  /// - Returns: whether the path is one of them.
  private static func redirect(_ exchange: LoopbackExchange, _ path: Substring) throws -> Bool {
    switch path {
    case "/loop": try exchange.respond(302, ["Location": "/loop"])
    case "/cookies/set":
      try exchange.respond(
        200,
        [
          "Set-Cookie": "a=1; Path=/", "Set-Cookie": "b=2; Path=/; Expires=Wed, 01 Jan 2099 00:00:00 GMT",
          "Set-Cookie": "c=3; Path=/cookies",
        ])
    case "/cookies/redirect": try exchange.respond(302, ["Location": "/echo", "Set-Cookie": "d=4; Path=/"])
    case "/cookies/remove":
      try exchange.respond(200, ["Set-Cookie": "a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT"])
    default:
      guard path.hasPrefix("/redirect/"), let status = Int(path.dropFirst(10)) else { return false }
      try exchange.respond(status, ["Location": "/echo"], text: "moved")
    }
    return true
  }

  /// Fails at the paths of failures.
  ///
  /// - Returns: whether the path is one of them.
  private static func fail(_ exchange: LoopbackExchange, _ path: Substring) throws -> Bool {
    switch path {
    case "/cut":
      try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nstart")
      try exchange.end()
    case "/cut/chunks":
      try exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nstart\r\n")
      try exchange.end()
    case "/nothing": try exchange.end()
    case "/slow/head":
      try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
      try exchange.waitForClose()
    case "/slow/body":
      try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nstart")
      try exchange.waitForClose()
    default: return false
    }
    return true
  }
}
