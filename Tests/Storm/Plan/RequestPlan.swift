import NetOptCore

/// One request of the storm, determined by the seed and the index of the request.
package struct RequestPlan: Sendable, Hashable {
  /// The body of the request.
  enum Upload: Sendable, Hashable {
    case none
    case bytes(Int)
    case stream(Stream)

    struct Stream: Sendable, Hashable {
      var size: Int
      var chunk: Int
      /// Whether the request states the length of the body.
      var tellsLength: Bool
      /// The pause between two chunks, in milliseconds.
      var pause: Int
      /// The number of bytes after which the stream fails; `nil` when it does not fail.
      var failsAt: Int?
    }

    var size: Int {
      switch self {
      case .none: 0
      case .bytes(let size): size
      case .stream(let stream): stream.size
      }
    }
  }

  /// When the caller cancels its task.
  enum Cancellation: Sendable, Hashable {
    case after(milliseconds: Int)
    case atHead
    case atByte(Int)
  }

  /// How the caller reads the body.
  enum Reading: Sendable, Hashable {
    case asItComes
    /// With a pause of this many milliseconds before each chunk, for the first ten chunks.
    case slowly(Int)
    /// Not at all: the caller drops the response.
    case notAtAll
  }

  let index: Int
  /// The number of the client that sends the request.
  var client = 0
  var host: StormHost
  var method = NetOptRequest.Method.get
  var upload = Upload.none
  var answer = AnswerPlan()
  var version = RequestOptions.Version.automatic
  var connection = RequestOptions.ConnectionUse.pooled
  var usesDNS = false
  var decompresses = true
  var hedges = false
  /// Whether the request has an `Idempotency-Key`, which allows repeating a POST.
  var hasKey = false
  /// The value of the field `X-Flavour`.
  var flavour = "0"
  /// Whether the request accepts only a stored response, of any age.
  var onlyIfCached = false
  /// The timeout of the call, in milliseconds.
  var timeout = RequestPlan.usualTimeout
  var cancellation: Cancellation?
  var reading = Reading.asItComes
  /// The pause before the request is sent, in milliseconds.
  var rest = 0

  static let usualTimeout = 8000

  /// Whether the request may reach servers more than once.
  var mayBeRepeated: Bool {
    let isStream = if case .stream = upload { true } else { false }
    return (method.isIdempotent || hasKey) && !isStream
  }

  /// Whether the plan itself may make the request fail.
  var mayFail: Bool {
    let streamFails = if case .stream(let stream) = upload { stream.failsAt != nil } else { false }
    return answer.cut != nil || answer.isEarly || cancellation != nil || timeout < RequestPlan.usualTimeout
      || streamFails || reading == .notAtAll || version == .http2 && host.speaks != .http2
  }
}
