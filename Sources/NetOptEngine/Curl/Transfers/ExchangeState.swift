/// The state of an exchange.
///
/// A state machine without I/O. Every transition is defined in every state. An impossible transition changes
/// nothing; `win` then returns false, and `finish` returns `nil`. No transition leads out of `finished`.
enum ExchangeState {
  /// The exchange is on its way to the loop, or to the multi handle of another network.
  case queued
  /// The exchange reads a body stream announced with 0 bytes to its end. The request is sent afterwards.
  case readingBody
  /// The exchange waits for the outcome of another exchange's race.
  case waitingForRace
  /// The legs open connections. `Race` may already have a winner that passed the gate in this turn.
  case racing
  /// The leg that won sends the request and waits for the response head.
  case sending
  /// The caller has the response head. The channel carries the body.
  case receiving(BodyChannel)
  /// The exchange has ended and holds no resources.
  case finished

  /// How the caller has to learn that the exchange has ended.
  enum Ending {
    /// The caller waits for the answer, and the answer tells it.
    case answer
    /// The caller has the response, and the end of its body tells it.
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

  /// Records that a leg passed the gate.
  ///
  /// - Returns: whether this leg sends the request.
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
  /// - Returns: how the caller has to learn of the end; `nil` when the exchange had already ended.
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
