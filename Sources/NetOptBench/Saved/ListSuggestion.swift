package import NetOptCore

/// Suggests changes to an address list from a saved run: an order of the addresses, and addresses to remove.
/// Each comes with its evidence from the run.
package struct ListSuggestion: Sendable {
  /// An address to keep.
  package struct RankedAddress: Hashable, Sendable {
    /// The address.
    package let address: String
    /// The rank in the run, from 1. Addresses without a significant difference share a rank, and keep the
    /// order that they have in the list.
    package let rank: Int
    /// The measured times, in one line.
    package let evidence: String
  }

  /// An address to remove.
  package struct Removal: Hashable, Sendable {
    /// The address.
    package let address: String
    /// The failures or times that speak against the address, in one line.
    package let evidence: String
  }

  /// An address that the run could not measure because the machine had no route to it. The run says nothing
  /// about such an address.
  package struct UnmeasuredAddress: Hashable, Sendable {
    /// The address.
    package let address: String
    /// The reason that the run recorded, for people.
    package let reason: String
  }

  /// The reason why a run allows no suggestion.
  package struct Refusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason, and what the user can do.
    package let description: String
  }

  /// The name of the run, or the names of all runs of a merged run.
  package let runs: [String]
  /// The addresses to keep, the best first. An address without a rank, which has no median in the run, is
  /// left out.
  package let order: [RankedAddress]
  /// The addresses to remove.
  package let removals: [Removal]
  /// The addresses that the run could not measure.
  package let unmeasured: [UnmeasuredAddress]

  /// Derives a suggestion from a run.
  ///
  /// - Throws: `Refusal` in four cases: the run has no address of a list; the machine had no route to any of
  ///   them; the run has no ranks; or the run found no difference between the addresses and no address to
  ///   remove.
  package init(_ run: SavedRun) throws(Refusal) {
    runs = run.runs
    let listed = run.targets.filter { $0.kind == .ip }
    guard !listed.isEmpty else {
      throw Refusal(description: "the run measured no address of an IP list; run bench with --targets ip,dns")
    }
    unmeasured = listed.filter(Self.isUnmeasured).map {
      UnmeasuredAddress(address: $0.id, reason: TextLayout.printable($0.exclusion?.reason ?? ""))
    }
    guard unmeasured.count < listed.count else {
      throw Refusal(
        description: "the machine of the run reached no address of the list; run bench on another machine")
    }
    guard listed.contains(where: { $0.rank != nil }) || listed.allSatisfy({ $0.exclusion != nil }) else {
      throw Refusal(
        description:
          "the run has no ranks (it was merged, or had too few samples); use a run of one machine")
    }
    // The comparison of each target with DNS at p50.
    let comparisons = Dictionary(
      run.comparisons.filter { $0.b == "dns" && $0.metric == "p50" }.map { ($0.a, $0) },
      uniquingKeysWith: { first, _ in first })
    var removals: [Removal] = []
    var order: [RankedAddress] = []
    for target in listed where !Self.isUnmeasured(target) {
      let comparison = comparisons[target.id]
      if let evidence = Self.evidence(against: target, comparison) {
        removals.append(Removal(address: target.id, evidence: evidence))
      } else if let rank = target.rank {
        let evidence = Self.evidence(for: target, comparison)
        order.append(RankedAddress(address: target.id, rank: rank, evidence: evidence))
      }
    }
    // The standard library's sort is stable: addresses of equal rank keep the order of the list.
    order.sort { $0.rank < $1.rank }
    if removals.isEmpty, Set(order.map(\.rank)).count <= 1, order.count > 1 {
      throw Refusal(
        description:
          "the run cannot tell the \(order.count) addresses apart; keep the list, or run bench with more rounds"
      )
    }
    self.order = order
    self.removals = removals
  }

  /// Whether the machine of the run had no route to the target. For example, a machine without IPv6 says
  /// nothing about IPv6 addresses.
  private static func isUnmeasured(_ target: SavedRun.Target) -> Bool {
    target.exclusion?.code == SampleFailure.unreachable
  }

  /// Why the address should be removed; `nil` when it should stay. It should be removed when the run excluded
  /// it, when too many requests failed, or when it is significantly slower than DNS.
  ///
  /// - Parameter comparison: the comparison of the address with DNS; `nil` if the run has none.
  private static func evidence(against target: SavedRun.Target, _ comparison: SavedRun.Comparison?) -> String?
  {
    if let exclusion = target.exclusion {
      return "excluded by the run: \(TextLayout.printable(exclusion.reason))"
    }
    let total = target.counts.values.reduce(0, +)
    let failed = total - (target.counts[.ok] ?? 0)
    if FailureLimit.isExceeded(failures: failed, of: total) {
      return
        "\(failed) of \(total) requests failed, significantly more than \(Int(FailureLimit.share * 100)) %"
    }
    guard let found = comparison, found.significant, found.shift_us > 0 else { return nil }
    return "slower than dns by \(text(found.shift_us)) ms [\(text(found.lo)) \(text(found.hi))] "
      + "(\(PValue.text(found.p_adjusted)))"
  }

  /// The evidence for an address to keep, in one line: its median, and its comparison with DNS.
  private static func evidence(for target: SavedRun.Target, _ comparison: SavedRun.Comparison?) -> String {
    let block = target.blocks[.warm]?.response.median == nil ? Block.cold : .warm
    let median = target.blocks[block]?.response.median.map { median in
      "p50 \(text(Double(median.value))) ms [\(text(Double(median.low))) \(text(Double(median.high)))]"
    }
    guard let found = comparison else { return median ?? "no median" }
    let beside =
      found.significant
      ? "\(text(-found.shift_us)) ms faster than dns (\(PValue.text(found.p_adjusted)))"
      : "no significant difference to dns (\(PValue.text(found.p_adjusted)))"
    return [median, beside].compactMap { $0 }.joined(separator: ", ")
  }

  /// Formats a time given in microseconds as milliseconds with two decimals; `?` for a time too large to be
  /// real.
  private static func text(_ microseconds: Double) -> String {
    guard microseconds.magnitude < 1e12 else { return "?" }
    return Milliseconds.decimal(Int64(clamped: (microseconds / 10).rounded()), 2)
  }

  /// The suggestion as JSON: `docs/schemas/iplist-suggest.schema.json`.
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

  /// The suggestion as text.
  package var text: String {
    var lines: [String] = []
    if !order.isEmpty { lines.append("ORDER") }
    let sharing = Dictionary(order.map { ($0.rank, 1) }, uniquingKeysWith: +)
    for ranked in order {
      let shares = sharing[ranked.rank] != 1
      lines += TextLayout.hanging(
        "  \(TextLayout.right("\(ranked.rank)\(shares ? "=" : " ")", 4)) ",
        "\(TextLayout.printable(ranked.address))  \(ranked.evidence)")
    }
    if !removals.isEmpty { lines.append("REMOVE") }
    for removal in removals {
      lines += TextLayout.hanging("     - ", "\(TextLayout.printable(removal.address))  \(removal.evidence)")
    }
    if !unmeasured.isEmpty { lines.append("NOT MEASURED (NO ROUTE)") }
    for entry in unmeasured {
      lines += TextLayout.hanging("     ? ", "\(TextLayout.printable(entry.address))  \(entry.reason)")
    }
    return lines.map { $0 + "\n" }.joined()
  }
}
