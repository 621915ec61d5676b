import NetOptCore

/// How a request ended without an answer, as its caller is told.
struct RequestLoss: Equatable {
  /// What the server may have made of it.
  var fate = SentRequest.Fate.unknown
  /// Whether the server had announced the end of the connection.
  var wasLeaving = false
  /// Whether its body is a stream that cannot begin anew.
  var hasStream = false
  /// How often it was sent.
  var sends = 0

  /// Why the leg to a place, which had taken the request, was left for another one.
  func failure(at place: String) -> LegFailure {
    let kind: LegFailure.Kind =
      switch fate {
      case .refused: .busy
      // The limit was not known when the request was written: nobody is to blame.
      case .overLimit: .other
      case .unknown, .unwritten, .leftOut: .reset
      }
    return LegFailure(kind, description(at: place, usual: ""))
  }

  /// What happened, and whether the request took effect.
  ///
  /// - Parameters:
  ///   - place: where it was sent.
  ///   - usual: what is said when nothing is known of the cause.
  func description(at place: String, usual: String) -> String {
    let cause =
      switch fate {
      case .unknown:
        wasLeaving
          ? "\(place) announced the end of the connection (GOAWAY), which then ended before an answer began"
          : usual
      case .unwritten: "the connection to \(place) ended before the request was written"
      case .refused: "\(place) refused the request (REFUSED_STREAM)"
      case .overLimit: "\(place) takes fewer requests at once (REFUSED_STREAM)"
      case .leftOut: "\(place) ended the connection without processing the request (GOAWAY)"
      }
    guard fate.isSafe else { return "\(cause); whether the request took effect is not known" }
    let effect = "\(cause); it took no effect"
    return hasStream
      ? "\(effect), and its body, a stream, cannot be sent a second time"
      : "\(effect), and was sent \(sends) times"
  }
}
