package import NetOptCore

/// The failover drill: what it costs a client that knows nothing yet when the first address of its list is dead, and how soon it
/// is over. Each trial has two new clients, one without the dead address and one with it in front; which one is first alternates, so
/// that what the first of two meets (a cache on the way that was empty) is not taken for the dead address's doing.
package struct Drill: Sendable {
  /// What one call gave.
  package struct Call: Hashable, Sendable {
    /// What it took as a whole.
    package let duration: Duration
    /// Whether the dead address was tried for it.
    package let isAffected: Bool
    /// Whether it was answered.
    package let isAnswered: Bool

    /// Describes a call.
    package init(duration: Duration, isAffected: Bool, isAnswered: Bool) {
      self.duration = duration
      self.isAffected = isAffected
      self.isAnswered = isAnswered
    }
  }

  /// One trial. Times are in microseconds.
  package struct Trial: Hashable, Sendable {
    /// When the first call with the dead address began, since 1970.
    package let startedAt: Int64
    /// What the first call took without the dead address; `nil` when it failed.
    package let baseline: Int64?
    /// What it took with it.
    package let first: Int64?
    /// How many calls tried the dead address.
    package let affected: Int
    /// From the start of the first call to the end of the first one that did not try it; `nil` when each of them did.
    package let recovery: Int64?
  }

  /// What was found of a dead address.
  package struct Result: Sendable {
    /// The address.
    package let address: IPAddress
    /// How it is dead.
    package let exclusion: Exclusion
    /// The trials.
    package let trials: [Trial]

    /// By how much the first call took longer, in each trial in which both were answered.
    var added: SignedRank {
      SignedRank(
        trials.compactMap { trial in
          guard let first = trial.first, let baseline = trial.baseline else { return nil }
          return Double(first - baseline)
        }, isSerial: false)
    }
  }

  /// How many trials there are for each dead address: enough for an interval.
  package static let trials = 12
  /// How many calls a client makes, one after the other.
  package static let calls = 10

  private let live: [IPAddress]
  private let now: @Sendable () -> Int64
  private let calls: @Sendable ([IPAddress], Int) async -> [Call]

  /// Makes a drill.
  ///
  /// - Parameters:
  ///   - live: the addresses that can be used, the best first.
  ///   - now: microseconds since 1970.
  ///   - calls: makes a client with a list of these addresses in this order, and so many calls with it; tells for each whether
  ///     the first address was tried. Fewer calls when the task is cancelled.
  package init(
    live: [IPAddress], now: @escaping @Sendable () -> Int64,
    calls: @escaping @Sendable ([IPAddress], Int) async -> [Call]
  ) {
    self.live = live
    self.now = now
    self.calls = calls
  }

  /// Drills with an address; `nil` when the task was cancelled before there was a trial.
  package func result(of address: IPAddress, _ exclusion: Exclusion) async -> Result? {
    var trials: [Trial] = []
    while trials.count < Self.trials {
      let isFirst = trials.count.isMultiple(of: 2)
      let before = isFirst ? await calls(live, 1) : []
      let started = now()
      let found = await calls([address] + live, Self.calls)
      let baseline = isFirst ? before : await calls(live, 1)
      guard !Task.isCancelled, let first = found.first else { break }
      var elapsed = Duration.zero
      var recovery: Duration?
      for call in found where recovery == nil {
        elapsed += call.duration
        if !call.isAffected, call.isAnswered { recovery = elapsed }
      }
      trials.append(
        Trial(
          startedAt: started,
          baseline: baseline.first.flatMap { $0.isAnswered ? $0.duration.microseconds : nil },
          first: first.isAnswered ? first.duration.microseconds : nil,
          affected: found.count(where: \.isAffected),
          recovery: recovery?.microseconds))
    }
    return trials.isEmpty ? nil : Result(address: address, exclusion: exclusion, trials: trials)
  }
}

extension Drill.Result {
  /// The median of some of the trials' times.
  private func median(_ value: (Drill.Trial) -> Int64?) -> Int64? {
    let values = trials.compactMap(value).sorted()
    return values.isEmpty ? nil : values[Percentile.p50.nearestRank(of: values.count) - 1]
  }

  /// The lines of the text report.
  var lines: [String] {
    let added = added
    var text = "\(TextLayout.printable(exclusion.reason)): "
    if let shift = added.shift {
      func milliseconds(_ value: Double) -> String { Milliseconds.decimal(Int64((value / 100).rounded()), 1) }
      text += "the first call took \(milliseconds(shift)) ms longer"
      if let interval = added.interval(confidence: 0.95) {
        text += " [\(milliseconds(interval.lowerBound)) \(milliseconds(interval.upperBound))]"
      }
    } else {
      text += "no first call was answered"
    }
    let most = trials.map(\.affected).max() ?? 0
    text += ", \(most == 1 ? "1 call" : "up to \(most) calls") of \(Drill.calls) tried it"
    if let recovery = median(\.recovery) {
      text += ", free of it after \(Milliseconds.decimal((recovery + 50) / 100, 1)) ms"
    }
    let failed = trials.count { $0.first == nil }
    if failed > 0 { text += ", \(failed) of \(trials.count) first calls failed" }
    return TextLayout.hanging("DRILL   ", "\(address) first: \(text)")
  }

  /// The member of the JSON report.
  var json: JSONValue {
    let added = added
    let interval = added.interval(confidence: 0.95)
    func number(_ value: Double?) -> JSONValue { value.map { .number(($0 * 10).rounded() / 10) } ?? .null }
    return [
      "ip": .string(address.description), "code": .string(exclusion.code),
      "reason": .string(exclusion.reason),
      "baseline_us": .optional(median(\.baseline)), "first_us": .optional(median(\.first)),
      "added_us": number(added.shift), "lo": number(interval?.lowerBound), "hi": number(interval?.upperBound),
      "recovery_us": .optional(median(\.recovery)),
      "failed": .integer(Int64(trials.count { $0.first == nil })),
      "trials": .array(
        trials.map { trial in
          [
            "started_unix_us": .integer(trial.startedAt), "baseline_us": .optional(trial.baseline),
            "first_us": .optional(trial.first), "affected": .integer(Int64(trial.affected)),
            "recovery_us": .optional(trial.recovery),
          ]
        }),
    ]
  }
}
