package import NetOptCore

/// The failover drill. It measures what a dead address at the front of the list costs a new client, which
/// knows nothing about the address yet. It also measures how soon the client's calls avoid that address.
///
/// Each trial uses two new clients. The list of one client does not contain the dead address. The list of the
/// other client begins with this address. The clients take turns in going first, from trial to trial.
/// Otherwise a cost that only the first client pays, such as an empty cache on the way, would look like a
/// cost of the dead address.
package struct Drill: Sendable {
  /// The result of one call.
  package struct Call: Hashable, Sendable {
    /// The duration of the call.
    package let duration: Duration
    /// Whether the call tried the first address of its client's list without success. In the list with the
    /// dead address, this first address is the dead one.
    package let isAffected: Bool
    /// Whether the call got a whole response with a status that counts as success (`Sample.isSuccess`).
    package let isAnswered: Bool

    /// Makes the result of a call.
    package init(duration: Duration, isAffected: Bool, isAnswered: Bool) {
      self.duration = duration
      self.isAffected = isAffected
      self.isAnswered = isAnswered
    }
  }

  /// The results of one trial. Durations are in microseconds.
  package struct Trial: Hashable, Sendable {
    /// When the first call with the dead address began, in microseconds since 1970.
    package let startedAt: Int64
    /// The duration of the call of the client whose list does not contain the dead address; `nil` when the
    /// call failed (`Call.isAnswered`).
    package let baseline: Int64?
    /// The duration of the first call of the client whose list begins with the dead address; `nil` when the
    /// call failed (`Call.isAnswered`).
    package let first: Int64?
    /// The number of calls that tried the dead address without success. Only the client whose list begins
    /// with this address counts.
    package let affected: Int
    /// How long the client with the dead address needed until it avoided this address: the time from the
    /// start of its first call to the end of the first call that succeeded and did not try the address. The
    /// time is the sum of the durations of these calls. `nil` when every call failed or tried the address.
    package let recovery: Int64?
  }

  /// The result of the drill for one dead address.
  package struct Result: Sendable {
    /// The dead address.
    package let address: IPAddress
    /// The reason why the run excluded the address, which makes it a dead address.
    package let exclusion: Exclusion
    /// The trials.
    package let trials: [Trial]

    /// The signed-rank test of the time that the dead address adds to the first call. It uses the trials in
    /// which the first calls of both clients got responses. The trials count as independent.
    var added: SignedRank {
      SignedRank(
        trials.compactMap { trial in
          guard let first = trial.first, let baseline = trial.baseline else { return nil }
          return Double(first - baseline)
        }, isSerial: false)
    }
  }

  /// The number of trials for each dead address. It is large enough for a confidence interval.
  package static let trials = 12
  /// The number of calls that the client with the dead address makes in each trial, one after the other.
  package static let calls = 10

  /// The usable addresses, the best first.
  private let live: [IPAddress]
  /// Returns microseconds since 1970.
  private let now: @Sendable () -> Int64
  /// Makes a new client with the given list, makes the given number of calls with it, and returns their
  /// results. `init` describes the function in detail.
  private let calls: @Sendable ([IPAddress], Int) async -> [Call]

  /// Makes a drill.
  ///
  /// - Parameters:
  ///   - live: the usable addresses, the best first.
  ///   - now: returns microseconds since 1970.
  ///   - calls: makes a new client, whose list has the given addresses in the given order, and then the given
  ///     number of calls with this client. Returns the result of each call. A call is affected when it tried
  ///     the first address of the list without success. Returns fewer results when the task is cancelled.
  package init(
    live: [IPAddress], now: @escaping @Sendable () -> Int64,
    calls: @escaping @Sendable ([IPAddress], Int) async -> [Call]
  ) {
    self.live = live
    self.now = now
    self.calls = calls
  }

  /// Runs the trials for a dead address.
  ///
  /// - Parameter exclusion: the reason why the run excluded the address.
  /// - Returns: `nil` when the task was cancelled before the first trial ended.
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
  /// The median of one kind of time over the trials, in microseconds; `nil` when there is no value.
  ///
  /// - Parameter value: returns the time of a trial, or `nil` to leave out the trial.
  private func median(_ value: (Drill.Trial) -> Int64?) -> Int64? {
    let values = trials.compactMap(value).sorted()
    return values.isEmpty ? nil : values[Percentile.p50.nearestRank(of: values.count) - 1]
  }

  /// The drill's lines in the text report.
  var lines: [String] {
    let added = added
    var text = "\(TextLayout.printable(exclusion.reason)): "
    if let shift = added.shift {
      func milliseconds(_ value: Double) -> String {
        Milliseconds.decimal(Int64(clamped: (value / 100).rounded()), 1)
      }
      text += "the first call took \(milliseconds(shift)) ms longer"
      if let interval = added.interval(confidence: 0.95) {
        text += " [\(milliseconds(interval.lowerBound)) \(milliseconds(interval.upperBound))]"
      }
    } else {
      text += "no first call got a response"
    }
    let most = trials.map(\.affected).max() ?? 0
    text += ", \(most == 1 ? "1 call" : "up to \(most) calls") of \(Drill.calls) tried the address"
    if let recovery = median(\.recovery) {
      text += ", not tried any more after \(Milliseconds.decimal((recovery + 50) / 100, 1)) ms"
    }
    let failed = trials.count { $0.first == nil }
    if failed > 0 { text += ", \(failed) of \(trials.count) first calls failed" }
    return TextLayout.hanging("DRILL   ", "\(address) first: \(text)")
  }

  /// The drill's object in the JSON report.
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
