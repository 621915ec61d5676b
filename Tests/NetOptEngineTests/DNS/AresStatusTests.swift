import NetOptCore
import Testing

@testable import NetOptEngine

/// The errors that netopt makes from the status codes of c-ares. A comment names the codes of each test:
/// ENODATA stands for ARES_ENODATA.
@Suite struct AresStatusTests {
  private let servers = [IPEndpoint(IPAddress(v4: 0x7f00_0001), port: 5353)]

  /// ENODATA (1), ENOTFOUND (4) and EBADNAME (8).
  @Test(
    "a status for a name without an address becomes nameNotFound, which is not retryable",
    arguments: [1, 4, 8] as [Int32])
  func nameNotFound(status: Int32) {
    let error = AresStatus.error(status, name: "api.example.com", servers: servers)
    #expect(error.code == .nameNotFound)
    #expect(!error.isRetryable)
    #expect(error.message.contains("api.example.com"))
    #expect(error.underlying?.library == .ares)
    #expect(error.underlying?.code == status)
  }

  /// ESERVFAIL (3), EREFUSED (6), EBADRESP (10), ECONNREFUSED (11), ETIMEOUT (12), and a status that does not
  /// exist.
  @Test(
    "a status for a failed look-up becomes a retryable resolverFailed that names the servers",
    arguments: [3, 6, 10, 11, 12, 999] as [Int32])
  func resolverFailed(status: Int32) {
    let error = AresStatus.error(status, name: "api.example.com", servers: servers)
    #expect(error.code == .resolverFailed)
    #expect(error.phase == .resolve)
    #expect(error.isRetryable)
    #expect(error.message.contains("api.example.com"))
    #expect(error.message.contains("127.0.0.1:5353"))
    let system = AresStatus.error(status, name: "api.example.com", servers: [])
    #expect(system.message.contains("/etc/resolv.conf"))
  }

  /// ESERVFAIL (3), EREFUSED (6) and EBADRESP (10).
  @Test(
    "the error message says what the name servers answered",
    arguments: [(3, "SERVFAIL"), (6, "REFUSED"), (10, "Misformatted DNS reply")] as [(Int32, String)])
  func serverAnswers(status: Int32, words: String) {
    for servers in [servers, []] {
      #expect(AresStatus.error(status, name: "api.example.com", servers: servers).message.contains(words))
    }
  }

  /// EDESTRUCTION (16) and ECANCELLED (24).
  @Test("a status for a destroyed or cancelled channel becomes shutDown", arguments: [16, 24] as [Int32])
  func shutDown(status: Int32) {
    #expect(AresStatus.error(status, name: "api.example.com", servers: []).code == .shutDown)
  }

  @Test("the version of c-ares has three numbers, and the first is 1")
  func version() {
    let numbers = AresVersion.string.split(separator: ".").compactMap { Int($0) }
    #expect(numbers.count == 3)
    #expect(numbers.first == 1)
  }
}
