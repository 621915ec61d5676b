import NetOptStorm
import Testing

/// Hosts with different HTTP versions at one address.
@Suite struct SharedAddressTests {
  @Test("each request gets its own response when an HTTP/1.1 host and an HTTP/2 host share an address")
  func ownResponses() async throws {
    let address = try await SharedAddress()
    defer { address.stop() }
    let result = try await SharedAddressTrial(at: address).run(answers: 300)
    #expect(result.wrong == 0, "\(result.examples)")
    #expect(result.failed.isEmpty, "\(result.examples)")
    #expect(result.answers >= 300)
  }
}
