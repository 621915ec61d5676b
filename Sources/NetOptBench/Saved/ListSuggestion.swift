package import NetOptCore

/// What a saved run says about a list: in which order its addresses should stand, and which ones should leave it, each with its
/// evidence.
package struct ListSuggestion: Sendable {
  /// An address that stays.
  package struct Place: Hashable, Sendable {
    /// The address.
    package let address: String
    /// Its rank; those that cannot be told apart have the same, and keep the order in which they were.
    package let rank: Int
    /// What speaks for it.
    package let evidence: String
  }

  /// An address that should leave.
  package struct Removal: Hashable, Sendable {
    /// The address.
    package let address: String
    /// What speaks against it.
    package let evidence: String
  }

  /// An address of which the run says nothing, because there is no way to it from where it was made.
  package struct Gap: Hashable, Sendable {
    /// The address.
    package let address: String
    /// What the run met.
    package let reason: String
  }

  /// Why there is nothing to suggest.
  package struct Refusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason, and what to do.
    package let description: String
  }

  /// The run.
  package let runs: [String]
  /// The addresses that stay, the best first.
  package let order: [Place]
  /// The addresses that should leave.
  package let removals: [Removal]
  /// The addresses that were not measured from there.
  package let unmeasured: [Gap]

  /// Reads a suggestion off a run.
  ///
  /// - Throws: `Refusal` when nothing tells the addresses apart and none of them should leave, or the run has no ranks.
  package init(_ run: SavedRun) throws(Refusal) {
    runs = run.runs
    let listed = run.targets.filter { $0.kind == .ip }
    guard !listed.isEmpty else {
      throw Refusal(description: "the run measured no address of a list: measure with --targets ip,dns")
    }
    unmeasured = listed.filter(Self.isUnmeasured).map {
      Gap(address: $0.id, reason: TextLayout.printable($0.exclusion?.reason ?? ""))
    }
    guard unmeasured.count < listed.count else {
      throw Refusal(
        description: "no address of the list can be reached from where the run was made: measure elsewhere")
    }
    guard listed.contains(where: { $0.rank != nil }) || listed.allSatisfy({ $0.exclusion != nil }) else {
      throw Refusal(
        description:
          "the run has no ranks (it was merged, or had too few samples): take one of a single machine")
    }
    var removals: [Removal] = []
    var order: [Place] = []
    for target in listed where !Self.isUnmeasured(target) {
      if let evidence = Self.evidence(against: target, run) {
        removals.append(Removal(address: target.id, evidence: evidence))
      } else if let rank = target.rank {
        order.append(Place(address: target.id, rank: rank, evidence: Self.evidence(for: target, run)))
      }
    }
    // The sort of the standard library keeps the order of equals.
    order.sort { $0.rank < $1.rank }
    if removals.isEmpty, Set(order.map(\.rank)).count <= 1, order.count > 1 {
      throw Refusal(
        description:
          "nothing tells the \(order.count) addresses apart: keep the list as it is, or measure with more rounds"
      )
    }
    self.order = order
    self.removals = removals
  }

  /// Whether nothing was learned of a target: that a host has no IPv6, for instance, is no fault of the address.
  private static func isUnmeasured(_ target: SavedRun.Target) -> Bool {
    target.exclusion?.code == SampleFailure.unreachable
  }

  private static func evidence(against target: SavedRun.Target, _ run: SavedRun) -> String? {
    if let exclusion = target.exclusion {
      return "left out by the run: \(TextLayout.printable(exclusion.reason))"
    }
    let total = target.counts.values.reduce(0, +)
    let failed = total - (target.counts[.ok] ?? 0)
    if FailureLimit.isExceeded(failures: failed, of: total) {
      return
        "\(failed) of \(total) requests failed, surely more than \(Int(FailureLimit.share * 100)) %"
    }
    guard let found = comparison(of: target, run), found.significant, found.shift_us > 0 else { return nil }
    return "slower than dns by \(text(found.shift_us)) ms [\(text(found.lo)) \(text(found.hi))] "
      + "(\(PValue.text(found.p_adjusted)))"
  }

  private static func evidence(for target: SavedRun.Target, _ run: SavedRun) -> String {
    let block = target.blocks[.warm]?.response.median == nil ? Block.cold : .warm
    let median = target.blocks[block]?.response.median.map { median in
      "p50 \(text(Double(median.value))) ms [\(text(Double(median.low))) \(text(Double(median.high)))]"
    }
    guard let found = comparison(of: target, run) else { return median ?? "no median" }
    let beside =
      found.significant
      ? "\(text(-found.shift_us)) ms faster than dns (\(PValue.text(found.p_adjusted)))"
      : "not told apart from dns (\(PValue.text(found.p_adjusted)))"
    return [median, beside].compactMap { $0 }.joined(separator: ", ")
  }

  private static func comparison(of target: SavedRun.Target, _ run: SavedRun) -> SavedRun.Comparison? {
    run.comparisons.first { $0.a == target.id && $0.b == "dns" && $0.metric == "p50" }
  }

  private static func text(_ microseconds: Double) -> String {
    guard microseconds.magnitude < 1e12 else { return "?" }
    return Milliseconds.decimal(Int64((microseconds / 10).rounded()), 2)
  }

  /// The suggestion for programs: `docs/schemas/iplist-suggest.schema.json`.
  package var json: JSONValue {
    [
      "schema_version": 1, "runs": .array(runs.map(JSONValue.string)),
      "order": .array(
        order.map {
          ["ip": .string($0.address), "rank": .integer(Int64($0.rank)), "evidence": .string($0.evidence)]
        }),
      "remove": .array(removals.map { ["ip": .string($0.address), "evidence": .string($0.evidence)] }),
      "unmeasured": .array(unmeasured.map { ["ip": .string($0.address), "reason": .string($0.reason)] }),
    ]
  }

  /// The suggestion for people.
  package var text: String {
    var lines: [String] = []
    if !order.isEmpty { lines.append("ORDER") }
    for place in order {
      let shares = order.count { $0.rank == place.rank } > 1
      lines += TextLayout.hanging(
        "  \(TextLayout.right("\(place.rank)\(shares ? "=" : " ")", 4)) ",
        "\(TextLayout.printable(place.address))  \(place.evidence)")
    }
    if !removals.isEmpty { lines.append("REMOVE") }
    for removal in removals {
      lines += TextLayout.hanging("     - ", "\(TextLayout.printable(removal.address))  \(removal.evidence)")
    }
    if !unmeasured.isEmpty { lines.append("NOT MEASURED FROM THERE") }
    for gap in unmeasured {
      lines += TextLayout.hanging("     ? ", "\(TextLayout.printable(gap.address))  \(gap.reason)")
    }
    return lines.map { $0 + "\n" }.joined()
  }
}
