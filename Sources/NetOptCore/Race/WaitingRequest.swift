/// A request that was sent to an endpoint of the list at least 100 ms ago, and whose response head is not
/// complete.
package struct WaitingRequest: Sendable {
  /// Whether the peer has acknowledged the data sent on a connection, according to this machine's kernel
  /// (TCP_INFO, tcp(7)).
  package enum Delivery: Hashable, Sendable {
    /// The peer's kernel has acknowledged all data.
    case acknowledged
    /// The peer's kernel has not acknowledged all data, and this kernel retransmitted it at most once.
    case pending
    /// The peer's kernel has not acknowledged all data, although this kernel retransmitted it at least twice.
    case lost
  }

  /// The origin of the request's URL.
  package let origin: Origin
  /// The address of the endpoint that the request was sent to.
  package let address: IPAddress
  /// The kind of the request. Requests of one kind take about the same time.
  package let kind: RequestKind
  /// When the connection became ready for the request. No byte of the request was written earlier.
  package let sent: MonotonicInstant
  /// When any bytes last arrived on the request's connection, such as a response, a PING or TLS records.
  package let lastReceived: MonotonicInstant
  /// When a part of any response last arrived on the request's connection, whichever request it responds to;
  /// `nil` if none has arrived.
  package let answered: MonotonicInstant?
  /// The delivery state of the data sent on the request's connection.
  package let delivery: Delivery
  /// The deadline of the request's call; `nil` without a limit.
  package let deadline: MonotonicInstant?
  /// Whether the complete request counts as sent, so that only the response is missing: the request has no
  /// body, or a small body that libcurl has taken whole. False for streamed bodies and for bodies over 14
  /// KiB, because the rest of such a body may not have left this machine.
  package let isWhole: Bool
  /// Whether the request may be sent to another endpoint: it may be repeated, its call has an attempt left,
  /// and its plan has a leg to another target.
  package let mayMove: Bool
  /// Whether the request belongs to its call's first attempt.
  package let isFirst: Bool

  /// Creates a waiting request.
  package init(
    origin: Origin, address: IPAddress, kind: RequestKind, sent: MonotonicInstant,
    lastReceived: MonotonicInstant, answered: MonotonicInstant?, delivery: Delivery = .acknowledged,
    deadline: MonotonicInstant?, isWhole: Bool, mayMove: Bool, isFirst: Bool = true
  ) {
    self.origin = origin
    self.address = address
    self.kind = kind
    self.sent = sent
    self.lastReceived = lastReceived
    self.answered = answered
    self.delivery = delivery
    self.deadline = deadline
    self.isWhole = isWhole
    self.mayMove = mayMove
    self.isFirst = isFirst
  }
}

/// A group of an origin's requests that take about the same time: requests with the same method whose paths
/// differ only in segments that contain a digit. Such segments are taken for identifiers. The query is
/// ignored.
package struct RequestKind: Hashable, Sendable {
  /// A hash of the method and the path, without the segments that contain a digit.
  private let hash: UInt64

  /// Creates the kind of a request from its method and path.
  package init(_ method: NetOptRequest.Method, path: some Sequence<UInt8>) {
    // 64-bit FNV-1a. The worst effect of a collision is a second copy of a request that may be repeated.
    var hash = StableHash.fnv1a(method.rawValue.utf8)
    /// `hash` with the bytes of the current segment.
    var segment = hash
    /// Whether the current segment contains a digit.
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

  /// Creates the kind of a request from its method and URL.
  package init(_ request: NetOptRequest) {
    self.init(request.method, path: request.url.target.utf8.prefix { $0 != UInt8(ascii: "?") })
  }
}

/// A waiting request that must not wait any longer, because its endpoint or its connection went silent. Its
/// attempt fails, and the call may send the request elsewhere.
package struct TakenRequest: Sendable {
  /// The index of the request in the array that `WaitObserver.observe(waiting:at:)` was given.
  package let position: Int
  /// The failure of the endpoint or connection.
  package let failure: LegFailure
  /// Whether the endpoint's kernel has not acknowledged all data of the connection (`Delivery.pending` or
  /// `lost`). Sending the request to another endpoint then adds no load to the servers.
  package let isUnacknowledged: Bool
  /// Whether only the request's connection is dead: the endpoint was seen to work since the request was sent.
  /// If false, the endpoint itself may be silent.
  package let isOfConnection: Bool

  /// Creates a taken request.
  package init(
    position: Int, failure: LegFailure, isUnacknowledged: Bool = false, isOfConnection: Bool = false
  ) {
    self.position = position
    self.failure = failure
    self.isUnacknowledged = isUnacknowledged
    self.isOfConnection = isOfConnection
  }
}

/// An endpoint that accepts requests of an origin and does not respond.
package struct SilentEndpoint: Hashable, Sendable {
  /// The origin whose requests the endpoint does not answer.
  package let origin: Origin
  /// The endpoint's address.
  package let address: IPAddress

  /// Creates a silent endpoint.
  package init(origin: Origin, address: IPAddress) {
    self.origin = origin
    self.address = address
  }
}

/// What the transport must do after a look at the waiting requests.
package struct WaitOutcome: Sendable {
  /// The requests to take from their endpoints. Their attempts fail as if the connection had failed, so that
  /// the calls send them elsewhere.
  package let taken: [TakenRequest]
  /// The endpoints that have gone silent. Calls that wait for a free connection to such an endpoint start
  /// their next legs.
  package let silent: [SilentEndpoint]

  /// Creates an outcome. By default the transport does nothing.
  package init(taken: [TakenRequest] = [], silent: [SilentEndpoint] = []) {
    self.taken = taken
    self.silent = silent
  }
}

/// Looks at the requests that wait for their responses, and decides which must move. `WaitWatch`
/// implements this with the planner.
package protocol WaitObserver: Sendable {
  /// Looks at the waiting requests. The transport calls this on its event loop about every 100 ms while
  /// requests wait, and once more when none is left.
  func observe(waiting: [WaitingRequest], at now: MonotonicInstant) -> WaitOutcome
}
