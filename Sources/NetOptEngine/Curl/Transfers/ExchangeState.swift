/// How far an exchange has come.
///
/// A state machine without I/O. Every transition is defined in every state: one that is not possible changes nothing and says so. No
/// transition leads out of `finished`.
enum ExchangeState {
  /// On its way to the loop, or to the multi handle of another network.
  case queued
  /// Reads a body's stream, announced with 0 bytes, to its end. The request is sent afterwards.
  case readingBody
  /// Waits for the outcome of the race of another exchange.
  case waitingForRace
  /// Its legs open connections. `Race` may have a winner already, which passed the gate in this turn of the loop.
  case racing
  /// The leg that won sends the request and waits for the head of the answer.
  case sending
  /// The caller has the head. The body goes to the channel.
  case receiving(BodyChannel)
  /// Answered: nothing that belonged to it is left.
  case finished

  /// How the caller is told that the exchange has ended.
  enum Ending {
    /// With the answer, which it waits for.
    case answer
    /// With the end of the body that it reads.
    case body(BodyChannel)
  }

  var isFinished: Bool {
    if case .finished = self { true } else { false }
  }

  /// Where the body goes, once the caller has the head.
  var body: BodyChannel? {
    if case .receiving(let channel) = self { channel } else { nil }
  }

  /// The body's stream has to end before anything else.
  mutating func readBody() {
    if case .queued = self { self = .readingBody }
  }

  /// The body's stream has ended, or the multi handle takes no new work: the exchange arrives once more.
  mutating func queueAgain() {
    switch self {
    case .readingBody, .waitingForRace: self = .queued
    default: break
    }
  }

  /// The race of another exchange is under way.
  mutating func waitForRace() {
    if case .queued = self { self = .waitingForRace }
  }

  /// The exchange has a race of its own.
  mutating func race() {
    switch self {
    case .queued, .waitingForRace: self = .racing
    default: break
    }
  }

  /// A leg has passed the gate.
  ///
  /// - Returns: whether it is the leg that sends the request.
  mutating func win() -> Bool {
    guard case .racing = self else { return false }
    self = .sending
    return true
  }

  /// The request came back unprocessed. Another leg may send it, or the same one on another connection.
  mutating func takeBack() {
    if case .sending = self { self = .racing }
  }

  /// The head is complete.
  mutating func receive(into channel: BodyChannel) {
    switch self {
    case .racing, .sending: self = .receiving(channel)
    default: break
    }
  }

  /// The exchange ends.
  ///
  /// - Returns: how the caller is told, or `nil` when it was told before.
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
