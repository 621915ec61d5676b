import NetOptCore
import Testing

@Suite struct RoutePlanAvoidingTests {
  private let a = IPAddress(v4: 0x0a00_0001)
  private let b = IPAddress(v4: 0x0a00_0002)
  private let c = IPAddress(v4: 0x0a00_0003)

  /// Returns a plan with a leg to each address, and after these legs a leg for DNS if `dns` is true. The
  /// candidates of the plan are the addresses, and `c`, which a half-open circuit breaker excludes.
  private func plan(_ addresses: [IPAddress], dns: Bool = true) -> RoutePlan {
    let listed = addresses.map { RoutePlan.Leg(.address($0), source: .list) }
    let candidates =
      addresses.map { RouteReport.Candidate($0, score: .milliseconds(1), source: .list) }
      + [RouteReport.Candidate(c, score: nil, source: .list, excluded: .attemptUnderWay)]
    return RoutePlan(
      origin: Origin(.https, host: "a.example"), policy: .fastest, candidates: candidates,
      legs: listed + (dns ? [RoutePlan.Leg(.dns, source: .dns)] : []), startsTwo: true, multiplexes: false)
  }

  @Test("avoiding moves the legs to failed addresses to the end of the plan")
  func failedLast() throws {
    let plan = plan([a, b, c])
    let other = try #require(plan.avoiding(.init([a, c])))
    #expect(other.legs.map(\.address) == [b, nil, a, c])
    #expect(other.avoids(a) && !other.avoids(b))
    #expect(other.startsTwo && !other.multiplexes && other.policy == .fastest)
    #expect(!plan.avoids(a) && plan.legs.map(\.address) == [a, b, c, nil])
  }

  @Test("avoiding keeps the only leg of a plan")
  func onlyLeg() throws {
    let other = try #require(plan([a], dns: false).avoiding(.init([a])))
    #expect(other.legs.map(\.address) == [a])
  }

  @Test("strict avoiding removes the legs to failed addresses, and returns nil when none is left")
  func strictAvoidance() throws {
    let other = try #require(plan([a, b]).avoiding(.init([a], isStrict: true)))
    #expect(other.legs.map(\.address) == [b, nil])
    // The candidate of the removed leg gets the reason `otherAttempt`. `c` keeps the reason that it has.
    #expect(other.candidates.map(\.excluded) == [.otherAttempt, nil, .attemptUnderWay])
    #expect(other.candidates.map(\.score) == plan([a, b]).candidates.map(\.score))
    #expect(plan([a, b]).avoiding(.init([a, c]))?.candidates == plan([a, b]).candidates)
    #expect(plan([a], dns: false).avoiding(.init([a], isStrict: true)) == nil)
  }

  @Test("a plan that avoids addresses moves or removes answers of DNS too")
  func dnsAnswers() throws {
    let answers = [a, b].map { RoutePlan.Leg(.address($0), source: .dns) }
    #expect(plan([c]).ordered(answers) == answers)
    #expect(plan([c]).avoiding(.init([a]))?.ordered(answers).map(\.address) == [b, a])
    #expect(plan([c]).avoiding(.init([a], isStrict: true))?.ordered(answers).map(\.address) == [b])
  }
}
