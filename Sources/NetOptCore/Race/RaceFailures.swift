/// The failures that left a call without a connection, the most telling one first.
///
/// Which one that is does not depend on the order in which the legs failed: an impostor at a listed address is not hidden by the
/// look-up behind it that found no name, nor by an address that refused the connection.
package struct RaceFailures: Sendable {
  /// One of them.
  private struct Entry {
    let failure: LegFailure
    /// Where it happened; `nil` for a look-up or a proxy.
    let address: IPAddress?
    /// Whether it is that of a look-up.
    let isLookUp: Bool
  }

  /// How many kinds of failure a message names beside the first one.
  private static let mostOthers = 3

  /// The most telling one first.
  private let entries: [Entry]
  private let port: UInt16

  /// Gathers the failures of a race.
  ///
  /// - Parameters:
  ///   - plan: what was raced along. An endpoint that it leaves out because of a failure counts with that failure.
  ///   - legs: what became of the legs.
  package init(_ plan: RoutePlan, _ legs: [RouteReport.Leg]) {
    port = plan.origin.port
    var entries = legs.compactMap { leg -> Entry? in
      guard leg.outcome == .failed, let failure = leg.failure else { return nil }
      return Entry(
        failure: failure, address: leg.address, isLookUp: leg.address == nil && plan.proxy == nil)
    }
    for candidate in plan.candidates {
      guard let kind = candidate.failure, let reason = candidate.excluded else { continue }
      let message = "\(candidate.address) of the list is left out: \(reason)"
      entries.append(
        Entry(failure: LegFailure(kind, message), address: candidate.address, isLookUp: false))
    }
    self.entries = entries.sorted {
      ($0.failure.kind.weight, $1.failure.message) > ($1.failure.kind.weight, $0.failure.message)
    }
  }

  /// The most telling one; `nil` when there is none.
  package var first: LegFailure? { entries.first?.failure }

  /// The error of the call; `nil` without a failure.
  ///
  /// - Parameter lookUp: the error of the look-up, if that failed: it says more than the leg's failure does.
  package func error(lookUp: NetOptError? = nil) -> NetOptError? {
    guard let first = entries.first else { return nil }
    let others = phrases(of: entries.dropFirst(), "other addresses")
    let words = others.isEmpty ? "" : "; besides, \(others.joined(separator: ", and "))"
    if first.isLookUp, let lookUp {
      return NetOptError(
        lookUp.code, phase: lookUp.phase, lookUp.message + words, endpoint: lookUp.endpoint,
        underlying: lookUp.underlying, isRetryable: lookUp.isRetryable)
    }
    return NetOptError(
      LegFailure(first.failure.kind, first.failure.message + words),
      at: first.address.map { IPEndpoint($0, port: port) })
  }

  /// All of them in short, each kind once: "127.0.0.2 refused the connection", "3 addresses did not answer". `nil` without a failure.
  package var inShort: String? {
    entries.isEmpty ? nil : phrases(of: entries[...], "addresses").joined(separator: ", and ")
  }

  /// What failed, in short.
  ///
  /// - Parameter addresses: what several are called.
  private func phrases(of entries: ArraySlice<Entry>, _ addresses: String) -> [String] {
    var phrases: [String] = []
    var rest = entries
    while let first = rest.first, phrases.count < Self.mostOthers {
      let same = rest.prefix { $0.failure.kind.weight == first.failure.kind.weight }
      rest = rest.dropFirst(same.count)
      phrases.append("\(subject(of: same, addresses)) \(first.failure.kind.predicate)")
    }
    if !rest.isEmpty { phrases.append("\(rest.count) more failed") }
    return phrases
  }

  private func subject(of entries: ArraySlice<Entry>, _ addresses: String) -> String {
    guard let first = entries.first, entries.count == 1 else { return "\(entries.count) \(addresses)" }
    if first.isLookUp { return "DNS" }
    return first.address?.description ?? "the proxy"
  }
}
