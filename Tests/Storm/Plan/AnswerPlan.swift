/// The response that the backend must give to a request. The target of the request encodes the plan, so the
/// backend needs no other input.
struct AnswerPlan: Sendable, Hashable {
  /// How HTTP/1.1 marks the end of the body.
  enum Framing: String, Sendable, Hashable {
    /// By `Content-Length`.
    case length
    /// By chunked coding.
    case chunked
    /// By the end of the connection.
    case close
  }

  /// A URL that many requests share, so that a cache can answer some of them.
  struct Cached: Sendable, Hashable {
    /// The number of the URL, from 0. Each host has URLs with the same numbers.
    var number: Int
    /// The value of `max-age` in the responses, in seconds. Responses with `no-store` do not have it.
    var maxAge: Int
    /// Whether the responses have `no-store`, so that no cache may keep them.
    var noStore: Bool
    /// Whether the responses depend on the request's field `X-Flavour` and say so in `Vary`.
    var varies: Bool
  }

  /// The status of the response.
  var status = 200
  /// The length of the body before compression, in bytes.
  var size = 0
  /// How the end of the body is marked when the client uses HTTP/1.1.
  var framing = Framing.length
  /// The wait of the backend between the request and the head of the response, in milliseconds. Not used when
  /// the response `isEarly`.
  var delay = 0
  /// The number of 10 ms pauses in the body.
  var pauses = 0
  /// The number of body bytes after which the backend breaks the connection; `nil` for the complete body. Of
  /// the responses of a cacheable URL, the backend cuts only some (`CacheRecord.Answer.breaks`).
  var cut: Int?
  /// The number of additional fields: `X-Field-0`, `X-Field-1` and so on.
  var fields = 0
  /// Whether nginx compresses the body if the client accepts gzip.
  var isCompressed = false
  /// Whether the response head is sent before the backend has read the request's body.
  var isEarly = false
  /// The shared URL to which the request goes; `nil` for a request that does not use the cache.
  var cached: Cached?

  /// The target of the request, which encodes the plan.
  var target: String {
    let path =
      cached.map { "/cached/\($0.number)/\($0.maxAge)/\($0.noStore ? 1 : 0)/\($0.varies ? 1 : 0)" }
      ?? (framing == .close ? "/close" : "/once")
    let flags = "\(isCompressed ? 1 : 0)/\(isEarly ? 1 : 0)"
    return "\(path)?\(status)/\(size)/\(framing.rawValue)/\(delay)/\(pauses)/\(cut ?? -1)/\(fields)/\(flags)"
  }

  init() {}

  /// Decodes a target; returns `nil` for a target that encodes no plan.
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
  ///
  /// - Parameters:
  ///   - number: the number of the field.
  ///   - index: the index of the request.
  static func fieldLength(_ number: Int, of index: Int) -> Int { 20 + (abs(index) * 31 + number * 17) % 300 }
}
