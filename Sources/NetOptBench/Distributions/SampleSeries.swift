package import NetOptCore

/// A phase of an exchange. The cases are in chronological order. The raw values are the keys of `phases_us`
/// in the JSON report.
package enum SamplePhase: String, CaseIterable, Sendable {
  /// The wait for a connection.
  case queue
  /// The DNS lookup.
  case dns
  /// The TCP handshake.
  case tcp
  /// The TLS handshake.
  case tls
  /// Sending the request.
  case send
  /// The time from the last byte of the request to the first byte of the response.
  case wait
  /// The time from the first to the last byte of the response.
  case transfer

  /// The duration of the phase in an exchange.
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

/// The samples of one target in one block, in the order in which the rounds were completed. The index of a
/// sample is its place in this order. A run may have a million samples, so each time is stored as a 32-bit
/// number of microseconds, in one array (column) for each kind of time.
package struct SampleSeries: Sendable {
  /// The kind of each sample.
  package private(set) var kinds: [SampleKind] = []
  /// `Sample.lag` of each sample, in microseconds.
  ///
  /// Here and in `services` and `phases`, 32 bits hold 35 minutes. A longer time is possible, because
  /// `--max-time 0` sets no limit. It is stored as the largest number.
  private var lags: [Int32] = []
  /// `Sample.service` of each sample, in microseconds.
  private var services: [Int32] = []
  /// For each phase, in the order of `SamplePhase.allCases`, a column with the duration of the phase in each
  /// sample, in microseconds.
  private var phases = [[Int32]](repeating: [], count: SamplePhase.allCases.count)
  /// The number of successful requests whose connection an earlier request had used.
  package private(set) var reused = 0
  /// The kernel's measurements of the connections, from the samples that have them.
  package private(set) var sockets = SocketSummary()

  /// Makes an empty series.
  package init() {}

  /// The number of samples.
  package var count: Int { kinds.count }

  /// The number of samples of each kind.
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

  /// The time from the scheduled moment of a request to the end of its response, in microseconds. For a
  /// failed request, the time until the failure. Without a schedule, the time counts from the start of the
  /// request.
  package func response(_ index: Int) -> Int64 { Int64(lags[index]) + Int64(services[index]) }

  /// The time from the start of a request to the end of its response, in microseconds. For a failed request,
  /// the time until the failure.
  package func service(_ index: Int) -> Int64 { Int64(services[index]) }

  /// The delay from the scheduled moment of a request to its start, in microseconds.
  package func lag(_ index: Int) -> Int64 { Int64(lags[index]) }

  /// The duration of a phase of a request, in microseconds.
  package func phase(_ phase: SamplePhase, _ index: Int) -> Int64 {
    Int64(phases[SamplePhase.allCases.firstIndex(of: phase) ?? 0][index])
  }

  /// The indices of the successful samples.
  package var successes: [Int] { kinds.indices.filter { kinds[$0] == .ok } }

  /// The largest value of `response` for any sample, failed requests included, in microseconds; 0 without
  /// samples.
  var largest: Int64 { kinds.indices.lazy.map { response($0) }.max() ?? 0 }
}

/// The kernel's measurements of the connections of a series: `TCP_INFO` of tcp(7). There is one measurement
/// for each sample, not one for each connection.
package struct SocketSummary: Hashable, Sendable {
  /// The smoothed round-trip time of the connection at each sample, in microseconds.
  package private(set) var roundTrips: [Int64] = []
  /// The retransmitted TCP segments, added up over all samples. Each sample adds the number of segments that
  /// its connection has retransmitted since it was opened (`tcpi_total_retrans`). On a reused connection,
  /// every later sample counts an earlier retransmission again.
  package private(set) var retransmits: Int64 = 0

  /// Makes an empty summary.
  package init() {}

  /// Adds the measurement of one sample's connection.
  mutating func add(_ socket: SocketReport) {
    roundTrips.append(socket.roundTrip.microseconds)
    retransmits += Int64(socket.retransmits)
  }
}
