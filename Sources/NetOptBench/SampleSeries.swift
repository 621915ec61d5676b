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

/// The samples of one target in one block, as columns of microseconds: a run may take a million of them.
package struct SampleSeries: Sendable {
  private var totals: [Int64] = []
  private var phases = [[Int64]](repeating: [], count: SamplePhase.allCases.count)
  /// How many samples there are of each kind.
  package private(set) var counts: [SampleKind: Int] = [:]
  /// How many of the answered ones came over a connection that had been used before.
  package private(set) var reused = 0

  /// Makes an empty series.
  package init() {}

  /// How many samples there are.
  package var count: Int { counts.values.reduce(0, +) }

  /// Adds a sample. Only one that is fine adds to the distributions.
  package mutating func append(_ sample: Sample) {
    counts[sample.kind, default: 0] += 1
    guard sample.kind == .ok else { return }
    if sample.reused { reused += 1 }
    totals.append(sample.timings.total.microseconds)
    for (column, phase) in SamplePhase.allCases.enumerated() {
      phases[column].append(phase.duration(in: sample.timings).microseconds)
    }
  }

  /// What the requests took as a whole, timeouts included.
  package var response: Distribution { Distribution(totals, timeouts: counts[.timeout] ?? 0) }

  /// What the phases of the requests that were fine took.
  package var byPhase: [SamplePhase: Distribution] {
    Dictionary(uniqueKeysWithValues: zip(SamplePhase.allCases, phases.map { Distribution($0) }))
  }
}
