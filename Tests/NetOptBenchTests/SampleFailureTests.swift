import NetOptBench
import NetOptCore
import Testing

@Suite struct SampleFailureTests {
  @Test(
    "a failed leg decides the kind, code and reason of the failure",
    arguments: [
      (LegFailure.Kind.refused, SampleKind.connect, "refused", "connect: refused"),
      (.connectTimeout, .timeout, "silent", "connect: no answer in time"),
      (.tlsTimeout, .timeout, "silent", "TLS: no answer in time"),
      (.reset, .connect, "reset", "connect: the connection was closed"),
      (.unreachable, .connect, "unreachable", "connect: no route from here"),
      (.tls, .tls, "tls-failed", "TLS: it failed"),
      (
        .certificateName(presented: ["a.example", "b.example"]), .tls, "certificate-name",
        "TLS: certificate is for a.example, b.example"
      ),
      (.certificateName(presented: []), .tls, "certificate-name", "TLS: certificate is for another name"),
      (.certificateUntrusted, .tls, "certificate-untrusted", "TLS: certificate is from an unknown authority"),
      (.certificateExpired, .tls, "certificate-expired", "TLS: certificate expired or not yet valid"),
      (.resolve, .dns, "name-not-found", "DNS: it failed"),
    ])
  func failedLeg(leg: LegFailure.Kind, kind: SampleKind, code: String, reason: String) {
    #expect(SampleFailure(.leg(leg)) == SampleFailure(kind, code: code, reason: reason))
  }

  @Test(
    "the failure for an error without a route follows from the error's code",
    arguments: [
      (NetOptError.Code.timeout, SampleKind.timeout), (.nameNotFound, .dns), (.resolverFailed, .dns),
      (.connectFailed, .connect), (.sendFailed, .connect), (.receiveFailed, .connect), (.tlsFailed, .tls),
      (.certificateName, .tls), (.certificateUntrusted, .tls), (.certificateExpired, .tls),
      (.noAuthorities, .tls), (.proxyFailed, .connect),
      (.protocolViolation, .httpError), (.decodeFailed, .httpError),
    ])
  func noRoute(code: NetOptError.Code, kind: SampleKind) {
    let failure = SampleFailure(NetOptError(code, phase: .receive, "it failed"))
    #expect(failure.kind == kind)
    #expect(failure.code == code.description)
  }

  @Test("a leg with an unspecific failure leaves the code to the error")
  func unspecificLeg() {
    #expect(SampleFailure(.leg(.other, .sendFailed)).code == "send-failed")
  }

  @Test("a failed leg does not explain a failure after another leg won")
  func earlierLegs() {
    var route = NetOptError.leg(.refused).route
    let winner = RouteReport.Leg(
      address: nil, source: .dns, started: .zero, ended: .zero, outcome: .won)
    route?.legs.insert(winner, at: 0)
    let error = NetOptError(.timeout, phase: .receive, "too slow", route: route)
    #expect(SampleFailure(error).kind == .timeout)
  }
}
