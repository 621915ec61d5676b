import NetOptCore

/// One request of the storm. It follows from the seed and its index.
package struct RequestPlan: Sendable, Hashable {
  /// The body of the request.
  enum Upload: Sendable, Hashable {
    case none
    case bytes(Int)
    case stream(Stream)

    struct Stream: Sendable, Hashable {
      var size: Int
      var chunk: Int
      /// Whether the request says how long it is.
      var tellsLength: Bool
      /// Milliseconds between two chunks.
      var pause: Int
      /// After how many bytes the stream fails.
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

  /// How the body is read.
  enum Reading: Sendable, Hashable {
    case asItComes
    /// With so many milliseconds before each chunk, at most ten times.
    case slowly(Int)
    /// Not at all: the response is let go.
    case notAtAll
  }

  let index: Int
  /// Which of the clients sends it.
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
  /// Whether an `Idempotency-Key` allows repeating a POST.
  var hasKey = false
  /// The value of `X-Flavour`.
  var flavour = "0"
  /// Whether only what is stored will do, however old it is.
  var onlyIfCached = false
  /// Milliseconds.
  var timeout = RequestPlan.usualTimeout
  var cancellation: Cancellation?
  var reading = Reading.asItComes
  /// Milliseconds before it is sent.
  var rest = 0

  static let usualTimeout = 8000

  /// Whether the request may reach servers more than once.
  var mayBeRepeated: Bool {
    let isStream = if case .stream = upload { true } else { false }
    return (method.isIdempotent || hasKey) && !isStream
  }

  /// Whether its own plan is a reason to fail.
  var mayFail: Bool {
    let streamFails = if case .stream(let stream) = upload { stream.failsAt != nil } else { false }
    return answer.cut != nil || answer.isEarly || cancellation != nil || timeout < RequestPlan.usualTimeout
      || streamFails || reading == .notAtAll || version == .http2 && host.speaks != .http2
  }
}
