import NetOptCaching
import NetOptCore

/// A request, its response, a second request for the same resource, and the origin's response to the second
/// request, with their times. The text form is a line of three numbers (when the first request was sent, when
/// its response arrived, when the second request was sent; in milliseconds since 1970), and four blocks of
/// fields. Each block begins with a method or a status, and an empty line separates the blocks:
///
///     1795219200000 1795219200020 1795219260000
///     GET
///     Accept: */*
///
///     200
///     Cache-Control: max-age=60
///
/// Missing parts have defaults: the first request is sent in 2026, its response arrives 20 ms later, and the
/// second request is sent a minute after that. Both methods are GET, and the statuses are 200 and 304. Fields
/// with an invalid name or value are skipped.
struct CacheScript {
  /// The allowed times: up to the end of the year 9999, as in a store. Other times are moved to the nearest
  /// allowed one.
  private static let moments: ClosedRange<Int64> = 0...253_402_300_799_999

  /// When the first request was sent, in milliseconds since 1970.
  let requested: Int64
  /// When the response to the first request arrived, in milliseconds since 1970. It may be before
  /// `requested`.
  let received: Int64
  /// When the second request was sent, in milliseconds since 1970. It may be before `received`.
  let now: Int64
  /// The first request.
  let first: CacheRequest
  /// The status of the response to the first request.
  let status: Int
  /// The fields of the response to the first request.
  let fields: HeaderFields
  /// The second request, for the same URL.
  let second: CacheRequest
  /// The status of the response to the second request.
  let newStatus: Int
  /// The fields of the response to the second request.
  let newFields: HeaderFields

  /// Reads a script. Returns `nil` when `NetOptRequest` refuses one of the requests.
  init?(_ input: [UInt8]) {
    var lines = String(decoding: input, as: UTF8.self).split(
      separator: "\n", omittingEmptySubsequences: false)[...]
    let moments = lines.popFirst().map { $0.split(separator: " ").compactMap { Int64($0) } } ?? []
    func moment(_ index: Int, _ missing: Int64) -> Int64 {
      let moment = index < moments.count ? moments[index] : missing
      return min(max(moment, Self.moments.lowerBound), Self.moments.upperBound)
    }
    requested = moment(0, 1_795_219_200_000)
    received = moment(1, requested + 20)
    now = moment(2, received + 60_000)
    guard let first = Self.request(&lines) else { return nil }
    self.first = first
    (status, fields) = Self.answer(&lines, missing: 200)
    guard let second = Self.request(&lines) else { return nil }
    self.second = second
    (newStatus, newFields) = Self.answer(&lines, missing: 304)
  }

  /// Reads a block that begins with a method.
  private static func request(_ lines: inout ArraySlice<Substring>) -> CacheRequest? {
    let (head, fields) = block(&lines)
    let method = HeaderFields.isToken(head) ? NetOptRequest.Method(rawValue: head) : .get
    let request = try? NetOptRequest(method, "https://api.example.com/items?page=2", headers: fields)
    return request.map { CacheRequest($0) }
  }

  /// Reads a block that begins with a status.
  ///
  /// - Parameter missing: the status to use when the block names no valid one.
  private static func answer(_ lines: inout ArraySlice<Substring>, missing: Int) -> (Int, HeaderFields) {
    let (head, fields) = block(&lines)
    return (Int(head).flatMap { (100...999).contains($0) ? $0 : nil } ?? missing, fields)
  }

  /// Reads the next block: its first line, and its fields up to an empty line.
  private static func block(_ lines: inout ArraySlice<Substring>) -> (head: String, fields: HeaderFields) {
    let head = lines.popFirst().map(trimmed) ?? ""
    var fields = HeaderFields()
    while !head.isEmpty, let line = lines.popFirst().map(trimmed), !line.isEmpty {
      let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { continue }
      let field = HeaderField(String(parts[0]), trimmed(parts[1]))
      if HeaderFields.fault(of: field) == nil { fields.append(field) }
    }
    return (head, fields)
  }

  /// Removes all CR, and spaces and tabs at both ends.
  private static func trimmed(_ text: Substring) -> String {
    String(decoding: ByteClass.trimmed(text.utf8.filter { $0 != 0x0d }), as: UTF8.self)
  }
}
