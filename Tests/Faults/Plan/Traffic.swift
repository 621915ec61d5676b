import NetOptCore

/// The kind of request that is sent to the servers.
package enum Traffic: String, CaseIterable, Sendable {
  case get = "GET"
  case post = "POST"
  /// A POST with an `Idempotency-Key`.
  case keyedPost = "POST + key"
  /// A POST whose body is a stream.
  case up = "stream up"
  /// A GET whose response has 128 KiB.
  case down = "stream down"

  /// The size of the response's body for `down`, in bytes.
  static let downloadSize = 131_072

  var method: NetOptRequest.Method { self == .get || self == .down ? .get : .post }

  /// The first segment of the URL's path. It tells the server which response to send (`origin_answer.py`).
  var kind: String { self == .down ? "down" : "answer" }

  /// The size of the request's body in bytes.
  var uploadSize: Int {
    switch self {
    case .get, .down: 0
    case .post, .keyedPost: 300
    case .up: 65_536
    }
  }

  /// Whether servers may process the request more than once. True for a GET and for a POST with an
  /// `Idempotency-Key`.
  package var mayBeRepeated: Bool { self != .post && self != .up }
}

/// The bodies of requests and responses. They contain the id of the request, so that a body that belongs to
/// another request is noticed.
enum Content {
  /// A body of `size` bytes that repeats a line with the id.
  static func pattern(_ id: String, _ size: Int) -> [UInt8] {
    let line = Array((id + "\n").utf8)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(size + line.count)
    while bytes.count < size { bytes += line }
    bytes.removeLast(bytes.count - size)
    return bytes
  }

  /// The body of the right response to the request with this id.
  static func answer(to id: String, _ traffic: Traffic) -> [UInt8] {
    traffic == .down
      ? pattern(id, Traffic.downloadSize) : Array("\(id) \(traffic.uploadSize) whole\n".utf8)
  }
}
