import FoundationEssentials
import NetOptTestSupport
import Testing

@testable import NetOpt

/// Tests that the client tells its list observers when the list in use expires.
extension ListUpdateTests {
  /// A configuration with the list file of these tests, and with `recorder` as an observer of the list.
  private func watched(by recorder: ListRecorder) -> ClientConfiguration {
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    configuration.probing.atStart = false
    configuration.rankingHistory = .none
    configuration.listObservers = [recorder]
    configuration.list = .file("\(directory)/list.json")
    configuration.allowPrivateAddresses = true
    return configuration
  }

  @Test("an observer is told once when each list expires")
  func expiryInUse() async throws {
    let recorder = ListRecorder()
    // Three to four seconds from now. A date in a list has whole seconds.
    let soon = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.up) + 3)
    try replaceFile("\(directory)/list.json", listBytes(serial: 1, expires: soon.formatted(.iso8601)))
    let client = try NetOptClient(watched(by: recorder))
    #expect(client.listWarning == nil)
    #expect(recorder.events.events.isEmpty)
    let events = try await recorder.events.wait(for: "the end") { !$0.isEmpty }
    #expect(Date() >= soon)
    guard case .expired(let error, let status) = events[0] else {
      Issue.record("\(events)")
      return
    }
    #expect(error.message.hasPrefix("the IP list has expired") && status.serial == 1)
    #expect(client.listWarning?.message == error.message)
    // The observer is also told when the second list expires. It is not told again that the first list has
    // expired.
    let later = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.up) + 3)
    try replaceFile("\(directory)/list.json", listBytes(serial: 2, expires: later.formatted(.iso8601)))
    let all = try await recorder.events.wait(for: "the other end") { $0.count { $0.isExpiry } == 2 }
    #expect(all.map(\.status.serial) == [1, 2, 2])
    #expect(all.map(\.isChange) == [false, true, false])
    await client.shutdown()
    #expect(recorder.events.events.count == 3)
  }

  /// The client starts with an expired list file, although its requests then go over DNS.
  @Test("an observer is told once of a list that expired before the start")
  func expiryBeforeStart() async throws {
    let recorder = ListRecorder()
    try replaceFile("\(directory)/list.json", listBytes(serial: 1, expires: "2026-01-01T00:00:00Z"))
    let client = try NetOptClient(watched(by: recorder))
    #expect(client.listWarning?.message.contains("has expired") == true)
    let events = try await recorder.events.wait(for: "the end") { !$0.isEmpty }
    #expect(events.count == 1 && events[0].isExpiry && events[0].status.serial == 1)
    try replaceFile("\(directory)/list.json", listBytes(serial: 2))
    let all = try await recorder.events.wait(for: "the next list") { $0.contains(where: \.isChange) }
    #expect(all.count { $0.isExpiry } == 1)
    await client.shutdown()
  }
}
