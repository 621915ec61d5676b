/// The state of an exchange.
///
/// A state machine without I/O. Every transition is defined in every state. An impossible transition changes
/// nothing; `win` then returns false, and `finish` returns `nil`. No transition leads out of `finished`.
enum ExchangeState {
  /// No multi handle has admitted the exchange to a race yet. This is the first state. An exchange returns to
  /// it in two cases: it has read its body stream (`readingBody`), or the network changed while it waited for
  /// a race, so that another multi handle must admit it.
  case queued
  /// The body stream was announced with 0 bytes. Before the request is sent, the exchange reads the stream to
  /// its end, to check that it is empty (`UploadStream.endsFirst`).
  case readingBody
  /// The exchange waits for the outcome of another exchange's race.
  case waitingForRace
  /// The legs open connections. When the connection of a leg is ready, libcurl calls the gate, and `Race`
  /// lets the first leg there send the request. The exchange stays in this state until the end of the loop's
  /// turn, when `win` is called.
  case racing
  /// The leg that won sends the request and waits for the response head.
  case sending
  /// The caller has the response head. The channel carries the body.
  case receiving(BodyChannel)
  /// The exchange has ended and holds no resources.
  case finished

  /// How the exchange must tell its caller that it has ended.
  enum Ending {
    /// By its answer, for which the caller still waits.
    case answer
    /// By the end of the response's body in this channel: the caller already has the response.
    case body(BodyChannel)
  }

  var isFinished: Bool {
    if case .finished = self { true } else { false }
  }

  /// The channel of the body, once the caller has the response head.
  var body: BodyChannel? {
    if case .receiving(let channel) = self { channel } else { nil }
  }

  /// Records that the exchange begins to read its body stream to the end.
  mutating func readBody() {
    if case .queued = self { self = .readingBody }
  }

  /// Records that the exchange is on its way to a multi handle again: its body stream has ended, or its multi
  /// handle takes no new work.
  mutating func queueAgain() {
    switch self {
    case .readingBody, .waitingForRace: self = .queued
    default: break
    }
  }

  /// Records that the exchange waits for another exchange's race.
  mutating func waitForRace() {
    if case .queued = self { self = .waitingForRace }
  }

  /// Records that the exchange runs a race.
  mutating func race() {
    switch self {
    case .queued, .waitingForRace: self = .racing
    default: break
    }
  }

  /// Records that a leg won: the gate let it send the request.
  ///
  /// - Returns: whether the win is new. False if it was recorded before: the leg has reached the gate again,
  ///   because libcurl was about to send the request again. Also false if the exchange has ended.
  mutating func win() -> Bool {
    guard case .racing = self else { return false }
    self = .sending
    return true
  }

  /// Records that the request came back unprocessed. Another leg may send it, or the same leg on another
  /// connection.
  mutating func withdrawRequest() {
    if case .sending = self { self = .racing }
  }

  /// Records that the response head is complete, and that the channel carries the body.
  mutating func receive(into channel: BodyChannel) {
    switch self {
    case .racing, .sending: self = .receiving(channel)
    default: break
    }
  }

  /// Records that the exchange has ended.
  ///
  /// - Returns: how to tell the caller; `nil` when the exchange had already ended.
  mutating func finish() -> Ending? {
    switch self {
    case .finished: return nil
    case .receiving(let channel):
      self = .finished
      return .body(channel)
    default:
      self = .finished
      return .answer
    }
  }
}
