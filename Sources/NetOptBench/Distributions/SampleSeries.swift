package import NetOptCore

/// A part of an exchange, in the order in which they follow each other. The raw values are the keys of `phases_us`.
package enum SamplePhase: String, CaseIterable, Sendable {
  /// Waiting for a connection.
  case queue
  /// The look-up.
  case dns
  /// The TCP handshake.
  case tcp
  /// The TLS handshake.
  case tls
  /// Sending the request.
  case send
  /// From the request's last byte to the response's first.
  case wait
  /// From the response's first byte to its last.
  case transfer

  /// The phase's part of an exchange.
  package func duration(in timings: Timings) -> Duration {
    switch self {
    case .queue: timings.queue
    case .dns: timings.dns
    case .tcp: timings.connect
    case .tls: timings.tls
    case .send: timings.send
    case .wait: timings.wait
    case .transfer: timings.transfer
    }
  }
}

/// The samples of one target in one block, round by round, as columns of microseconds: a run may take a million of them.
package struct SampleSeries: Sendable {
  /// What became of each request.
  package private(set) var kinds: [SampleKind] = []
  // 32 bits hold 35 minutes; what takes longer (--max-time 0 sets no limit) counts as that.
  private var lags: [Int32] = []
  private var services: [Int32] = []
  private var phases = [[Int32]](repeating: [], count: SamplePhase.allCases.count)
  /// How many of the answered ones came over a connection that had been used before.
  package private(set) var reused = 0
  /// What the kernel measured of connections, where it was asked.
  package private(set) var sockets = SocketSummary()

  /// Makes an empty series.
  package init() {}

  /// How many samples there are.
  package var count: Int { kinds.count }

  /// How many samples there are of each kind.
  package var counts: [SampleKind: Int] { Dictionary(kinds.map { ($0, 1) }, uniquingKeysWith: +) }

  /// Adds the sample of the next round.
  package mutating func append(_ sample: Sample) {
    kinds.append(sample.kind)
    lags.append(Int32(clamping: sample.lag.microseconds))
    services.append(Int32(clamping: sample.service.microseconds))
    for (column, phase) in SamplePhase.allCases.enumerated() {
      phases[column].append(Int32(clamping: phase.duration(in: sample.timings).microseconds))
    }
    if sample.kind == .ok, sample.reused { reused += 1 }
    if let socket = sample.socket { sockets.add(socket) }
  }

  /// From the moment at which a request was to be sent until its answer had ended.
  package func response(_ index: Int) -> Int64 { Int64(lags[index]) + Int64(services[index]) }

  /// From sending a request until its answer had ended.
  package func service(_ index: Int) -> Int64 { Int64(services[index]) }

  /// How long after its moment a request was sent.
  package func lag(_ index: Int) -> Int64 { Int64(lags[index]) }

  /// What a phase of a request took.
  package func phase(_ phase: SamplePhase, _ index: Int) -> Int64 {
    Int64(phases[SamplePhase.allCases.firstIndex(of: phase) ?? 0][index])
  }

  /// The samples that were fine.
  package var fine: [Int] { kinds.indices.filter { kinds[$0] == .ok } }

  /// The largest value that a request took, whatever became of it.
  var largest: Int64 { kinds.indices.lazy.map { response($0) }.max() ?? 0 }
}

/// What the kernel measured of the connections of a series: `TCP_INFO` of tcp(7).
package struct SocketSummary: Hashable, Sendable {
  /// The round-trip times, in microseconds.
  package private(set) var roundTrips: [Int64] = []
  /// How many segments were sent again.
  package private(set) var retransmits: Int64 = 0

  /// Makes an empty summary.
  package init() {}

  mutating func add(_ socket: SocketReport) {
    roundTrips.append(socket.roundTrip.microseconds)
    retransmits += Int64(socket.retransmits)
  }
}
