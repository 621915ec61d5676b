import Testing

@testable import NetOptCore

@Suite("The error of a call without a connection names the most telling failure") struct RaceFailuresTests {
  /// The kinds of failure except `silent` and `busy`, in descending order of `weight`.
  private static let kinds: [LegFailure.Kind] = [
    .authorities, .proxyRefused, .certificateName(presented: ["other.test"]), .certificateUntrusted,
    .certificateExpired, .proxy, .tls, .unhealthy, .reset, .other, .tlsTimeout, .refused, .connectTimeout,
    .unreachable, .resolve, .nameNotFound,
  ]

  private static let origin = Origin(.https, host: "api.test", port: 443)

  /// Returns a plan whose only leg is DNS.
  ///
  /// - Parameter candidates: the endpoints of the list that the plan considered.
  private func plan(_ candidates: [RouteReport.Candidate] = []) -> RoutePlan {
    RoutePlan(
      origin: Self.origin, policy: .fastest, candidates: candidates, legs: [RoutePlan.Leg(.dns, source: .dns)]
    )
  }

  /// Returns the address 127.0.0.`number`.
  private func address(_ number: Int) throws -> IPAddress { try #require(IPAddress("127.0.0.\(number)")) }

  /// Returns the report of a leg that failed. If DNS failed, the leg has no address. Otherwise the leg is one
  /// of the list, and its address is 127.0.0.`number`.
  private func leg(_ kind: LegFailure.Kind, _ number: Int) throws -> RouteReport.Leg {
    let isLookUp = kind == .resolve || kind == .nameNotFound
    return RouteReport.Leg(
      address: isLookUp ? nil : try address(number), source: isLookUp ? .dns : .list, started: .zero,
      ended: .zero, outcome: .failed, failure: LegFailure(kind, "leg \(number) failed so"))
  }

  @Test("each kind of failure has more weight than the next kind")
  func order() {
    for (more, less) in zip(Self.kinds, Self.kinds.dropFirst()) { #expect(more.weight > less.weight) }
  }

  @Test(
    "no failure hides one with more weight, the error counts the rest, and the order of legs does not matter")
  func generated() throws {
    for seed in 0..<3000 as Range<UInt64> {
      var random = SplitMix64(seed: seed)
      var legs: [RouteReport.Leg] = []
      for number in 1...random.number(in: 1...9) {
        legs.append(try leg(Self.kinds[random.number(in: 0...Self.kinds.count - 1)], number))
      }
      let error = try #require(RaceFailures(plan(), legs).error())
      legs.shuffle(using: &random)
      let shuffled = try #require(RaceFailures(plan(), legs).error())
      #expect(shuffled.message == error.message && shuffled.endpoint == error.endpoint, "seed \(seed)")
      let kinds = legs.compactMap(\.failure?.kind).sorted { $0.weight > $1.weight }
      #expect(error.code == kinds[0].error.code && error.phase == kinds[0].error.phase, "seed \(seed)")
      #expect(error.isRetryable == kinds[0].error.isRetryable, "seed \(seed)")
      // The message names the other failures in descending order of weight, or counts them.
      let words = error.message.split(separator: "; besides, ")
      var phrases = words.count > 1 ? words[1].split(separator: ", and ")[...] : []
      var rest = kinds.dropFirst()
      while let kind = rest.first, let phrase = phrases.popFirst() {
        if phrase == "\(rest.count) more failed" { break }
        #expect(phrase.hasSuffix(kind.predicate), "seed \(seed): \(error.message)")
        rest = rest.drop { $0 == kind }
      }
      #expect(phrases.isEmpty, "seed \(seed): \(error.message)")
      #expect(rest.isEmpty || error.message.hasSuffix("\(rest.count) more failed"), "seed \(seed)")
    }
  }

  @Test("the error names a certificate failure first, and then that DNS knows no address")
  func certificateBeforeName() throws {
    let lookUp = NetOptError(.nameNotFound, phase: .resolve, "api.test is not known")
    let legs = [try leg(.certificateUntrusted, 2), try leg(.refused, 3), try leg(.nameNotFound, 4)]
    let error = try #require(RaceFailures(plan(), legs).error(lookUp: lookUp))
    #expect(error.code == .certificateUntrusted && !error.isRetryable)
    #expect(error.endpoint == IPEndpoint(try address(2), port: 443))
    #expect(
      error.message
        == "leg 2 failed so; besides, 127.0.0.3 refused the connection, and DNS has no other address for the name"
    )
  }

  @Test(
    "an endpoint excluded for its certificate counts as a failure; other excluded endpoints do not")
  func excluded() throws {
    let legs = [try leg(.nameNotFound, 4)]
    let lookUp = NetOptError(.nameNotFound, phase: .resolve, "api.test is not known; check the name")
    let impostor = RouteReport.Candidate(
      try address(2), score: nil, source: .list,
      excluded: .certificate(
        LegFailure(.certificateName(presented: ["other.test"]), "the certificate is for other.test"),
        nextCheck: .seconds(2), byProbe: true))
    let error = try #require(RaceFailures(plan([impostor]), legs).error(lookUp: lookUp))
    #expect(error.code == .certificateName)
    #expect(
      error.message
        == "127.0.0.2 of the IP list is not used: the certificate is for other.test; the address is probed again in 2 s; besides, DNS has no other address for the name"
    )
    // An endpoint that its circuit breaker excludes.
    let shut = RouteReport.Candidate(
      try address(2), score: nil, source: .list, excluded: .failures(inARow: 3, last: nil))
    let other = try #require(RaceFailures(plan([shut]), legs).error(lookUp: lookUp))
    #expect(other.code == .nameNotFound && other.message == lookUp.message)
  }

  @Test("a leg that won is not a failure, and inShort counts equal failures together")
  func others() throws {
    var won = try leg(.reset, 1)
    won.outcome = .won
    #expect(RaceFailures(plan(), [won]).error() == nil)
    #expect(RaceFailures(plan(), [won]).inShort == nil)
    #expect(
      RaceFailures(plan(), [try leg(.refused, 2), try leg(.refused, 3)]).inShort
        == "2 addresses refused the connection")
  }
}
