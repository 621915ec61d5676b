/// A request that was sent to an endpoint of the list, and whose answer has not begun.
package struct WaitingRequest: Sendable {
  /// How far its connection's bytes have come, as the kernel knows it.
  package enum Delivery: Hashable, Sendable {
    /// The other side's kernel has all of them.
    case acknowledged
    /// It has not acknowledged all of them.
    case pending
    /// It has not, though they were sent again twice and more.
    case lost
  }

  /// What its URL names.
  package let origin: Origin
  /// The endpoint's address.
  package let address: IPAddress
  /// Which requests take about as long as this one.
  package let kind: RequestKind
  /// When it was sent: its connection was ready, and nothing of it was written before.
  package let sent: MonotonicInstant
  /// When something last came on its connection.
  package let heard: MonotonicInstant
  /// When something of an answer, its own or another's, last came on its connection; `nil` when nothing has.
  package let answered: MonotonicInstant?
  /// How far what was sent on its connection has come.
  package let delivery: Delivery
  /// When its call has to be over, if it has a limit.
  package let deadline: MonotonicInstant?
  /// Whether all of it was given to the connection at once, so that the server waits for nothing more.
  package let isWhole: Bool
  /// Whether it may be sent once more, and its plan has somewhere else to go.
  package let mayBeRepeated: Bool
  /// Whether it is its call's first attempt.
  package let isFirst: Bool

  /// Describes a request.
  package init(
    origin: Origin, address: IPAddress, kind: RequestKind, sent: MonotonicInstant, heard: MonotonicInstant,
    answered: MonotonicInstant?, delivery: Delivery = .acknowledged, deadline: MonotonicInstant?,
    isWhole: Bool, mayBeRepeated: Bool, isFirst: Bool = true
  ) {
    self.origin = origin
    self.address = address
    self.kind = kind
    self.sent = sent
    self.heard = heard
    self.answered = answered
    self.delivery = delivery
    self.deadline = deadline
    self.isWhole = isWhole
    self.mayBeRepeated = mayBeRepeated
    self.isFirst = isFirst
  }
}

/// Which requests of an origin take about as long as each other: those with one method whose paths differ at most in
/// segments with a digit, which are taken for identifiers. Queries do not count.
package struct RequestKind: Hashable, Sendable {
  private let hash: UInt64

  /// The kind of a request.
  package init(_ method: NetOptRequest.Method, path: some Sequence<UInt8>) {
    // 64 bits of FNV-1a: two kinds taken for one would have a request sent twice that may be sent twice.
    var hash = StableHash.fnv1a(method.rawValue.utf8)
    var segment = hash
    var isIdentifier = false
    func mix(_ byte: UInt8, into hash: inout UInt64) {
      hash = StableHash.fnv1a(CollectionOfOne(byte), after: hash)
    }
    func endSegment() {
      if isIdentifier { mix(0, into: &hash) } else { hash = segment }
      mix(UInt8(ascii: "/"), into: &hash)
      (segment, isIdentifier) = (hash, false)
    }
    for byte in path {
      if byte == UInt8(ascii: "/") {
        endSegment()
      } else {
        if byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { isIdentifier = true }
        mix(byte, into: &segment)
      }
    }
    endSegment()
    self.hash = hash
  }

  /// The kind of a request.
  package init(_ request: NetOptRequest) {
    self.init(request.method, path: request.url.target.utf8.prefix { $0 != UInt8(ascii: "?") })
  }
}

/// A request that is taken from its endpoint or its connection, because that has gone silent.
package struct TakenRequest: Sendable {
  /// Its place among those that wait.
  package let position: Int
  /// What is held against the endpoint or the connection.
  package let failure: LegFailure
  /// Whether the endpoint's kernel has not acknowledged it. To send it elsewhere then adds nothing to what servers have to do.
  package let isLost: Bool
  /// Whether it was lost with its connection, and the endpoint works.
  package let isOfConnection: Bool

  /// Names a request.
  package init(
    position: Int, failure: LegFailure, isLost: Bool = false, isOfConnection: Bool = false
  ) {
    self.position = position
    self.failure = failure
    self.isLost = isLost
    self.isOfConnection = isOfConnection
  }
}

/// An endpoint of an origin that takes requests and does not answer them.
package struct SilentEndpoint: Hashable, Sendable {
  /// Whose requests it does not answer.
  package let origin: Origin
  /// Its address.
  package let address: IPAddress

  /// Names an endpoint.
  package init(origin: Origin, address: IPAddress) {
    self.origin = origin
    self.address = address
  }
}

/// What a look at the requests that wait has shown.
package struct WaitOutcome: Sendable {
  /// Requests that are taken from their endpoints: their calls fail as if the connection had, so that they are sent elsewhere.
  package let taken: [TakenRequest]
  /// Endpoints at which no request is to wait for a connection any more.
  package let silent: [SilentEndpoint]

  /// Nothing is done unless it is given.
  package init(taken: [TakenRequest] = [], silent: [SilentEndpoint] = []) {
    self.taken = taken
    self.silent = silent
  }
}

/// Looks after the requests that wait for their answers.
package protocol WaitObserver: Sendable {
  /// Looks at them. Called on the transport's event loop, again and again as long as there are any, and once when there are none any
  /// more.
  func look(at waiting: [WaitingRequest], at now: MonotonicInstant) -> WaitOutcome
}
