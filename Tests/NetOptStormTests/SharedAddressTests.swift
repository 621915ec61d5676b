import NetOptStorm
import Testing

/// Hosts of different HTTP versions at one address.
@Suite struct SharedAddressTests {
  @Test("an answer goes to its own request where an HTTP/1.1 host shares an address with an HTTP/2 host")
  func everyAnswerBelongsToItsRequest() async throws {
    let address = try await SharedAddress()
    defer { address.stop() }
    let result = try await SharedAddressTrial(at: address).run(answers: 300)
    #expect(result.wrong == 0, "\(result.examples)")
    #expect(result.failed.isEmpty, "\(result.examples)")
    #expect(result.answers >= 300)
  }
}
