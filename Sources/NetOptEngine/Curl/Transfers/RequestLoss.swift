import NetOptCore

/// How a request ended without an answer, as its caller is told.
struct RequestLoss: Equatable {
  /// What the server may have made of it.
  var fate = SentRequest.Fate.unknown
  /// Whether the connection was given up because nothing came on it any more.
  var wasSilent = false
  /// Whether the server had announced the end of the connection.
  var wasLeaving = false
  /// How often it was sent, and whether it can be sent again.
  var sending = Sending()

  /// How a request was sent.
  struct Sending: Equatable {
    /// Whether it may be sent again when nothing is known of the first time.
    var mayBeRepeated = false
    /// Whether its body is a stream that cannot begin anew.
    var hasStream = false
    /// How often it was sent.
    var count = 0

    /// What is known when the server processed nothing of it the last time.
    ///
    /// A request that may not be repeated was processed at no other time either: else it would not have been sent again. One that may be
    /// repeated may have been lost before.
    var outcome: String {
      let times = "sent \(count == 1 ? "once" : "\(count) times")"
      if mayBeRepeated { return "it was \(times)" }
      return hasStream
        ? "it took no effect, and its body, a stream, cannot be sent a second time"
        : "it took no effect, and was \(times)"
    }
  }

  /// Why the leg to a place, which had taken the request, was left for another one.
  func failure(at place: String) -> LegFailure {
    let kind: LegFailure.Kind =
      switch fate {
      case .refused: .busy
      // The limit was not known when the request was written: nobody is to blame.
      case .overLimit: .other
      case .unknown, .unwritten, .leftOut: .reset
      }
    return LegFailure(kind, cause(at: place, usual: ""))
  }

  /// What happened, and whether the request took effect.
  ///
  /// - Parameters:
  ///   - place: where it was sent.
  ///   - usual: what is said when nothing is known of the cause.
  func description(at place: String, usual: String) -> String {
    let cause = cause(at: place, usual: usual)
    return fate.isSafe
      ? "\(cause); \(sending.outcome)" : "\(cause); whether the request took effect is not known"
  }

  private func cause(at place: String, usual: String) -> String {
    switch fate {
    case .unknown where wasSilent:
      "\(place) had gone silent, and the connection was given up before an answer began"
    case .unknown:
      wasLeaving
        ? "\(place) announced the end of the connection (GOAWAY), which then ended before an answer began"
        : usual
    case .unwritten: "the connection to \(place) ended before the request was written"
    case .refused: "\(place) refused the request without processing it (REFUSED_STREAM)"
    case .overLimit:
      "\(place) takes fewer requests at once, and did not process this one (REFUSED_STREAM)"
    case .leftOut: "\(place) ended the connection without processing the request (GOAWAY)"
    }
  }
}
