extension RoutePlan {
  /// The addresses that an attempt of a call avoids. A retry avoids the addresses at which earlier attempts
  /// failed. A hedge avoids the address that the first attempt uses.
  package struct Avoidance: Hashable, Sendable {
    /// The addresses to avoid, from the list or from DNS.
    package let addresses: [IPAddress]
    /// Whether the attempt never tries the addresses, as for a hedge. If false, the attempt tries them after
    /// all other addresses, as for a retry.
    package let isStrict: Bool

    /// Creates an avoidance.
    package init(_ addresses: [IPAddress], isStrict: Bool = false) {
      self.addresses = addresses
      self.isStrict = isStrict
    }
  }

  /// Returns this plan for an attempt that avoids some addresses. All other legs, including DNS, come first
  /// in their present order. The legs to the avoided addresses follow, or are left out if the avoidance is
  /// strict.
  ///
  /// - Returns: `nil` when no leg is left, which happens only for a strict avoidance.
  package func avoiding(_ avoidance: Avoidance) -> RoutePlan? {
    let legs = avoidance.ordered(legs)
    return legs.isEmpty ? nil : with(legs, avoiding: avoidance)
  }

  /// Applies `avoidance` to the legs that a DNS look-up made: moves the legs to avoided addresses to the end,
  /// or removes them if the avoidance is strict.
  ///
  /// - Parameter answers: one leg for each address that the resolver returned, in the resolver's order.
  package func ordered(_ answers: [Leg]) -> [Leg] { avoidance?.ordered(answers) ?? answers }

  /// Whether the attempt with this plan avoids an address.
  package func avoids(_ address: IPAddress) -> Bool { avoidance?.addresses.contains(address) ?? false }
}

extension RoutePlan.Avoidance {
  /// Returns the candidates. If the avoidance is strict, the avoided candidates get the exclusion reason
  /// `otherAttempt`, unless they have a reason already.
  func marked(_ candidates: [RouteReport.Candidate]) -> [RouteReport.Candidate] {
    guard isStrict else { return candidates }
    return candidates.map { candidate in
      guard candidate.excluded == nil, addresses.contains(candidate.address) else { return candidate }
      return RouteReport.Candidate(
        candidate.address, score: candidate.score, source: candidate.source,
        excluded: .otherAttempt)
    }
  }

  /// Moves the legs to avoided addresses to the end, or removes them if the avoidance is strict.
  fileprivate func ordered(_ legs: [RoutePlan.Leg]) -> [RoutePlan.Leg] {
    var front: [RoutePlan.Leg] = []
    var back = front
    for leg in legs {
      if let address = leg.address, addresses.contains(address) {
        back.append(leg)
      } else {
        front.append(leg)
      }
    }
    return isStrict ? front : front + back
  }
}
