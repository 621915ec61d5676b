/// What the server is to answer. It stands in the target of the request, so that the server needs to know nothing.
struct AnswerPlan: Sendable, Hashable {
  /// How the end of the body is told over HTTP/1.1.
  enum Framing: String, Sendable, Hashable {
    case length
    case chunked
    /// By the end of the connection.
    case close
  }

  /// A URL whose answers may be cached.
  struct Cached: Sendable, Hashable {
    /// Which of the URLs.
    var number: Int
    /// `max-age` in seconds.
    var maxAge: Int
    /// Whether it must not be stored.
    var noStore: Bool
    /// Whether the answer depends on the field `X-Flavour`.
    var varies: Bool
  }

  var status = 200
  var size = 0
  var framing = Framing.length
  /// Milliseconds before the head.
  var delay = 0
  /// How many times the body pauses for 10 ms.
  var pauses = 0
  /// How many bytes of the body are sent before the connection breaks.
  var cut: Int?
  /// How many fields there are besides.
  var fields = 0
  var isCompressed = false
  /// Whether the answer begins before the body of the request is read.
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

  /// Reads a target; `nil` when it is none.
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

  /// Whether a response to this method has a body.
  func hasBody(for method: String) -> Bool { method != "HEAD" && status != 204 }

  /// The length of the value of a further field.
  static func fieldLength(_ number: Int, of index: Int) -> Int { 20 + (abs(index) * 31 + number * 17) % 300 }
}
