/// The response that the server must give. The target of the request encodes it, so the server needs no other
/// input.
struct AnswerPlan: Sendable, Hashable {
  /// How HTTP/1.1 marks the end of the body.
  enum Framing: String, Sendable, Hashable {
    case length
    case chunked
    /// By the end of the connection.
    case close
  }

  /// A URL whose responses are cacheable.
  struct Cached: Sendable, Hashable {
    /// The number of the URL.
    var number: Int
    /// `max-age` in seconds.
    var maxAge: Int
    /// Whether the response has `no-store`.
    var noStore: Bool
    /// Whether the response depends on the field `X-Flavour`.
    var varies: Bool
  }

  var status = 200
  var size = 0
  var framing = Framing.length
  /// The delay before the head, in milliseconds.
  var delay = 0
  /// The number of 10 ms pauses in the body.
  var pauses = 0
  /// The number of body bytes after which the server breaks the connection; `nil` for the complete body.
  var cut: Int?
  /// The number of additional fields.
  var fields = 0
  var isCompressed = false
  /// Whether the response begins before the server has read the request's body.
  var isEarly = false
  var cached: Cached?

  /// The target of the request.
  var target: String {
    let path =
      cached.map { "/cached/\($0.number)/\($0.maxAge)/\($0.noStore ? 1 : 0)/\($0.varies ? 1 : 0)" }
      ?? (framing == .close ? "/close" : "/once")
    let flags = "\(isCompressed ? 1 : 0)/\(isEarly ? 1 : 0)"
    return "\(path)?\(status)/\(size)/\(framing.rawValue)/\(delay)/\(pauses)/\(cut ?? -1)/\(fields)/\(flags)"
  }

  init() {}

  /// Parses a target; returns `nil` for an invalid one.
  init?(target: String) {
    let halves = target.split(separator: "?")
    guard halves.count == 2 else { return nil }
    let words = halves[1].split(separator: "/")
    guard words.count == 9, let framing = Framing(rawValue: String(words[2])) else { return nil }
    let numbers = words.map { Int($0) ?? 0 }
    (status, size, delay, pauses) = (numbers[0], numbers[1], numbers[3], numbers[4])
    self.framing = framing
    cut = numbers[5] < 0 ? nil : numbers[5]
    fields = numbers[6]
    (isCompressed, isEarly) = (numbers[7] == 1, numbers[8] == 1)
    let path = halves[0].split(separator: "/")
    guard path.first == "cached" else { return }
    let values = path.dropFirst().compactMap { Int($0) }
    guard values.count == 4 else { return nil }
    cached = Cached(
      number: values[0], maxAge: values[1], noStore: values[2] == 1, varies: values[3] == 1)
  }

  /// Whether the response to a request with this method has a body.
  func hasBody(for method: String) -> Bool { method != "HEAD" && status != 204 }

  /// The length of the value of an additional field, in bytes.
  static func fieldLength(_ number: Int, of index: Int) -> Int { 20 + (abs(index) * 31 + number * 17) % 300 }
}
