import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct BlameTests {
  @Test(arguments: [
    (LegFailure.Kind.refused, Blame.endpoint), (.connectTimeout, .endpoint), (.tlsTimeout, .endpoint),
    (.reset, .endpoint), (.tls, .endpoint), (.certificateName(presented: ["a"]), .certificate),
    (.certificateUntrusted, .certificate), (.certificateExpired, .certificate),
    (.unreachable, .localNetwork), (.resolve, .nobody), (.nameNotFound, .nobody), (.proxy, .nobody),
    (.proxyRefused, .nobody), (.authorities, .nobody),
    (.other, .nobody),
  ])
  func isGiven(_ kind: LegFailure.Kind, _ blame: Blame) {
    #expect(Blame(kind) == blame)
  }
}
