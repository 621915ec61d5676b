import NetOptCore
import Testing

@testable import NetOptEngine

@Suite struct AresStatusTests {
  private let servers = [IPEndpoint(IPAddress(v4: 0x7f00_0001), port: 5353)]

  /// ENODATA, ENOTFOUND, EBADNAME.
  @Test(arguments: [1, 4, 8] as [Int32])
  func noAddressIsNameNotFound(status: Int32) {
    let error = AresStatus.error(status, name: "api.example.com", servers: servers)
    #expect(error.code == .nameNotFound)
    #expect(!error.isRetryable)
    #expect(error.message.contains("api.example.com"))
    #expect(error.underlying?.library == .ares)
    #expect(error.underlying?.code == status)
  }

  /// ESERVFAIL, EREFUSED, EBADRESP, ECONNREFUSED, ETIMEOUT, and one that does not exist.
  @Test(arguments: [3, 6, 10, 11, 12, 999] as [Int32])
  func noAnswerIsResolverFailedAndNamesWhoWasAsked(status: Int32) {
    let error = AresStatus.error(status, name: "api.example.com", servers: servers)
    #expect(error.code == .resolverFailed)
    #expect(error.phase == .resolve)
    #expect(error.isRetryable)
    #expect(error.message.contains("api.example.com"))
    #expect(error.message.contains("127.0.0.1:5353"))
    let system = AresStatus.error(status, name: "api.example.com", servers: [])
    #expect(system.message.contains("/etc/resolv.conf"))
  }

  /// ESERVFAIL, EREFUSED, EBADRESP.
  @Test(
    "what the servers said is named",
    arguments: [(3, "SERVFAIL"), (6, "REFUSED"), (10, "Misformatted DNS reply")] as [(Int32, String)])
  func theServersWordsAreNamed(status: Int32, words: String) {
    for servers in [servers, []] {
      #expect(AresStatus.error(status, name: "api.example.com", servers: servers).message.contains(words))
    }
  }

  /// EDESTRUCTION, ECANCELLED.
  @Test(arguments: [16, 24] as [Int32])
  func theEndOfTheChannelIsShutDown(status: Int32) {
    #expect(AresStatus.error(status, name: "api.example.com", servers: []).code == .shutDown)
  }

  @Test func theVersionHasThreeNumbers() {
    let numbers = AresVersion.string.split(separator: ".").compactMap { Int($0) }
    #expect(numbers.count == 3)
    #expect(numbers.first == 1)
  }
}
