import NetOptCore

/// One request of the storm: everything that the client sends, how its caller behaves, and the response that
/// the backend must give. The seed of the storm and the index of the request determine the plan.
package struct RequestPlan: Sendable, Hashable {
  /// The body of the request.
  enum Upload: Sendable, Hashable {
    /// There is no body.
    case none
    /// The body is in memory and has this many bytes.
    case bytes(Int)
    /// The body is a stream.
    case stream(Stream)

    /// The properties of a stream.
    struct Stream: Sendable, Hashable {
      /// The length of the body in bytes.
      var size: Int
      /// The length of each chunk in bytes; the last chunk may be shorter.
      var chunk: Int
      /// Whether the client knows the length of the body before it sends the request.
      var tellsLength: Bool
      /// The pause between two chunks, in milliseconds.
      var pause: Int
      /// The number of bytes after which the stream throws an error; `nil` when it does not fail.
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
    /// After this many milliseconds from the start of the call.
    case after(milliseconds: Int)
    /// When the head of the response arrives.
    case atHead
    /// When at least this many bytes of the body have arrived.
    case atByte(Int)
  }

  /// How the caller reads the body.
  enum Reading: Sendable, Hashable {
    /// The caller reads each chunk as soon as it arrives.
    case asItComes
    /// The caller pauses for this many milliseconds after each of the first ten chunks.
    case slowly(Int)
    /// The caller drops the response without reading the body.
    case notAtAll
  }

  /// The index of the request in the storm. Requests of the warm-up and of the final check of the caches have
  /// negative indices.
  let index: Int
  /// The number of the client that sends the request, from 0.
  var client = 0
  var host: StormHost
  var method = NetOptRequest.Method.get
  var upload = Upload.none
  /// The response that the backend must give.
  var answer = AnswerPlan()
  /// The HTTP version that the request asks for.
  var version = RequestOptions.Version.automatic
  /// Whether the request may use a pooled connection.
  var connection = RequestOptions.ConnectionUse.pooled
  /// Whether the request uses the addresses from DNS even if the list has the host.
  var usesDNS = false
  /// Whether the client asks for compressed responses and decompresses them.
  var decompresses = true
  /// Whether the client may send a hedge: a second attempt when the first one is slow.
  var hedges = false
  /// Whether the request has an `Idempotency-Key`. Then the client may repeat the request even if it is a
  /// POST.
  var hasKey = false
  /// The value of the field `X-Flavour`, on which some cacheable responses depend.
  var flavour = "0"
  /// Whether the request accepts only a stored response (`only-if-cached`), of any age.
  var onlyIfCached = false
  /// The timeout of the call, in milliseconds.
  var timeout = RequestPlan.usualTimeout
  /// When the caller cancels its task; `nil` when it does not.
  var cancellation: Cancellation?
  /// How the caller reads the body of the response.
  var reading = Reading.asItComes
  /// The pause before the call begins, in milliseconds.
  var rest = 0

  /// The timeout of most calls, in milliseconds.
  static let usualTimeout = 8000

  /// Whether the client may send the request more than once. Not used.
  var mayBeRepeated: Bool {
    let isStream = if case .stream = upload { true } else { false }
    return (method.isIdempotent || hasKey) && !isStream
  }

  /// Whether the call may fail because of its plan, even if nothing disturbs the servers and the network.
  var mayFail: Bool {
    let streamFails = if case .stream(let stream) = upload { stream.failsAt != nil } else { false }
    return answer.cut != nil || answer.isEarly || cancellation != nil || timeout < RequestPlan.usualTimeout
      || streamFails || reading == .notAtAll || version == .http2 && host.speaks != .http2
  }
}
