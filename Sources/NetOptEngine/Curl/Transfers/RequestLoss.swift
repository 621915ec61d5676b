import NetOptCore

/// What happened to a request that was sent and got no response, because its connection or stream ended.
/// Makes the messages about it.
struct RequestLoss: Equatable {
  /// Whether the server may have processed the request, and if not, how netopt knows.
  var fate = SentRequest.Fate.unknown
  /// Whether netopt gave the connection up because it had gone silent.
  var wasSilent = false
  /// Whether the server had announced the end of the connection (GOAWAY).
  var wasLeaving = false
  /// How often the request passed the gate, and whether it can be sent again.
  var sending = Sending()

  /// How often a request was sent, and whether it can be sent again.
  struct Sending: Equatable {
    /// Whether the request may be sent again when its fate is unknown.
    var mayBeRepeated = false
    /// Whether the body is a stream that cannot begin again.
    var hasStream = false
    /// How often the gate let a leg send the request, resends included. The leg may have written no byte of
    /// it.
    var count = 0

    /// The last part of the error message when no server processed the last send.
    ///
    /// - If the request may not be repeated, netopt sends it again only if no server processed the previous
    ///   send. So no server processed any send, and the message says that the request took no effect.
    /// - If the request may be repeated, a server may have processed an earlier send. So the message does not
    ///   say whether the request took effect.
    var outcome: String {
      let times = count == 1 ? "once" : "\(count) times"
      if mayBeRepeated { return "netopt tried to send the request \(times)" }
      return hasStream
        ? "the request took no effect, and netopt cannot send its body, a stream, a second time"
        : "the request took no effect; netopt tried to send it \(times)"
    }
  }

  /// The failure to report for a leg that lost the request to the next leg.
  func failure(at peer: String) -> LegFailure {
    let kind: LegFailure.Kind =
      switch fate {
      case .refused: .busy
      // The limit was not known when the request was written, so the server is not at fault.
      case .overLimit: .other
      case .unknown, .unwritten, .leftOut: .reset
      }
    return LegFailure(kind, cause(at: peer, usual: ""))
  }

  /// The message that says what happened, and whether the request took effect.
  ///
  /// - Parameters:
  ///   - peer: the peer to which the request was sent.
  ///   - usual: the text when the cause is unknown.
  func description(at peer: String, usual: String) -> String {
    let cause = cause(at: peer, usual: usual)
    return fate.isUnprocessed
      ? "\(cause); \(sending.outcome)" : "\(cause); whether the request took effect is not known"
  }

  /// The part of the messages that says what happened to the request. Returns `usual` if neither the fate nor
  /// the end of the connection shows the cause.
  private func cause(at peer: String, usual: String) -> String {
    switch fate {
    case .unknown where wasSilent:
      "\(peer) stopped answering, and the connection ended before the response began"
    case .unknown:
      wasLeaving
        ? "\(peer) announced the end of the connection (GOAWAY); the connection then ended before the response began"
        : usual
    case .unwritten: "the connection to \(peer) ended before the request was written"
    case .refused: "\(peer) refused the request without processing it (REFUSED_STREAM)"
    case .overLimit:
      "\(peer) accepts fewer requests at once, and did not process this one (REFUSED_STREAM)"
    case .leftOut: "\(peer) ended the connection without processing the request (GOAWAY)"
    }
  }
}
