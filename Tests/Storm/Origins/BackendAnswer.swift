import Glibc
import NetOptCore

/// One response of the backend.
struct BackendAnswer {
  private let request: BackendRequest
  /// The index of the request.
  private let index: Int
  private let plan: AnswerPlan
  /// The complete body of the response, also when it will be cut.
  private let body: [UInt8]
  /// The chosen response; `nil` when the URL is not cacheable.
  private let cached: CacheRecord.Answer?
  /// The number of body bytes after which the backend breaks the connection; `nil` for the complete body.
  private let cut: Int?

  /// Chooses the response. For a cacheable URL, the ledger's `CacheRecord` chooses its version.
  init(_ request: BackendRequest, _ index: Int, _ plan: AnswerPlan, _ ledger: Ledger) {
    self.request = request
    self.index = index
    self.plan = plan
    if let space = plan.cached {
      let url = request.authority + request.target
      let answer = ledger.cache.answer(
        to: index, url, flavour: space.varies ? request.flavour : "0", ifNoneMatch: request["if-none-match"])
      cached = answer
      body = answer.isNotModified ? [] : answer.content.bytes(plan.size)
      cut = answer.breaks ? plan.cut : nil
    } else {
      cached = nil
      body = Content.answer(to: index).bytes(plan.size)
      cut = plan.cut
    }
  }

  private var status: Int { cached?.isNotModified == true ? 304 : plan.status }
  private var hasBody: Bool { plan.hasBody(for: request.method) && status != 304 }
  /// Whether the backend sends the body to nginx in chunks. It also does so when the body ends with the
  /// connection (`Framing.close`): nginx then removes the chunks, and closes the client's HTTP/1.1 connection
  /// at the end.
  private var isChunked: Bool { plan.framing != .length }

  /// Sends the head of the response.
  ///
  /// - Parameter received: the length of the request's body in bytes; `nil` when the response begins before
  ///   the body was read.
  func sendHead(over connection: BackendConnection, received: Int?) throws {
    var lines = ["HTTP/1.1 \(status) Answer"]
    if status != 204, status != 304 {
      if isChunked, hasBody {
        lines.append("Transfer-Encoding: chunked")
      } else if !isChunked {
        lines.append("Content-Length: \(body.count)")
      }
      lines.append("Content-Type: \(plan.isCompressed ? "text/compressed" : "text/plain")")
    }
    lines += AnswerFields.expected(
      index: index, method: request.method, authority: request.authority, plan: plan, received: received
    ).map { "\($0.name): \($0.value)" }
    if let cached, let space = plan.cached {
      lines.append(space.noStore ? "Cache-Control: no-store" : "Cache-Control: max-age=\(space.maxAge)")
      lines.append("ETag: \(cached.tag)")
      lines.append("X-Version: \(cached.version)")
      if space.varies {
        lines.append("Vary: X-Flavour")
        lines.append("X-Flavour: \(request.flavour)")
      }
    }
    try connection.write((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
  }

  /// Sends the body, with the pauses of the plan. When the plan cuts the body, sends its first part and
  /// throws `Gone`, so that the caller resets the connection.
  func sendBody(over connection: BackendConnection) throws {
    guard hasBody else { return }
    let end = min(cut ?? body.count, body.count)
    var position = 0
    var pauses = plan.pauses
    while position < end {
      let count = min(end - position, max(1, plan.pauses == 0 ? 16_384 : body.count / (plan.pauses + 1)))
      let piece = body[position..<position + count]
      if isChunked {
        try connection.write("\(String(count, radix: 16))\r\n".utf8)
        try connection.write(Array(piece) + [13, 10])
      } else {
        try connection.write(piece)
      }
      position += count
      if pauses > 0, position < end {
        usleep(10_000)
        pauses -= 1
      }
    }
    if cut != nil { throw BackendConnection.Gone() }
    if isChunked { try connection.write("0\r\n\r\n".utf8) }
  }
}

/// The fields of a response that show to which request it belongs.
enum AnswerFields {
  /// All fields of the response whose names begin with `X-`, except `X-Version` and `X-Flavour` of cacheable
  /// responses.
  ///
  /// - Parameters:
  ///   - index: the index of the request.
  ///   - authority: the `Host` field of the request.
  ///   - received: the length of the request's body in bytes; `nil` when the response began before the body
  ///     was read.
  static func expected(
    index: Int, method: String, authority: String, plan: AnswerPlan, received: Int?
  ) -> [HeaderField] {
    var fields = [
      HeaderField("X-Id", "\(index)"), HeaderField("X-Method", method), HeaderField("X-Host", authority),
      HeaderField("X-Target", plan.target),
    ]
    if let received { fields.append(HeaderField("X-Received", "\(received)")) }
    for number in 0..<plan.fields {
      let length = AnswerPlan.fieldLength(number, of: index)
      fields.append(
        HeaderField(
          "X-Field-\(number)", String(decoding: Content.field(number, of: index).bytes(length), as: UTF8.self)
        ))
    }
    return fields
  }
}
